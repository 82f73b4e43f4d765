-- When somebody asked for the end of the call. The node that runs it ends it.
ALTER TABLE calls ADD COLUMN end_requested_at BIGINT;

CREATE INDEX calls_end_requested ON calls (node_id) WHERE end_requested_at IS NOT NULL;

-- What has been said in calls that run, for those who follow them. A call that is over has its transcript instead.
CREATE TABLE call_lines (
    call_id TEXT NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
    -- The number of the line, in the order in which lines were begun to be heard or spoken.
    line BIGINT NOT NULL,
    originator TEXT NOT NULL CHECK (originator IN ('bot', 'user')),
    text TEXT NOT NULL,
    -- Milliseconds since the media connected.
    at_ms BIGINT NOT NULL,
    interrupted BOOLEAN NOT NULL,
    -- How a reply came about, JSON.
    reply TEXT,
    PRIMARY KEY (call_id, line)
);

CREATE FUNCTION call_lines_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_change(c.partner, 'call_lines', '', c.id, FALSE) FROM calls c WHERE c.id = NEW.call_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER call_lines_changed AFTER INSERT OR UPDATE ON call_lines
    FOR EACH ROW EXECUTE FUNCTION call_lines_changed();

-- However a call ends.
CREATE FUNCTION calls_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM call_lines WHERE call_id = NEW.id;
    DELETE FROM changes WHERE partner = NEW.partner AND kind = 'call_lines' AND base = '' AND id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER calls_ended AFTER UPDATE OF ended_at ON calls
    FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL) EXECUTE FUNCTION calls_ended();
