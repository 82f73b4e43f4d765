-- Tells how the text was cut into sections; empty where that is not known.
ALTER TABLE knowledge_rewrites ADD COLUMN cut TEXT NOT NULL DEFAULT '';

-- The vectors that were made anew so far, and the profile that made them, while the earlier ones are searched.
ALTER TABLE knowledge_documents ADD COLUMN vectors TEXT REFERENCES blobs (key);

ALTER TABLE knowledge_documents ADD COLUMN vectors_profile BIGINT REFERENCES embedding_profiles (id);

CREATE INDEX knowledge_documents_vectors ON knowledge_documents (vectors);

-- Whether its embedding failed for what the document is: another attempt would fail as well, so a base does not wait for it when it changes its profile.
ALTER TABLE knowledge_documents ADD COLUMN embedding_refused BOOLEAN NOT NULL DEFAULT FALSE;
