-- How many pictures inside of a document could not be looked at.
ALTER TABLE knowledge_documents ADD COLUMN missing_pictures BIGINT;
