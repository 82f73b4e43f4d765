CREATE TABLE quotas (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    mac TEXT NOT NULL,
    kinds TEXT NOT NULL,
    allowed_models TEXT,
    allowed_characters TEXT,
    disabled BOOLEAN NOT NULL,
    period TEXT NOT NULL CHECK (period IN ('day', 'month', 'lifetime')),
    limit_tokens BIGINT,
    limit_cost BIGINT,
    limit_characters BIGINT,
    limit_seconds BIGINT,
    period_start BIGINT NOT NULL,
    used_tokens BIGINT NOT NULL,
    used_cost BIGINT NOT NULL,
    used_characters BIGINT NOT NULL,
    used_seconds BIGINT NOT NULL,
    reserved_tokens BIGINT NOT NULL,
    reserved_cost BIGINT NOT NULL,
    reserved_characters BIGINT NOT NULL,
    reserved_seconds BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT
);

CREATE INDEX quotas_partner ON quotas (partner, created_at);

CREATE TABLE reservations (
    id TEXT NOT NULL PRIMARY KEY,
    quota TEXT NOT NULL REFERENCES quotas (id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    character_ref TEXT,
    request_id TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    characters BIGINT NOT NULL,
    seconds BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE usage_records (
    id TEXT NOT NULL,
    quota TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    character_ref TEXT,
    request_id TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('completed', 'incomplete', 'failed', 'cancelled', 'bound')),
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    characters BIGINT NOT NULL,
    seconds BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    settled_at BIGINT NOT NULL,
    PRIMARY KEY (settled_at, id)
);

CREATE TABLE usage_days (
    quota TEXT NOT NULL REFERENCES quotas (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    character_ref TEXT NOT NULL,
    requests BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    characters BIGINT NOT NULL,
    seconds BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    PRIMARY KEY (quota, day, model, character_ref)
);
