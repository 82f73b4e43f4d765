-- Files, known here before they are written: pending until something refers to them, doomed when nothing does any more.
-- A file outlives its partner until it is removed, so the reference is not one that deletes the row.
CREATE TABLE blobs (
    key TEXT NOT NULL PRIMARY KEY,
    owner TEXT REFERENCES partners (id) ON DELETE SET NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'kept', 'doomed')),
    bytes BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX blobs_swept ON blobs (state, updated_at) WHERE state <> 'kept';

CREATE INDEX blobs_owner ON blobs (owner);
