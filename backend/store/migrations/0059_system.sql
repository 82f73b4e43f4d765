-- The version of the server that the node runs, as it tells it; null for earlier versions, which told none.
ALTER TABLE nodes ADD COLUMN version TEXT;

-- Whether it had been told to stop when it said last that it lives.
ALTER TABLE nodes ADD COLUMN stopping BOOLEAN NOT NULL DEFAULT FALSE;

-- The calls that it had then, and those that it takes at most; null where it told none.
ALTER TABLE nodes ADD COLUMN calls BIGINT;

ALTER TABLE nodes ADD COLUMN max_calls BIGINT;

-- Counts what waits of each kind, and finds what is due first.
CREATE INDEX work_queued ON work (kind, run_at) WHERE state = 'queued';

-- Finds the vector stores for which nothing is asked for a while.
CREATE INDEX vectorstores_held ON vectorstores (held_until) WHERE held_until IS NOT NULL;
