-- The publishable key that a page placed the call with; null when a server did.
ALTER TABLE calls ADD COLUMN page_key TEXT;
