-- The partner whose turn it takes; empty for the server's own work, and for what was queued before. It shares the worker out
-- and nothing else: what the work is about goes with its partner by itself.
ALTER TABLE work ADD COLUMN owner TEXT NOT NULL DEFAULT '';

-- How often the process that ran it died, since it last came to an end.
ALTER TABLE work ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0;

-- Whether it runs without other jobs beside it.
ALTER TABLE work ADD COLUMN alone BOOLEAN NOT NULL DEFAULT FALSE;

CREATE INDEX work_waiting ON work (kind, owner, run_at, id) WHERE state = 'queued';

CREATE INDEX work_running ON work (kind, owner) WHERE state = 'running';

CREATE INDEX work_suspect ON work (run_at, id) WHERE state = 'queued' AND deaths > 0;
