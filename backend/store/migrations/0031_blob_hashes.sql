-- The SHA-256 of a file, which is compared when the file is read; null for files from before, whose length alone is compared.
ALTER TABLE blobs ADD COLUMN sha256 TEXT;

UPDATE blobs SET sha256 = content.sha256 FROM knowledge_contents AS content WHERE content.blob = blobs.key;
