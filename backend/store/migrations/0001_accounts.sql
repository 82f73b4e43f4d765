CREATE TABLE partners (
    id TEXT NOT NULL PRIMARY KEY,
    display_name TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    partner TEXT REFERENCES partners (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    mac TEXT NOT NULL,
    scopes TEXT,
    allowed_origins TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT
);

CREATE INDEX api_keys_partner ON api_keys (partner, created_at);

CREATE TABLE server_secrets (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
