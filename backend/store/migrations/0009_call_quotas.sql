-- The quota that pays for a call; null when a partner's key placed it.
ALTER TABLE calls ADD COLUMN quota TEXT;
