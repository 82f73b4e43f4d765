-- What a content was made of: of an original, the address that gave it; of a text, the SHA-256 of the original that was read, or the address
-- that gave the text itself. Null where it was brought.
ALTER TABLE knowledge_contents ADD COLUMN made_of TEXT;

UPDATE knowledge_contents SET made_of = document.url FROM knowledge_documents AS document
WHERE document.id = knowledge_contents.document_id AND document.fetching = 'done' AND knowledge_contents.variant = 'original';

-- Which original came before a newer one is not known; it is no longer this one.
UPDATE knowledge_contents SET made_of = CASE WHEN knowledge_contents.revision < original.revision THEN '' ELSE original.sha256 END
FROM knowledge_contents AS original
WHERE original.document_id = knowledge_contents.document_id AND original.variant = 'original' AND knowledge_contents.variant IN ('digitized', 'extracted');
