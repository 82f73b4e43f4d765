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
