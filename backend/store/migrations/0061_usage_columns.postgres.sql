-- Measures of a day are columns of one row in place of a row for each: a report reads fewer rows, and compares no names of measures.

-- Whoever settles locks a quota, then writes its days. Whoever has begun that ends first.
LOCK TABLE quotas IN EXCLUSIVE MODE;

LOCK TABLE usage_days IN EXCLUSIVE MODE;

CREATE TABLE usage_days_kept (
    quota TEXT NOT NULL,
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    character_ref TEXT NOT NULL,
    tokens BIGINT NOT NULL DEFAULT 0,
    cost BIGINT NOT NULL DEFAULT 0,
    characters BIGINT NOT NULL DEFAULT 0,
    seconds BIGINT NOT NULL DEFAULT 0,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    cached_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    reasoning_tokens BIGINT NOT NULL DEFAULT 0,
    requests BIGINT NOT NULL DEFAULT 0
);

INSERT INTO usage_days_kept SELECT quota, day, model, character_ref,
    CAST(SUM(CASE measure WHEN 'tokens' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'cost' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'characters' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'seconds' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'input_tokens' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'cached_tokens' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'output_tokens' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'reasoning_tokens' THEN amount ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE measure WHEN 'requests' THEN amount ELSE 0 END) AS BIGINT)
    FROM usage_days WHERE amount <> 0 GROUP BY quota, day, model, character_ref;

DROP TABLE usage_days;

ALTER TABLE usage_days_kept RENAME TO usage_days;

-- Keys of rows that are there are checked at once.
ALTER TABLE usage_days ADD PRIMARY KEY (quota, day, model, character_ref);

ALTER TABLE usage_days ADD FOREIGN KEY (quota) REFERENCES quotas (id) ON DELETE CASCADE;
