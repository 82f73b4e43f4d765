-- What makes vectors: a model, as it is asked. The id names a generation in the indexes of nodes.
CREATE TABLE embedding_profiles (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE UNIQUE INDEX embedding_profiles_name ON embedding_profiles (name);

-- The profile whose vectors are searched; null until something is embedded.
ALTER TABLE knowledge_bases ADD COLUMN profile_id BIGINT REFERENCES embedding_profiles (id);

-- When its embedding began or ended last, and why it failed.
ALTER TABLE knowledge_documents ADD COLUMN embedding_at BIGINT;

ALTER TABLE knowledge_documents ADD COLUMN embedding_error TEXT;

-- The chunks of documents with their vectors, in files. A manifest that is stale is of a content that was replaced: it is not
-- searched, and what it has in common with the new one need not be embedded again.
CREATE TABLE knowledge_manifests (
    document_id TEXT NOT NULL REFERENCES knowledge_documents (id) ON DELETE CASCADE,
    profile_id BIGINT NOT NULL REFERENCES embedding_profiles (id),
    base_id TEXT NOT NULL,
    blob TEXT NOT NULL REFERENCES blobs (key),
    chunk_count BIGINT NOT NULL,
    -- The headings, JSON.
    contents TEXT NOT NULL,
    stale BOOLEAN NOT NULL,
    sequence BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (document_id, profile_id)
);

CREATE INDEX knowledge_manifests_sequence ON knowledge_manifests (sequence);

CREATE INDEX knowledge_manifests_base ON knowledge_manifests (base_id, profile_id);

CREATE INDEX knowledge_manifests_blob ON knowledge_manifests (blob);

-- What went, for the indexes of nodes: a document, a generation of a base, or without both a base.
CREATE TABLE knowledge_removals (
    sequence BIGINT NOT NULL,
    base_id TEXT NOT NULL,
    document_id TEXT,
    profile_id BIGINT,
    created_at BIGINT NOT NULL
);

CREATE INDEX knowledge_removals_sequence ON knowledge_removals (sequence);

-- The last change of manifests and removals, and the last removal that is not remembered any more. Whoever counts it up holds the row until the
-- transaction ends, so that changes are seen in their order.
CREATE TABLE knowledge_sequence (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    last BIGINT NOT NULL,
    forgotten BIGINT NOT NULL,
    -- Names the database, so that a node's index is not taken for that of another one.
    installation TEXT
);

INSERT INTO knowledge_sequence (id, last, forgotten) VALUES (1, 0, 0);
