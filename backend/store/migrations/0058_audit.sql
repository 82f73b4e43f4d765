-- Changes that were asked for through the API: who, what, when. An entry is stored before the change is made.
CREATE TABLE audit_entries (
    id TEXT NOT NULL PRIMARY KEY,
    -- Milliseconds since 1970, on the database's clock.
    at BIGINT NOT NULL,
    -- The API key, or the quota whose key it was. Entries outlive both.
    key_id TEXT NOT NULL,
    key_name TEXT NOT NULL,
    credential TEXT NOT NULL CHECK (credential IN ('key', 'session', 'quota')),
    administrator BOOLEAN NOT NULL,
    -- The partner whose data it is about, if it is a partner's. Entries outlive it.
    partner TEXT,
    -- When that partner was created, which tells it from one that had the name before.
    partner_since BIGINT,
    -- The operation.
    action TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    resource TEXT NOT NULL,
    -- The id or name of the resource.
    subject TEXT,
    -- The parameters of the path, a JSON object.
    parameters TEXT NOT NULL,
    -- The status of the response; null while the request runs, or if its process or its client went away.
    status BIGINT,
    request_id TEXT NOT NULL
);

CREATE INDEX audit_entries_at ON audit_entries (at DESC, id);

CREATE INDEX audit_entries_action ON audit_entries (action, at DESC, id);

CREATE INDEX audit_entries_key ON audit_entries (key_id, at DESC, id);

CREATE INDEX audit_entries_subject ON audit_entries (subject, at DESC, id);

CREATE INDEX audit_entries_partner ON audit_entries (partner, at DESC, id);

CREATE INDEX audit_entries_partner_action ON audit_entries (partner, action, at DESC, id);

CREATE INDEX audit_entries_partner_subject ON audit_entries (partner, subject, at DESC, id);
