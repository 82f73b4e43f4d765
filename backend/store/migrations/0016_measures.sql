-- What is measured has rows in place of columns, so that a further measure needs no migration.

-- How a quota stands: no row for what has no limit and was never used.
CREATE TABLE quota_amounts (
    quota TEXT NOT NULL REFERENCES quotas (id) ON DELETE CASCADE,
    measure TEXT NOT NULL,
    limit_amount BIGINT,
    used BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    PRIMARY KEY (quota, measure)
);

INSERT INTO quota_amounts SELECT id, 'tokens', limit_tokens, used_tokens, reserved_tokens FROM quotas
    WHERE limit_tokens IS NOT NULL OR used_tokens <> 0 OR reserved_tokens <> 0;

INSERT INTO quota_amounts SELECT id, 'cost', limit_cost, used_cost, reserved_cost FROM quotas
    WHERE limit_cost IS NOT NULL OR used_cost <> 0 OR reserved_cost <> 0;

INSERT INTO quota_amounts SELECT id, 'characters', limit_characters, used_characters, reserved_characters FROM quotas
    WHERE limit_characters IS NOT NULL OR used_characters <> 0 OR reserved_characters <> 0;

INSERT INTO quota_amounts SELECT id, 'seconds', limit_seconds, used_seconds, reserved_seconds FROM quotas
    WHERE limit_seconds IS NOT NULL OR used_seconds <> 0 OR reserved_seconds <> 0;

ALTER TABLE quotas DROP COLUMN limit_tokens;

ALTER TABLE quotas DROP COLUMN limit_cost;

ALTER TABLE quotas DROP COLUMN limit_characters;

ALTER TABLE quotas DROP COLUMN limit_seconds;

ALTER TABLE quotas DROP COLUMN used_tokens;

ALTER TABLE quotas DROP COLUMN used_cost;

ALTER TABLE quotas DROP COLUMN used_characters;

ALTER TABLE quotas DROP COLUMN used_seconds;

ALTER TABLE quotas DROP COLUMN reserved_tokens;

ALTER TABLE quotas DROP COLUMN reserved_cost;

ALTER TABLE quotas DROP COLUMN reserved_characters;

ALTER TABLE quotas DROP COLUMN reserved_seconds;

-- The amounts of a reservation and of a record of usage are a JSON object without zeros.
CREATE TABLE reservations_kept (
    id TEXT NOT NULL PRIMARY KEY,
    quota TEXT NOT NULL REFERENCES quotas (id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    character_ref TEXT,
    request_id TEXT NOT NULL,
    amounts TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

INSERT INTO reservations_kept SELECT id, quota, node_id, period_start, endpoint, model, character_ref, request_id,
    '{' || LTRIM(
        CASE WHEN tokens = 0 THEN '' ELSE ',"tokens":' || CAST(tokens AS TEXT) END
        || CASE WHEN cost = 0 THEN '' ELSE ',"cost":' || CAST(cost AS TEXT) END
        || CASE WHEN characters = 0 THEN '' ELSE ',"characters":' || CAST(characters AS TEXT) END
        || CASE WHEN seconds = 0 THEN '' ELSE ',"seconds":' || CAST(seconds AS TEXT) END,
    ',') || '}', created_at FROM reservations;

DROP TABLE reservations;

ALTER TABLE reservations_kept RENAME TO reservations;

CREATE TABLE usage_records_kept (
    id TEXT NOT NULL,
    quota TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    character_ref TEXT,
    request_id TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('completed', 'incomplete', 'failed', 'cancelled', 'bound')),
    amounts TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    settled_at BIGINT NOT NULL,
    PRIMARY KEY (settled_at, id)
);

INSERT INTO usage_records_kept SELECT id, quota, endpoint, model, character_ref, request_id, outcome,
    '{' || LTRIM(
        CASE WHEN input_tokens + output_tokens = 0 THEN ''
            ELSE ',"tokens":' || CAST(input_tokens + output_tokens AS TEXT) END
        || CASE WHEN cost = 0 THEN '' ELSE ',"cost":' || CAST(cost AS TEXT) END
        || CASE WHEN characters = 0 THEN '' ELSE ',"characters":' || CAST(characters AS TEXT) END
        || CASE WHEN seconds = 0 THEN '' ELSE ',"seconds":' || CAST(seconds AS TEXT) END
        || CASE WHEN input_tokens = 0 THEN '' ELSE ',"input_tokens":' || CAST(input_tokens AS TEXT) END
        || CASE WHEN cached_tokens = 0 THEN '' ELSE ',"cached_tokens":' || CAST(cached_tokens AS TEXT) END
        || CASE WHEN output_tokens = 0 THEN '' ELSE ',"output_tokens":' || CAST(output_tokens AS TEXT) END
        || CASE WHEN reasoning_tokens = 0 THEN '' ELSE ',"reasoning_tokens":' || CAST(reasoning_tokens AS TEXT) END,
    ',') || '}', created_at, settled_at FROM usage_records;

DROP TABLE usage_records;

ALTER TABLE usage_records_kept RENAME TO usage_records;

CREATE TABLE usage_days_kept (
    quota TEXT NOT NULL REFERENCES quotas (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    character_ref TEXT NOT NULL,
    measure TEXT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (quota, day, model, character_ref, measure)
);

INSERT INTO usage_days_kept
    SELECT quota, day, model, character_ref, 'requests', requests FROM usage_days WHERE requests <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'tokens', input_tokens + output_tokens
        FROM usage_days WHERE input_tokens + output_tokens <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'cost', cost FROM usage_days WHERE cost <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'characters', characters FROM usage_days WHERE characters <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'seconds', seconds FROM usage_days WHERE seconds <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'input_tokens', input_tokens FROM usage_days WHERE input_tokens <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'cached_tokens', cached_tokens FROM usage_days WHERE cached_tokens <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'output_tokens', output_tokens FROM usage_days WHERE output_tokens <> 0
    UNION ALL SELECT quota, day, model, character_ref, 'reasoning_tokens', reasoning_tokens
        FROM usage_days WHERE reasoning_tokens <> 0;

DROP TABLE usage_days;

ALTER TABLE usage_days_kept RENAME TO usage_days;
