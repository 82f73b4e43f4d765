-- The oldest documents of a base with an address are found in order. Documents without an address are not in the index, so that counting the
-- documents of a base does not read the addresses.
DROP INDEX knowledge_documents_url;

CREATE INDEX knowledge_documents_url ON knowledge_documents (base_id, url, id) WHERE url IS NOT NULL;

-- The base of the document, so that the oldest originals of a base with the same bytes are found in order.
ALTER TABLE knowledge_contents ADD COLUMN base_id TEXT;

UPDATE knowledge_contents SET base_id = (SELECT d.base_id FROM knowledge_documents d WHERE d.id = knowledge_contents.document_id);

CREATE INDEX knowledge_contents_original ON knowledge_contents (base_id, sha256, document_id) WHERE variant = 'original';
