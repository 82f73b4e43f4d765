-- The language that a recording was transcribed as although no model could tell whether it is spoken there.
ALTER TABLE knowledge_transcripts ADD COLUMN assumed_language TEXT;
ALTER TABLE knowledge_documents ADD COLUMN assumed_language TEXT;
