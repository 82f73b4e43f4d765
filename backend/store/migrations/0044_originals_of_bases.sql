-- The base of an original, so that those of a base with the same bytes are found in order without reading the copies that other bases have.
-- Null for other variants.
ALTER TABLE knowledge_contents ADD COLUMN base_id TEXT;

UPDATE knowledge_contents SET base_id = document.base_id FROM knowledge_documents AS document
WHERE document.id = knowledge_contents.document_id AND knowledge_contents.variant = 'original';

DROP INDEX knowledge_contents_original;

CREATE INDEX knowledge_contents_original ON knowledge_contents (base_id, sha256, document_id) WHERE variant = 'original';
