-- What a document says of itself, and the pages on which no text could be recognized: numbers with commas between them, the first 1,000.
ALTER TABLE knowledge_documents ADD COLUMN author TEXT;

ALTER TABLE knowledge_documents ADD COLUMN language TEXT;

ALTER TABLE knowledge_documents ADD COLUMN pages BIGINT;

ALTER TABLE knowledge_documents ADD COLUMN missing_pages TEXT;
