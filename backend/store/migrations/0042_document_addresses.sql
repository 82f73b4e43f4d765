-- The oldest documents of a base with an address are found in order. Documents without an address are not in the index, so that counting the
-- documents of a base does not read the addresses.
DROP INDEX knowledge_documents_url;

CREATE INDEX knowledge_documents_url ON knowledge_documents (base_id, url, id) WHERE url IS NOT NULL;
