-- What a document says of itself, and the pages on which no text could be recognized: numbers with commas between them, the first 1,000.
ALTER TABLE knowledge_documents ADD COLUMN author TEXT;

ALTER TABLE knowledge_documents ADD COLUMN language TEXT;

ALTER TABLE knowledge_documents ADD COLUMN pages BIGINT;

ALTER TABLE knowledge_documents ADD COLUMN missing_pages TEXT;

-- Whether the original of a document with an address is what the address gave (done), is to be fetched (wanted), or was brought by people.
ALTER TABLE knowledge_documents ADD COLUMN fetching TEXT NOT NULL DEFAULT 'none' CHECK (fetching IN ('none', 'wanted', 'done'));

UPDATE knowledge_documents SET fetching = 'done' WHERE type = 'url' AND url IS NOT NULL
    AND EXISTS (SELECT 1 FROM knowledge_contents c WHERE c.document_id = knowledge_documents.id AND c.variant = 'original');

-- Documents of a base with the same address.
CREATE INDEX knowledge_documents_url ON knowledge_documents (base_id, url);

-- What was asked of services for the documents of a base, one row a request: written before it is sent, and settled after. A row that stays
-- pending is of a request whose outcome nobody knows. Rows outlive their documents.
CREATE TABLE knowledge_usage (
    id TEXT NOT NULL PRIMARY KEY,
    base_id TEXT NOT NULL REFERENCES knowledge_bases (id) ON DELETE CASCADE,
    document_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('rewrite', 'embed', 'transcribe')),
    model TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('pending', 'success', 'fault')),
    -- The most that it may use, as far as that is known before.
    bound_tokens BIGINT,
    bound_seconds BIGINT,
    -- What it used; null where the service does not say so, or nobody knows.
    input_tokens BIGINT,
    output_tokens BIGINT,
    seconds BIGINT,
    -- In units of 1e-8 dollars; null where there is no price or the usage is not known.
    cost BIGINT,
    created_at BIGINT NOT NULL,
    settled_at BIGINT
);

CREATE INDEX knowledge_usage_base ON knowledge_usage (base_id, created_at);

CREATE INDEX knowledge_usage_document ON knowledge_usage (document_id, created_at);

-- The words of the parts of a recording that were transcribed, by the hash of the recording: none is transcribed twice.
CREATE TABLE knowledge_transcripts (
    document_id TEXT NOT NULL REFERENCES knowledge_documents (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    -- In samples at 16,000 Hz.
    begin_sample BIGINT NOT NULL,
    end_sample BIGINT NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (document_id, source, begin_sample)
);
