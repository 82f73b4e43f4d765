-- The last change of each resource of a partner, in the order of the changes. A resource has one row, so the table grows with resources and not
-- with changes; the row of a deleted resource stays for a day, for clients that were away. Resources have the ids that the API names them by:
-- bases, folders, characters and voices their names.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    partner TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- The name of the knowledge base that the resource is in, or empty.
    base TEXT NOT NULL,
    id TEXT NOT NULL,
    gone BOOLEAN NOT NULL,
    -- Milliseconds since 1970.
    changed_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX changes_resource ON changes (partner, kind, base, id);

CREATE INDEX changes_partner ON changes (partner, seq);

CREATE INDEX changes_gone ON changes (changed_at, seq) WHERE gone;

-- The largest number of a row that was purged.
CREATE TABLE changes_forgotten (seq BIGINT NOT NULL);

INSERT INTO changes_forgotten (seq) VALUES (0);

-- An insert here records a change. Resources that are deleted with their partner leave no row.
CREATE VIEW change_notes AS SELECT partner, kind, base, id, gone FROM changes WHERE FALSE;

CREATE TRIGGER change_noted INSTEAD OF INSERT ON change_notes
WHEN EXISTS (SELECT 1 FROM partners p WHERE p.id = NEW.partner)
BEGIN
    DELETE FROM changes WHERE partner = NEW.partner AND kind = NEW.kind AND base = NEW.base AND id = NEW.id;
    INSERT INTO changes (partner, kind, base, id, gone, changed_at)
    VALUES (NEW.partner, NEW.kind, NEW.base, NEW.id, NEW.gone, CAST(unixepoch('subsec') * 1000 AS BIGINT));
END;

CREATE TRIGGER partner_forgotten AFTER DELETE ON partners BEGIN
    DELETE FROM changes WHERE partner = OLD.id;
END;

CREATE TRIGGER knowledge_bases_added AFTER INSERT ON knowledge_bases BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'base', NEW.name, NEW.name, FALSE;
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'budget', NEW.name, NEW.name, FALSE;
END;

CREATE TRIGGER knowledge_bases_changed AFTER UPDATE ON knowledge_bases BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'base', NEW.name, NEW.name, FALSE;
END;

-- All limits of a budget are written together with this one.
CREATE TRIGGER knowledge_bases_limited AFTER UPDATE OF character_limit ON knowledge_bases BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'budget', NEW.name, NEW.name, FALSE;
END;

CREATE TRIGGER knowledge_bases_removed AFTER DELETE ON knowledge_bases BEGIN
    DELETE FROM changes WHERE partner = OLD.partner AND kind IN ('folder', 'document', 'budget') AND base = OLD.name;
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'base', OLD.name, OLD.name, TRUE;
END;

CREATE TRIGGER knowledge_folders_added AFTER INSERT ON knowledge_folders BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'folder', b.name, NEW.name, FALSE FROM knowledge_bases b WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_folders_changed AFTER UPDATE ON knowledge_folders BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'folder', b.name, NEW.name, FALSE FROM knowledge_bases b WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_folders_removed AFTER DELETE ON knowledge_folders BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'folder', b.name, OLD.name, TRUE FROM knowledge_bases b WHERE b.id = OLD.base_id AND b.deletion_requested_at IS NULL;
END;

CREATE TRIGGER knowledge_documents_added AFTER INSERT ON knowledge_documents BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'document', b.name, NEW.id, FALSE FROM knowledge_bases b WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_documents_changed AFTER UPDATE ON knowledge_documents BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'document', b.name, NEW.id, FALSE FROM knowledge_bases b WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_documents_removed AFTER DELETE ON knowledge_documents BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'document', b.name, OLD.id, TRUE FROM knowledge_bases b WHERE b.id = OLD.base_id AND b.deletion_requested_at IS NULL;
END;

CREATE TRIGGER knowledge_channels_added AFTER INSERT ON knowledge_channels BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'folder', b.name, f.name, FALSE FROM knowledge_bases b JOIN knowledge_folders f ON f.id = NEW.folder_id WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_channels_changed AFTER UPDATE ON knowledge_channels BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'folder', b.name, f.name, FALSE FROM knowledge_bases b JOIN knowledge_folders f ON f.id = NEW.folder_id WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_channels_removed AFTER DELETE ON knowledge_channels BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'folder', b.name, f.name, FALSE FROM knowledge_bases b JOIN knowledge_folders f ON f.id = OLD.folder_id WHERE b.id = OLD.base_id;
END;

CREATE TRIGGER knowledge_usage_added AFTER INSERT ON knowledge_usage BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'budget', b.name, b.name, FALSE FROM knowledge_bases b WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_usage_changed AFTER UPDATE ON knowledge_usage BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'budget', b.name, b.name, FALSE FROM knowledge_bases b WHERE b.id = NEW.base_id;
END;

CREATE TRIGGER knowledge_usage_removed AFTER DELETE ON knowledge_usage BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT b.partner, 'budget', b.name, b.name, FALSE FROM knowledge_bases b WHERE b.id = OLD.base_id;
END;

