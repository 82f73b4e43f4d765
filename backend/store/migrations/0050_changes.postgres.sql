-- The last change of each resource of a partner, in the order of the changes. A resource has one row, so the table grows with resources and not
-- with changes; the row of a deleted resource stays for a day, for clients that were away. Resources have the ids that the API names them by:
-- bases, folders, characters and voices their names.
CREATE SEQUENCE changes_seq;

CREATE TABLE changes (
    -- Assigned before the commit, so rows become visible out of order.
    seq BIGINT NOT NULL PRIMARY KEY,
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

-- Records a change. Resources that are deleted with their partner leave no row.
CREATE FUNCTION note_change(of_partner TEXT, of_kind TEXT, of_base TEXT, of_id TEXT, is_gone BOOLEAN) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Shows readers which transactions may hold numbers that they do not see yet.
    PERFORM pg_advisory_xact_lock_shared(1129271876, 1);
    INSERT INTO changes AS known (seq, partner, kind, base, id, gone, changed_at)
    SELECT nextval('changes_seq'), of_partner, of_kind, of_base, of_id, is_gone, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)
    FROM partners p WHERE p.id = of_partner
    ON CONFLICT (partner, kind, base, id) DO UPDATE
    SET seq = excluded.seq, gone = excluded.gone, changed_at = excluded.changed_at;
END
$$;

-- After the cascades, since its name sorts after those of the foreign keys.
CREATE FUNCTION partner_forgotten() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM changes WHERE partner = OLD.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER partner_forgotten AFTER DELETE ON partners FOR EACH ROW EXECUTE FUNCTION partner_forgotten();

