CREATE TABLE characters (
    partner TEXT NOT NULL REFERENCES partners (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (partner, name)
);

CREATE TABLE character_versions (
    partner TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    personality TEXT NOT NULL,
    parameters TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (partner, name, version),
    FOREIGN KEY (partner, name) REFERENCES characters (partner, name) ON DELETE CASCADE
);
