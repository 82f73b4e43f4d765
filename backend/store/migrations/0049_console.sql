-- Who has signed in at the console: the SHA-256 of a session's id, and the key that the session was begun with.
CREATE TABLE console_sessions (
    id_sha256 TEXT PRIMARY KEY,
    -- Null for the key of the configuration.
    key_id TEXT REFERENCES api_keys (id) ON DELETE CASCADE,
    -- The HMAC of the key, by which a session ends with the key of the configuration, too.
    key_mac TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);

CREATE INDEX console_sessions_key ON console_sessions (key_mac, last_used_at);
CREATE INDEX console_sessions_key_id ON console_sessions (key_id);
CREATE INDEX console_sessions_created ON console_sessions (created_at);
CREATE INDEX console_sessions_used ON console_sessions (last_used_at);

-- Links that sign somebody in, once: the SHA-256 of what is in the link, and the key that made it.
CREATE TABLE console_links (
    token_sha256 TEXT PRIMARY KEY,
    key_id TEXT REFERENCES api_keys (id) ON DELETE CASCADE,
    key_mac TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX console_links_key ON console_links (key_mac, expires_at);
CREATE INDEX console_links_key_id ON console_links (key_id);
CREATE INDEX console_links_expires ON console_links (expires_at);