CREATE TRIGGER calls_added AFTER INSERT ON calls BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'call', '', NEW.id, FALSE;
END;

CREATE TRIGGER calls_changed AFTER UPDATE OF state, ongoing_at, ended_at, taken_at ON calls BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'call', '', NEW.id, FALSE;
END;

CREATE TRIGGER calls_removed AFTER DELETE ON calls BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'call', '', OLD.id, TRUE;
END;

CREATE TRIGGER webhook_deliveries_added AFTER INSERT ON webhook_deliveries BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'delivery', '', NEW.id, FALSE;
END;

CREATE TRIGGER webhook_deliveries_changed AFTER UPDATE OF state, attempts ON webhook_deliveries BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'delivery', '', NEW.id, FALSE;
END;

CREATE TRIGGER webhook_deliveries_removed AFTER DELETE ON webhook_deliveries BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'delivery', '', OLD.id, TRUE;
END;

CREATE TRIGGER transcripts_added AFTER INSERT ON transcripts BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'transcript', '', NEW.id, FALSE;
END;

CREATE TRIGGER transcripts_changed AFTER UPDATE OF status, window_sample ON transcripts BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'transcript', '', NEW.id, FALSE;
END;

CREATE TRIGGER transcripts_removed AFTER DELETE ON transcripts BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'transcript', '', OLD.id, TRUE;
END;

CREATE TRIGGER dialog_analyses_added AFTER INSERT ON dialog_analyses BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'analysis', '', NEW.id, FALSE;
END;

CREATE TRIGGER dialog_analyses_changed AFTER UPDATE OF state, asked ON dialog_analyses BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'analysis', '', NEW.id, FALSE;
END;

CREATE TRIGGER dialog_analyses_removed AFTER DELETE ON dialog_analyses BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'analysis', '', OLD.id, TRUE;
END;

CREATE TRIGGER completions_added AFTER INSERT ON completions BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'completion', '', NEW.id, FALSE;
END;

CREATE TRIGGER completions_changed AFTER UPDATE OF state ON completions BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'completion', '', NEW.id, FALSE;
END;

CREATE TRIGGER completions_removed AFTER DELETE ON completions BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'completion', '', OLD.id, TRUE;
END;

CREATE TRIGGER characters_added AFTER INSERT ON characters BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'character', '', NEW.name, FALSE;
END;

CREATE TRIGGER characters_changed AFTER UPDATE ON characters BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'character', '', NEW.name, FALSE;
END;

CREATE TRIGGER characters_removed AFTER DELETE ON characters BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'character', '', OLD.name, TRUE;
END;

CREATE TRIGGER api_keys_added AFTER INSERT ON api_keys BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'key', '', NEW.id, FALSE;
END;

CREATE TRIGGER api_keys_changed AFTER UPDATE OF revoked_at ON api_keys BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'key', '', NEW.id, FALSE;
END;

CREATE TRIGGER api_keys_removed AFTER DELETE ON api_keys BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'key', '', OLD.id, TRUE;
END;

CREATE TRIGGER voices_added AFTER INSERT ON voices BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'voice', '', NEW.name, FALSE;
END;

CREATE TRIGGER voices_changed AFTER UPDATE ON voices BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT NEW.partner, 'voice', '', NEW.name, FALSE;
END;

CREATE TRIGGER voices_removed AFTER DELETE ON voices BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'voice', '', OLD.name, TRUE;
END;

CREATE TRIGGER voice_samples_added AFTER INSERT ON voice_samples BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT v.partner, 'voice', '', v.name, FALSE FROM voices v WHERE v.id = NEW.voice_id;
END;

CREATE TRIGGER voice_samples_changed AFTER UPDATE OF blob_key ON voice_samples BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT v.partner, 'voice', '', v.name, FALSE FROM voices v WHERE v.id = NEW.voice_id;
END;

CREATE TRIGGER voice_samples_removed AFTER DELETE ON voice_samples BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT v.partner, 'voice', '', v.name, FALSE FROM voices v WHERE v.id = OLD.voice_id;
END;

CREATE TRIGGER voice_embeddings_added AFTER INSERT ON voice_embeddings BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT v.partner, 'voice', '', v.name, FALSE FROM voices v WHERE v.id = NEW.voice_id;
END;

CREATE TRIGGER voice_embeddings_changed AFTER UPDATE OF status, given ON voice_embeddings BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT v.partner, 'voice', '', v.name, FALSE FROM voices v WHERE v.id = NEW.voice_id;
END;

CREATE TRIGGER voice_embeddings_removed AFTER DELETE ON voice_embeddings BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT v.partner, 'voice', '', v.name, FALSE FROM voices v WHERE v.id = OLD.voice_id;
END;

CREATE TRIGGER voices_renamed AFTER UPDATE OF name ON voices WHEN OLD.name <> NEW.name BEGIN
    INSERT INTO change_notes (partner, kind, base, id, gone) SELECT OLD.partner, 'voice', '', OLD.name, TRUE;
END;
