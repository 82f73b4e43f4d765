-- How many bytes the character of a call and its parameters had when the call was created. They count in the storage of the partner until
-- the call ends, which clears them.
ALTER TABLE calls ADD COLUMN character_bytes BIGINT NOT NULL DEFAULT 0;

UPDATE calls SET character_bytes = octet_length(character_json) + octet_length(character_params)
WHERE state IN ('starting', 'ongoing');

INSERT INTO partner_storage (partner, bytes, texts)
SELECT partner, 0, SUM(character_bytes) FROM calls WHERE character_bytes > 0 GROUP BY partner
ON CONFLICT (partner) DO UPDATE SET texts = partner_storage.texts + excluded.texts;

-- Calls that ended before hold their characters still. There may be many, so the server clears them in batches, once it runs.
CREATE INDEX calls_uncleared ON calls (id) WHERE ended_at IS NOT NULL AND character_json <> '';

-- What the calls of a page have until somebody joins them is bounded.
CREATE INDEX calls_of_pages ON calls (page_key, character_bytes) WHERE state = 'starting' AND page_key IS NOT NULL;

CREATE INDEX calls_ended ON calls (ended_at);

CREATE INDEX calls_without_media ON calls (ended_at) WHERE ongoing_at IS NULL;
