-- The output items of stored responses by their ids, so that a request can refer to them. Models of the responses API choose
-- these ids, so one may occur in several responses; those of a quota sort by time.
CREATE TABLE response_items (
    quota TEXT NOT NULL,
    id TEXT NOT NULL,
    response TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
    PRIMARY KEY (quota, id, response)
);

CREATE INDEX response_items_response ON response_items (response);
