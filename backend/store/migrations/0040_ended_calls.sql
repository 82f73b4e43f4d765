-- How many bytes the transcript and the metadata of a call had when it ended. They count in the storage of the partner until the call is
-- deleted. Calls that ended before count nothing.
ALTER TABLE calls ADD COLUMN ended_bytes BIGINT NOT NULL DEFAULT 0;

-- With how many bytes a call counts among those of its publishable key that ended without media: its metadata, 1 KiB at least. 0 for every
-- other call.
ALTER TABLE calls ADD COLUMN silent_bytes BIGINT NOT NULL DEFAULT 0;

CREATE INDEX calls_counted ON calls (partner, ended_bytes) WHERE ended_bytes > 0;

CREATE INDEX calls_silent ON calls (page_key, ended_at, id, silent_bytes) WHERE silent_bytes > 0;

-- Calls of publishable keys have a part of their partner's storage, the oldest go first.
CREATE INDEX calls_of_pages_ended ON calls (partner, ended_at, id, ended_bytes) WHERE page_key IS NOT NULL AND ended_bytes > 0;
