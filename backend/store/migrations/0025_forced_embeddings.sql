-- Whether all of it is to be embedded again, also what has not changed since.
ALTER TABLE knowledge_documents ADD COLUMN embedding_anew BOOLEAN NOT NULL DEFAULT FALSE;
