-- What of a base is at the vector store of a service elsewhere. Both tables outlive the base and its partner: what is there has to be
-- removed.
CREATE TABLE vectorstores (
    base_id TEXT NOT NULL PRIMARY KEY,
    owner TEXT REFERENCES partners (id) ON DELETE SET NULL,
    -- What the service calls it; null until it was made.
    store_id TEXT,
    -- When it was asked to make one, while its answer is not known.
    asked_at BIGINT,
    -- Until when nothing is asked for whoever owns it, since the service cannot be used.
    held_until BIGINT,
    -- Whether it goes once its files are gone.
    removing BOOLEAN NOT NULL,
    -- Why nothing goes on, and when something was brought up to date last.
    last_error TEXT,
    last_synced_at BIGINT
);

CREATE INDEX vectorstores_owner ON vectorstores (owner);

CREATE TABLE vectorstore_files (
    id TEXT NOT NULL PRIMARY KEY,
    base_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    owner TEXT REFERENCES partners (id) ON DELETE SET NULL,
    -- Of the content.
    sha256 TEXT NOT NULL,
    -- Whether the document is to be found by this content; else it goes when the next one is there.
    is_current BOOLEAN NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'uploaded', 'indexing', 'synced', 'failed', 'removing')),
    -- What the service calls it; null until it was uploaded.
    file_id TEXT,
    -- When the service was asked for the next state, while its answer is not known.
    asked_at BIGINT,
    -- How often that was tried, and when it is tried next.
    attempts BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    -- Since when it has this state.
    since BIGINT NOT NULL,
    error TEXT,
    synced_at BIGINT
);

CREATE UNIQUE INDEX vectorstore_files_document ON vectorstore_files (document_id) WHERE is_current;

CREATE INDEX vectorstore_files_documents ON vectorstore_files (document_id);

CREATE INDEX vectorstore_files_owner ON vectorstore_files (owner);

CREATE INDEX vectorstore_files_due ON vectorstore_files (owner, next_at) WHERE state IN ('queued', 'uploaded', 'indexing', 'removing');

CREATE INDEX vectorstore_files_base ON vectorstore_files (base_id, state);
