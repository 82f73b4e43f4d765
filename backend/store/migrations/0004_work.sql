CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    heartbeat_at BIGINT NOT NULL,
    ended_at BIGINT
);

CREATE TABLE work (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    dedup_key TEXT,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'blocked', 'done', 'failed')),
    run_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    again BOOLEAN NOT NULL,
    fence BIGINT NOT NULL,
    lease_until BIGINT,
    node_id TEXT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX work_dedup ON work (kind, dedup_key) WHERE state IN ('queued', 'running', 'blocked');

CREATE INDEX work_due ON work (state, run_at);

CREATE INDEX work_updated ON work (state, updated_at);
