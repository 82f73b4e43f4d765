-- When a transcript that had failed was queued again; null before.
ALTER TABLE transcripts ADD COLUMN retried_at BIGINT;

-- The bytes of the words that a failed transcript keeps of its parts for another attempt; 0 while it is open and when it keeps none.
ALTER TABLE transcripts ADD COLUMN part_bytes BIGINT NOT NULL DEFAULT 0;

-- When an analysis that had failed was begun again; null before.
ALTER TABLE dialog_analyses ADD COLUMN retried_at BIGINT;
