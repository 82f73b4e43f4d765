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

CREATE TRIGGER call_quality_added AFTER INSERT ON call_quality BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT c.partner, 'call_quality', '', c.id, FALSE FROM calls c WHERE c.id = NEW.call_id;
END;

CREATE TRIGGER call_quality_changed AFTER UPDATE ON call_quality BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT c.partner, 'call_quality', '', c.id, FALSE FROM calls c WHERE c.id = NEW.call_id;
END;
