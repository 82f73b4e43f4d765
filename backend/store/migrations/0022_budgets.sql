-- A budget is a quota without a key: what a knowledge base may use for ever, under the base's id.
ALTER TABLE quotas ADD COLUMN purpose TEXT NOT NULL DEFAULT 'key' CHECK (purpose IN ('key', 'budget'));

INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at)
    SELECT id, partner, 'budget', '', '', '[]', FALSE, 'lifetime', 0, created_at, created_at FROM knowledge_bases;

INSERT INTO quota_amounts (quota, measure, limit_amount, used, reserved)
    SELECT b.id, 'tokens', b.token_limit, CAST(COALESCE((
        SELECT SUM(COALESCE(u.input_tokens, 0) + COALESCE(u.output_tokens, 0)) FROM knowledge_usage u WHERE u.base_id = b.id
    ), 0) AS BIGINT), 0 FROM knowledge_bases b;

INSERT INTO quota_amounts (quota, measure, limit_amount, used, reserved)
    SELECT b.id, 'cost', b.dollar_limit, CAST(COALESCE((
        SELECT SUM(u.cost) FROM knowledge_usage u WHERE u.base_id = b.id
    ), 0) AS BIGINT), 0 FROM knowledge_bases b;

ALTER TABLE knowledge_bases DROP COLUMN token_limit;

ALTER TABLE knowledge_bases DROP COLUMN dollar_limit;

-- What the next step of a document that waits for room needs: null where nobody knows, or nothing of it is needed.
ALTER TABLE knowledge_documents ADD COLUMN needed_characters BIGINT;

ALTER TABLE knowledge_documents ADD COLUMN needed_tokens BIGINT;

ALTER TABLE knowledge_documents ADD COLUMN needed_cost BIGINT;

CREATE INDEX knowledge_documents_blocked ON knowledge_documents (base_id, created_at, id)
    WHERE digitizing = 'blocked' OR rewriting = 'blocked' OR embedding = 'blocked';

-- Requests that have an unknown outcome say so, and each knows the node that sent it.
CREATE TABLE knowledge_usage_kept (
    id TEXT NOT NULL PRIMARY KEY,
    base_id TEXT NOT NULL REFERENCES knowledge_bases (id) ON DELETE CASCADE,
    -- What it was for: a document, or the folder of a channel.
    document_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('rewrite', 'embed', 'transcribe', 'discover')),
    model TEXT NOT NULL,
    -- Whether this server computes it, so that it is over when the process is.
    local BOOLEAN NOT NULL,
    node_id TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('pending', 'success', 'fault', 'uncertain')),
    -- The most that it may use, as far as that is known before; the cost in units of 1e-8 dollars.
    bound_tokens BIGINT,
    bound_seconds BIGINT,
    bound_cost BIGINT,
    -- What it used; null where the service does not say so, where there is no price, or nobody knows.
    input_tokens BIGINT,
    output_tokens BIGINT,
    seconds BIGINT,
    cost BIGINT,
    -- Whether the outcome, the tokens or the cost are not known.
    unknown BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    settled_at BIGINT
);

INSERT INTO knowledge_usage_kept (id, base_id, document_id, kind, model, local, node_id, outcome, bound_tokens, bound_seconds,
        input_tokens, output_tokens, seconds, cost, unknown, created_at, settled_at)
    SELECT id, base_id, document_id, kind, model, FALSE, '', CASE WHEN outcome = 'pending' THEN 'uncertain' ELSE outcome END,
        bound_tokens, bound_seconds, input_tokens, output_tokens, seconds, cost,
        outcome = 'pending' OR cost IS NULL OR (kind <> 'transcribe' AND input_tokens IS NULL), created_at, settled_at FROM knowledge_usage;

DROP TABLE knowledge_usage;

ALTER TABLE knowledge_usage_kept RENAME TO knowledge_usage;

CREATE INDEX knowledge_usage_base ON knowledge_usage (base_id, created_at);

CREATE INDEX knowledge_usage_document ON knowledge_usage (document_id, created_at);

CREATE INDEX knowledge_usage_pending ON knowledge_usage (node_id) WHERE outcome = 'pending';

-- There are few of these.
CREATE INDEX knowledge_usage_unknown ON knowledge_usage (base_id) WHERE unknown;
