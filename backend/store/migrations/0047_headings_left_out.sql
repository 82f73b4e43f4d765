-- How many headings the table of contents has no room for; null where nobody counted.
ALTER TABLE knowledge_manifests ADD COLUMN headings_left_out BIGINT;
