-- The voice library: voices of partners, their samples, and what workers made of them.
CREATE TABLE voices (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    creator_name TEXT,
    creator_email TEXT,
    -- The recording that it was made of; null for a voice that was made empty.
    uploaded_name TEXT,
    blob_key TEXT,
    blob_bytes BIGINT,
    container TEXT,
    milliseconds BIGINT,
    splitting TEXT NOT NULL CHECK (splitting IN ('idle', 'in_progress', 'completed', 'failed')),
    splitting_error TEXT,
    -- How the recording is being split, since when and how far: the job that has this id does it.
    split_run TEXT,
    split_begun_at BIGINT,
    max_samples BIGINT NOT NULL,
    sample_seconds BIGINT NOT NULL,
    -- Where the window begins that is split next, in samples at 48,000 Hz.
    window_sample BIGINT NOT NULL,
    -- Whether the voice is embedded once it is split.
    embeds_next BOOLEAN NOT NULL,
    -- The type that it was last embedded for; null before.
    embedding_type TEXT,
    preferred_sample BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (partner, name)
);

CREATE TABLE voice_samples (
    voice_id TEXT NOT NULL REFERENCES voices (id) ON DELETE CASCADE,
    sample_index BIGINT NOT NULL,
    source_seconds BIGINT NOT NULL,
    milliseconds BIGINT NOT NULL,
    blob_key TEXT NOT NULL,
    blob_bytes BIGINT NOT NULL,
    PRIMARY KEY (voice_id, sample_index)
);

-- What was made of a voice, for each type.
CREATE TABLE voice_embeddings (
    voice_id TEXT NOT NULL REFERENCES voices (id) ON DELETE CASCADE,
    voice_type TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('in_progress', 'completed', 'failed')),
    error TEXT,
    -- The worker's job, and what a call back has to bring.
    run TEXT NOT NULL,
    token TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- How often the worker was given the job.
    given BIGINT NOT NULL,
    blob_key TEXT,
    blob_bytes BIGINT,
    -- What the synthesizer calls the voice.
    synthesizer_voice TEXT,
    PRIMARY KEY (voice_id, voice_type)
);

CREATE UNIQUE INDEX voice_embeddings_run ON voice_embeddings (run);

CREATE TABLE voice_scores (
    voice_id TEXT NOT NULL,
    voice_type TEXT NOT NULL,
    sample_index BIGINT NOT NULL,
    -- 1,000 is the best.
    score_thousandths BIGINT NOT NULL,
    PRIMARY KEY (voice_id, voice_type, sample_index),
    FOREIGN KEY (voice_id, voice_type) REFERENCES voice_embeddings (voice_id, voice_type) ON DELETE CASCADE
);

CREATE TABLE voice_test_samples (
    voice_id TEXT NOT NULL,
    voice_type TEXT NOT NULL,
    sample_index BIGINT NOT NULL,
    sentence_index BIGINT NOT NULL,
    blob_key TEXT NOT NULL,
    blob_bytes BIGINT NOT NULL,
    PRIMARY KEY (voice_id, voice_type, sample_index, sentence_index),
    FOREIGN KEY (voice_id, voice_type) REFERENCES voice_embeddings (voice_id, voice_type) ON DELETE CASCADE
);
