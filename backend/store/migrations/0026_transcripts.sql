-- Recordings that are written down for a client, and what was heard of those that are not finished.
CREATE TABLE transcripts (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    -- The quota that pays; null where a key without one asked.
    quota TEXT,
    status TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'error')),
    options TEXT NOT NULL,
    -- Where the recording is got from, until it is here.
    audio_url TEXT,
    -- The recording, until the transcript ended.
    blob_key TEXT,
    blob_bytes BIGINT,
    container TEXT,
    -- Where the window begins that is being heard, in samples at 16,000 Hz.
    window_sample BIGINT NOT NULL,
    -- The language that was detected.
    language TEXT,
    text TEXT,
    audio_seconds BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);

CREATE INDEX transcripts_open ON transcripts (partner) WHERE ended_at IS NULL;

CREATE INDEX transcripts_partner ON transcripts (partner);

CREATE INDEX transcripts_ended ON transcripts (ended_at);

-- A part has no words while a transcriber is asked for them; what is reserved for that has the id of the row.
CREATE TABLE transcript_parts (
    transcript_id TEXT NOT NULL REFERENCES transcripts (id) ON DELETE CASCADE,
    begin_sample BIGINT NOT NULL,
    end_sample BIGINT NOT NULL,
    reservation TEXT,
    words TEXT,
    PRIMARY KEY (transcript_id, begin_sample)
);
