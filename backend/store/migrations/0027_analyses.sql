-- Conversations that are analyzed for a client.
CREATE TABLE dialog_analyses (
    id TEXT NOT NULL PRIMARY KEY,
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    -- The quota that pays; null where a key without one asked.
    quota TEXT,
    state TEXT NOT NULL CHECK (state IN ('in-progress', 'completed', 'failed')),
    -- What is asked, until it ended.
    input TEXT,
    output TEXT,
    error TEXT,
    -- How many questions a model was asked that it may have answered.
    asked BIGINT NOT NULL,
    -- What is reserved for the question that a model is being asked.
    reservation TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);

CREATE INDEX dialog_analyses_open ON dialog_analyses (partner) WHERE ended_at IS NULL;

CREATE INDEX dialog_analyses_partner ON dialog_analyses (partner);

CREATE INDEX dialog_analyses_ended ON dialog_analyses (ended_at);
