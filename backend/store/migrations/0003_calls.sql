CREATE TABLE calls (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('starting', 'ongoing', 'completed', 'error')),
    error_code TEXT,
    character_json TEXT NOT NULL,
    character_params TEXT NOT NULL,
    time_limit_seconds BIGINT NOT NULL,
    webhook_url TEXT,
    metadata TEXT,
    expires_at BIGINT NOT NULL,
    node_id TEXT,
    endpoint TEXT,
    taken_at BIGINT,
    ongoing_at BIGINT,
    ended_at BIGINT,
    call_seconds BIGINT,
    server_runtime_seconds BIGINT,
    transcript TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX calls_partner ON calls (partner, created_at);

CREATE INDEX calls_state ON calls (state, expires_at);
