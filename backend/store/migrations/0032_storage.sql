-- How many bytes the files of a partner have together: the sum over its rows in blobs, whatever their state, changed with them.
CREATE TABLE partner_storage (
    partner TEXT NOT NULL PRIMARY KEY REFERENCES partners (id) ON DELETE CASCADE,
    bytes BIGINT NOT NULL
);

INSERT INTO partner_storage (partner, bytes)
SELECT owner, SUM(bytes) FROM blobs WHERE owner IS NOT NULL GROUP BY owner;

-- What was given up and is not removed yet, which does not count against the partner.
CREATE INDEX blobs_doomed ON blobs (owner) WHERE state = 'doomed';

-- The revision of the document when the content was stored: a text of an earlier revision than the original is not that original's.
ALTER TABLE knowledge_contents ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
