CREATE TABLE completions (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('in-progress', 'completed', 'failed')),
    question TEXT,
    output TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);

CREATE INDEX completions_partner ON completions (partner);

CREATE INDEX completions_ended ON completions (ended_at);
