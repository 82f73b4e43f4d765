-- The documents of which a step waits, runs or failed, which lists count by their state. Most documents are in none of these states.
CREATE INDEX knowledge_documents_unfinished ON knowledge_documents (base_id, folder_id, digitizing, rewriting, embedding)
    WHERE deletion_requested_at IS NULL
    AND (digitizing NOT IN ('none', 'done') OR rewriting NOT IN ('none', 'done') OR embedding NOT IN ('none', 'done'));