CREATE FUNCTION knowledge_bases_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM changes WHERE partner = OLD.partner AND kind IN ('folder', 'document', 'budget') AND base = OLD.name;
        PERFORM note_change(OLD.partner, 'base', OLD.name, OLD.name, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'base', NEW.name, NEW.name, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_bases_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_bases
    FOR EACH ROW EXECUTE FUNCTION knowledge_bases_changed();

CREATE FUNCTION knowledge_bases_limited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_change(NEW.partner, 'budget', NEW.name, NEW.name, FALSE);
    RETURN NULL;
END
$$;

-- All limits of a budget are written together with this one.
CREATE TRIGGER knowledge_bases_limited AFTER INSERT OR UPDATE OF character_limit ON knowledge_bases
    FOR EACH ROW EXECUTE FUNCTION knowledge_bases_limited();

CREATE FUNCTION knowledge_folders_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(b.partner, 'folder', b.name, OLD.name, TRUE) FROM knowledge_bases b WHERE b.id = OLD.base_id AND b.deletion_requested_at IS NULL;
    ELSE
        PERFORM note_change(b.partner, 'folder', b.name, NEW.name, FALSE) FROM knowledge_bases b WHERE b.id = NEW.base_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_folders_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_folders
    FOR EACH ROW EXECUTE FUNCTION knowledge_folders_changed();

CREATE FUNCTION knowledge_documents_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(b.partner, 'document', b.name, OLD.id, TRUE) FROM knowledge_bases b WHERE b.id = OLD.base_id AND b.deletion_requested_at IS NULL;
    ELSE
        PERFORM note_change(b.partner, 'document', b.name, NEW.id, FALSE) FROM knowledge_bases b WHERE b.id = NEW.base_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_documents_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_documents
    FOR EACH ROW EXECUTE FUNCTION knowledge_documents_changed();

CREATE FUNCTION knowledge_channels_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(b.partner, 'folder', b.name, f.name, FALSE) FROM knowledge_bases b JOIN knowledge_folders f ON f.id = OLD.folder_id WHERE b.id = OLD.base_id;
    ELSE
        PERFORM note_change(b.partner, 'folder', b.name, f.name, FALSE) FROM knowledge_bases b JOIN knowledge_folders f ON f.id = NEW.folder_id WHERE b.id = NEW.base_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_channels_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_channels
    FOR EACH ROW EXECUTE FUNCTION knowledge_channels_changed();

CREATE FUNCTION knowledge_usage_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(b.partner, 'budget', b.name, b.name, FALSE) FROM knowledge_bases b WHERE b.id = OLD.base_id;
    ELSE
        PERFORM note_change(b.partner, 'budget', b.name, b.name, FALSE) FROM knowledge_bases b WHERE b.id = NEW.base_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_usage_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_usage
    FOR EACH ROW EXECUTE FUNCTION knowledge_usage_changed();

CREATE FUNCTION calls_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'call', '', OLD.id, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'call', '', NEW.id, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER calls_changed AFTER INSERT OR UPDATE OF state, ongoing_at, ended_at, taken_at OR DELETE ON calls
    FOR EACH ROW EXECUTE FUNCTION calls_changed();

CREATE FUNCTION webhook_deliveries_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'delivery', '', OLD.id, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'delivery', '', NEW.id, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER webhook_deliveries_changed AFTER INSERT OR UPDATE OF state, attempts OR DELETE ON webhook_deliveries
    FOR EACH ROW EXECUTE FUNCTION webhook_deliveries_changed();

CREATE FUNCTION transcripts_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'transcript', '', OLD.id, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'transcript', '', NEW.id, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER transcripts_changed AFTER INSERT OR UPDATE OF status, window_sample OR DELETE ON transcripts
    FOR EACH ROW EXECUTE FUNCTION transcripts_changed();

CREATE FUNCTION dialog_analyses_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'analysis', '', OLD.id, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'analysis', '', NEW.id, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER dialog_analyses_changed AFTER INSERT OR UPDATE OF state, asked OR DELETE ON dialog_analyses
    FOR EACH ROW EXECUTE FUNCTION dialog_analyses_changed();

CREATE FUNCTION completions_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'completion', '', OLD.id, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'completion', '', NEW.id, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER completions_changed AFTER INSERT OR UPDATE OF state OR DELETE ON completions
    FOR EACH ROW EXECUTE FUNCTION completions_changed();

CREATE FUNCTION characters_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'character', '', OLD.name, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'character', '', NEW.name, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER characters_changed AFTER INSERT OR UPDATE OR DELETE ON characters
    FOR EACH ROW EXECUTE FUNCTION characters_changed();

CREATE FUNCTION api_keys_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'key', '', OLD.id, TRUE);
    ELSE
        PERFORM note_change(NEW.partner, 'key', '', NEW.id, FALSE);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER api_keys_changed AFTER INSERT OR UPDATE OF revoked_at OR DELETE ON api_keys
    FOR EACH ROW EXECUTE FUNCTION api_keys_changed();

CREATE FUNCTION voices_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(OLD.partner, 'voice', '', OLD.name, TRUE);
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.name <> NEW.name THEN
        PERFORM note_change(OLD.partner, 'voice', '', OLD.name, TRUE);
    END IF;
    PERFORM note_change(NEW.partner, 'voice', '', NEW.name, FALSE);
    RETURN NULL;
END
$$;

CREATE TRIGGER voices_changed AFTER INSERT OR UPDATE OR DELETE ON voices
    FOR EACH ROW EXECUTE FUNCTION voices_changed();

CREATE FUNCTION voice_samples_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(v.partner, 'voice', '', v.name, FALSE) FROM voices v WHERE v.id = OLD.voice_id;
    ELSE
        PERFORM note_change(v.partner, 'voice', '', v.name, FALSE) FROM voices v WHERE v.id = NEW.voice_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER voice_samples_changed AFTER INSERT OR UPDATE OF blob_key OR DELETE ON voice_samples
    FOR EACH ROW EXECUTE FUNCTION voice_samples_changed();

CREATE FUNCTION voice_embeddings_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(v.partner, 'voice', '', v.name, FALSE) FROM voices v WHERE v.id = OLD.voice_id;
    ELSE
        PERFORM note_change(v.partner, 'voice', '', v.name, FALSE) FROM voices v WHERE v.id = NEW.voice_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER voice_embeddings_changed AFTER INSERT OR UPDATE OF status, given OR DELETE ON voice_embeddings
    FOR EACH ROW EXECUTE FUNCTION voice_embeddings_changed();
