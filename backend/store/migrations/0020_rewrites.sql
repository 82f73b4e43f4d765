-- The latest rewriting of a document: how far it is, and what it used. A section that is being asked for while this says so has an unknown
-- outcome if its process ends.
CREATE TABLE knowledge_rewrites (
    document_id TEXT NOT NULL PRIMARY KEY REFERENCES knowledge_documents (id) ON DELETE CASCADE,
    revision BIGINT NOT NULL,
    model TEXT NOT NULL,
    sections BIGINT NOT NULL,
    done BIGINT NOT NULL,
    asking BOOLEAN NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    -- In units of 1e-8 dollars.
    cost BIGINT NOT NULL,
    -- Whether the model told the usage of each section.
    complete BOOLEAN NOT NULL,
    updated_at BIGINT NOT NULL
);
