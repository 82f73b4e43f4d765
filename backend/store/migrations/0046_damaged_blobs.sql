-- Kept files that were found damaged or lost when they were read last. A row goes when its file is found whole again, or is removed.
CREATE TABLE damaged_blobs (
    key TEXT NOT NULL PRIMARY KEY REFERENCES blobs (key) ON DELETE CASCADE,
    -- True if the file was not there.
    is_lost BOOLEAN NOT NULL,
    noted_at BIGINT NOT NULL
);
