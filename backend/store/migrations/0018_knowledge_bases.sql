CREATE TABLE knowledge_bases (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    expert_name TEXT,
    user_email TEXT,
    -- Null is unlimited; dollars in units of 1e-8.
    character_limit BIGINT,
    token_limit BIGINT,
    dollar_limit BIGINT,
    created_at BIGINT NOT NULL,
    deletion_requested_at BIGINT
);

CREATE UNIQUE INDEX knowledge_bases_name ON knowledge_bases (partner, name);

CREATE TABLE knowledge_folders (
    id TEXT NOT NULL PRIMARY KEY,
    base_id TEXT NOT NULL REFERENCES knowledge_bases (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('regular', 'video_channel')),
    created_at BIGINT NOT NULL,
    deletion_requested_at BIGINT
);

CREATE UNIQUE INDEX knowledge_folders_name ON knowledge_folders (base_id, name);

CREATE TABLE knowledge_documents (
    id TEXT NOT NULL PRIMARY KEY,
    base_id TEXT NOT NULL REFERENCES knowledge_bases (id) ON DELETE CASCADE,
    folder_id TEXT NOT NULL REFERENCES knowledge_folders (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('file', 'url')),
    url TEXT,
    expert_name TEXT,
    user_email TEXT,
    person_name TEXT,
    content_type TEXT NOT NULL CHECK (content_type IN ('auto', 'article', 'video', 'book')),
    model_tier TEXT NOT NULL CHECK (model_tier IN ('standard', 'economy')),
    auto_rewrite BOOLEAN NOT NULL,
    use_original_as_rewritten BOOLEAN NOT NULL,
    character_limit BIGINT,
    digitizing TEXT NOT NULL CHECK (digitizing IN ('none', 'queued', 'running', 'done', 'failed', 'blocked')),
    rewriting TEXT NOT NULL CHECK (rewriting IN ('none', 'queued', 'running', 'done', 'failed', 'blocked')),
    embedding TEXT NOT NULL CHECK (embedding IN ('none', 'queued', 'running', 'done', 'failed', 'blocked')),
    processing_error TEXT,
    -- Goes up with every content that somebody writes, so that what was made of an earlier one is not stored.
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deletion_requested_at BIGINT
);

CREATE INDEX knowledge_documents_base ON knowledge_documents (base_id, created_at, id);

CREATE INDEX knowledge_documents_folder ON knowledge_documents (folder_id);

CREATE TABLE knowledge_contents (
    document_id TEXT NOT NULL REFERENCES knowledge_documents (id) ON DELETE CASCADE,
    variant TEXT NOT NULL CHECK (variant IN ('original', 'extracted', 'digitized', 'draft', 'rewritten')),
    blob TEXT NOT NULL REFERENCES blobs (key),
    file_name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    -- Of text; null for a file.
    characters BIGINT,
    sha256 TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (document_id, variant)
);

CREATE INDEX knowledge_contents_blob ON knowledge_contents (blob);
