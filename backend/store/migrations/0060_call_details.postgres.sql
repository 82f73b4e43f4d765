-- The price of the time that media flowed, in units of 1e-8 dollars; null until the call ended, and for calls that ended under an earlier version.
ALTER TABLE calls ADD COLUMN cost BIGINT;

-- Whether the call cost more than that by an amount that nobody knows.
ALTER TABLE calls ADD COLUMN cost_is_lower_bound BOOLEAN NOT NULL DEFAULT FALSE;

-- What became known of the visitor, a JSON object; null for nothing, and until the call ended.
ALTER TABLE calls ADD COLUMN visitor TEXT;

-- The quality of the connection over the time of a call.
CREATE TABLE call_quality (
    call_id TEXT NOT NULL PRIMARY KEY REFERENCES calls (id) ON DELETE CASCADE,
    -- JSON: at most 120 points, oldest first.
    points TEXT NOT NULL
);

CREATE FUNCTION call_quality_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_change(c.partner, 'call_quality', '', c.id, FALSE) FROM calls c WHERE c.id = NEW.call_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER call_quality_changed AFTER INSERT OR UPDATE ON call_quality
    FOR EACH ROW EXECUTE FUNCTION call_quality_changed();
