-- What a node stores to see whether the database keeps it.
CREATE TABLE canaries (
    node_id TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
