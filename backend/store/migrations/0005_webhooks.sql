CREATE TABLE webhook_deliveries (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL,
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

CREATE INDEX webhook_deliveries_partner ON webhook_deliveries (partner, id);

CREATE INDEX webhook_deliveries_state ON webhook_deliveries (state, updated_at);

CREATE TABLE webhook_attempts (
    delivery_id TEXT NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    status BIGINT,
    error TEXT,
    PRIMARY KEY (delivery_id, number)
);
