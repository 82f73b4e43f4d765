CREATE TABLE responses (
    id TEXT NOT NULL PRIMARY KEY,
    quota TEXT NOT NULL REFERENCES quotas (id) ON DELETE CASCADE,
    previous_id TEXT,
    input TEXT NOT NULL,
    response TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX responses_expires ON responses (expires_at);

CREATE INDEX responses_quota ON responses (quota);
