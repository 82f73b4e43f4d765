-- Everything of a partner goes with it: what it left behind under its name would be the next one's of that name. Rows of
-- partners that are gone, or that were there before the one that has their name now, go at once.
CREATE TABLE calls_kept (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
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
    updated_at BIGINT NOT NULL,
    quota TEXT
);

INSERT INTO calls_kept SELECT c.id, c.partner, c.state, c.error_code, c.character_json, c.character_params,
    c.time_limit_seconds, c.webhook_url, c.metadata, c.expires_at, c.node_id, c.endpoint, c.taken_at, c.ongoing_at,
    c.ended_at, c.call_seconds, c.server_runtime_seconds, c.transcript, c.created_at, c.updated_at, c.quota
    FROM calls c JOIN partners p ON p.id = c.partner WHERE c.created_at >= p.created_at;

DROP TABLE calls;

ALTER TABLE calls_kept RENAME TO calls;

CREATE INDEX calls_partner ON calls (partner, created_at);

CREATE INDEX calls_state ON calls (state, expires_at);

CREATE TABLE webhook_deliveries_kept (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    call_id TEXT NOT NULL,
    url TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed')),
    attempts BIGINT NOT NULL,
    round_attempts BIGINT NOT NULL,
    next_attempt_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

INSERT INTO webhook_deliveries_kept SELECT d.id, d.partner, d.event, d.call_id, d.url, d.payload, d.state, d.attempts,
    d.round_attempts, d.next_attempt_at, d.created_at, d.updated_at
    FROM webhook_deliveries d JOIN partners p ON p.id = d.partner WHERE d.created_at >= p.created_at;

CREATE TABLE webhook_attempts_kept (
    delivery_id TEXT NOT NULL REFERENCES webhook_deliveries_kept (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    status BIGINT,
    error TEXT,
    PRIMARY KEY (delivery_id, number)
);

INSERT INTO webhook_attempts_kept SELECT a.delivery_id, a.number, a.started_at, a.duration_ms, a.status, a.error
    FROM webhook_attempts a JOIN webhook_deliveries_kept d ON d.id = a.delivery_id;

DROP TABLE webhook_attempts;

DROP TABLE webhook_deliveries;

ALTER TABLE webhook_deliveries_kept RENAME TO webhook_deliveries;

ALTER TABLE webhook_attempts_kept RENAME TO webhook_attempts;

CREATE INDEX webhook_deliveries_partner ON webhook_deliveries (partner, id);

CREATE INDEX webhook_deliveries_state ON webhook_deliveries (state, updated_at);

-- Names whose partner is gone: for as long as a node may remember it, no other one gets the name.
CREATE TABLE deleted_partners (
    id TEXT NOT NULL PRIMARY KEY,
    deleted_at BIGINT NOT NULL
);
