CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS colloquy_index;

-- Which databases of Colloquy have their documents here, and up to which change.
CREATE TABLE IF NOT EXISTS colloquy_index.installations (
    name TEXT NOT NULL PRIMARY KEY,
    position BIGINT
);

-- The generations of vectors of knowledge bases, with what their chunks are together.
CREATE TABLE IF NOT EXISTS colloquy_index.spaces (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    installation TEXT NOT NULL REFERENCES colloquy_index.installations (name) ON DELETE CASCADE,
    base UUID NOT NULL,
    generation BIGINT NOT NULL,
    dimensions INTEGER NOT NULL,
    chunks BIGINT NOT NULL DEFAULT 0,
    terms BIGINT NOT NULL DEFAULT 0,
    -- The languages of its documents, a bit each.
    languages BIGINT NOT NULL DEFAULT 0,
    UNIQUE (installation, base, generation)
);

CREATE TABLE IF NOT EXISTS colloquy_index.chunks (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space BIGINT NOT NULL REFERENCES colloquy_index.spaces (number) ON DELETE CASCADE,
    document UUID NOT NULL,
    place INTEGER NOT NULL,
    id BYTEA NOT NULL,
    language SMALLINT NOT NULL,
    terms INTEGER NOT NULL,
    -- What a passage shows, as JSON.
    shown TEXT NOT NULL,
    UNIQUE (space, document, place)
);
CREATE INDEX IF NOT EXISTS chunks_by_content ON colloquy_index.chunks (space, id);

-- Apart from the texts, so that comparing all vectors of a space reads nothing else. Their length is 1.
CREATE TABLE IF NOT EXISTS colloquy_index.vectors (
    chunk BIGINT NOT NULL PRIMARY KEY REFERENCES colloquy_index.chunks (number) ON DELETE CASCADE,
    space BIGINT NOT NULL,
    vector HALFVEC NOT NULL
);
CREATE INDEX IF NOT EXISTS vectors_by_space ON colloquy_index.vectors (space);

-- How often terms stand in chunks, and how many terms these have: all that BM25 reads.
CREATE TABLE IF NOT EXISTS colloquy_index.terms (
    space BIGINT NOT NULL,
    term TEXT NOT NULL,
    chunk BIGINT NOT NULL REFERENCES colloquy_index.chunks (number) ON DELETE CASCADE,
    count REAL NOT NULL,
    length REAL NOT NULL,
    PRIMARY KEY (space, term, chunk) INCLUDE (count, length)
);
CREATE INDEX IF NOT EXISTS terms_by_chunk ON colloquy_index.terms (chunk);
