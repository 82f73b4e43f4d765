-- The oldest documents of a base with an address are found in order. Documents without an address are not in the index, so that counting the
-- documents of a base does not read the addresses.
DROP INDEX knowledge_documents_url;

CREATE INDEX knowledge_documents_url ON knowledge_documents (base_id, url, id) WHERE url IS NOT NULL;

-- The oldest originals with the same bytes are found in order, in whichever base.
CREATE INDEX knowledge_contents_original ON knowledge_contents (sha256, document_id) WHERE variant = 'original';
