-- What lists of knowledge sort, filter and add up. Triggers keep the columns of documents, so that nodes of earlier versions keep them as well.

-- Settling a request locks its budget, then usage, then documents. Whoever has begun that ends first.
LOCK TABLE quotas IN EXCLUSIVE MODE;

-- Lower case, for sorting and filtering. Databases fold ASCII alone, or differently: other names are empty until the server folds them.
ALTER TABLE knowledge_bases ADD COLUMN sort_name TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE knowledge_folders ADD COLUMN sort_name TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE knowledge_documents ADD COLUMN sort_name TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Bytes of the original, else of the text, else of the final content.
ALTER TABLE knowledge_documents ADD COLUMN size_bytes BIGINT NOT NULL DEFAULT 0;

-- Null without text, or final content.
ALTER TABLE knowledge_documents ADD COLUMN text_characters BIGINT;

ALTER TABLE knowledge_documents ADD COLUMN final_characters BIGINT;

-- Cost of the latest rewriting in units of 1e-8 dollars, null without one; false if that is a lower bound.
ALTER TABLE knowledge_documents ADD COLUMN rewrite_cost BIGINT;

ALTER TABLE knowledge_documents ADD COLUMN rewrite_known BOOLEAN NOT NULL DEFAULT TRUE;

-- Requests to transcribe that were sent: their cost in units of 1e-8 dollars, their number, and how many have no cost.
ALTER TABLE knowledge_documents ADD COLUMN reading_cost BIGINT NOT NULL DEFAULT 0;

ALTER TABLE knowledge_documents ADD COLUMN reading_requests BIGINT NOT NULL DEFAULT 0;

ALTER TABLE knowledge_documents ADD COLUMN reading_unpriced BIGINT NOT NULL DEFAULT 0;

-- Input and output tokens of all settled requests.
ALTER TABLE knowledge_documents ADD COLUMN tokens BIGINT NOT NULL DEFAULT 0;

-- When it began to wait for capacity in a budget.
ALTER TABLE knowledge_documents ADD COLUMN blocked_at BIGINT;

-- What an unknown request was decided to have used.
ALTER TABLE knowledge_usage ADD COLUMN taken_for TEXT CHECK (taken_for IN ('bound', 'nothing'));

ALTER TABLE knowledge_usage ADD COLUMN decided_at BIGINT;

CREATE INDEX knowledge_usage_decided ON knowledge_usage (base_id, id) WHERE decided_at IS NOT NULL;

-- The newest 16 begins and ends of the steps of each document. With reasons of at most 100 characters they take about 4 KiB, half of what a
-- document is charged for.
CREATE TABLE knowledge_steps (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id TEXT NOT NULL REFERENCES knowledge_documents (id) ON DELETE CASCADE,
    step TEXT NOT NULL CHECK (step IN ('digitize', 'rewrite', 'embed')),
    state TEXT NOT NULL,
    -- Why it failed or waits.
    reason TEXT,
    at BIGINT NOT NULL
);

CREATE INDEX knowledge_steps_document ON knowledge_steps (document_id, id);

-- The backfill is no change that anybody is told of.
DROP TRIGGER knowledge_bases_changed ON knowledge_bases;

DROP TRIGGER knowledge_folders_changed ON knowledge_folders;

DROP TRIGGER knowledge_documents_changed ON knowledge_documents;

UPDATE knowledge_bases SET sort_name = LOWER(name COLLATE "C") WHERE octet_length(name) = length(name);

UPDATE knowledge_folders SET sort_name = LOWER(name COLLATE "C") WHERE octet_length(name) = length(name);

-- One statement, as each leaves a dead copy of all rows that it writes.
UPDATE knowledge_documents SET sort_name = CASE WHEN octet_length(d.name) = length(d.name) THEN LOWER(d.name COLLATE "C") ELSE '' END,
    blocked_at = CASE WHEN 'blocked' IN (d.digitizing, d.rewriting, d.embedding) THEN d.updated_at END,
    size_bytes = COALESCE(c.original_bytes, c.text_bytes, c.final_bytes, 0),
    text_characters = c.text_characters,
    final_characters = c.final_characters,
    rewrite_cost = r.cost,
    rewrite_known = COALESCE(r.complete AND NOT r.asking, TRUE),
    tokens = COALESCE(u.tokens, 0),
    reading_cost = COALESCE(u.cost, 0),
    reading_requests = COALESCE(u.requests, 0),
    reading_unpriced = COALESCE(u.unpriced, 0)
FROM knowledge_documents AS d
LEFT JOIN (SELECT document_id,
        MAX(bytes) FILTER (WHERE variant = 'original') AS original_bytes,
        MAX(bytes) FILTER (WHERE variant = 'digitized') AS text_bytes,
        MAX(bytes) FILTER (WHERE variant = 'rewritten') AS final_bytes,
        MAX(COALESCE(characters, 0)) FILTER (WHERE variant = 'digitized') AS text_characters,
        MAX(COALESCE(characters, 0)) FILTER (WHERE variant = 'rewritten') AS final_characters
    FROM knowledge_contents WHERE variant IN ('original', 'digitized', 'rewritten') GROUP BY document_id) AS c ON c.document_id = d.id
LEFT JOIN knowledge_rewrites AS r ON r.document_id = d.id
LEFT JOIN (SELECT document_id,
        CAST(SUM(COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0)) AS BIGINT) AS tokens,
        CAST(SUM(cost) FILTER (WHERE kind = 'transcribe') AS BIGINT) AS cost,
        COUNT(*) FILTER (WHERE kind = 'transcribe') AS requests,
        COUNT(*) FILTER (WHERE kind = 'transcribe' AND cost IS NULL) AS unpriced
    FROM knowledge_usage WHERE outcome <> 'pending' GROUP BY document_id) AS u ON u.document_id = d.id
WHERE d.id = knowledge_documents.id;

-- Nobody is told that a name was folded.
CREATE TRIGGER knowledge_bases_changed AFTER INSERT OR DELETE ON knowledge_bases
    FOR EACH ROW EXECUTE FUNCTION knowledge_bases_changed();

CREATE TRIGGER knowledge_bases_updated AFTER UPDATE ON knowledge_bases
    FOR EACH ROW WHEN (OLD.sort_name = NEW.sort_name OR OLD.name <> NEW.name) EXECUTE FUNCTION knowledge_bases_changed();

CREATE TRIGGER knowledge_folders_changed AFTER INSERT OR DELETE ON knowledge_folders
    FOR EACH ROW EXECUTE FUNCTION knowledge_folders_changed();

CREATE TRIGGER knowledge_folders_updated AFTER UPDATE ON knowledge_folders
    FOR EACH ROW WHEN (OLD.sort_name = NEW.sort_name OR OLD.name <> NEW.name) EXECUTE FUNCTION knowledge_folders_changed();

CREATE TRIGGER knowledge_documents_changed AFTER INSERT OR DELETE ON knowledge_documents
    FOR EACH ROW EXECUTE FUNCTION knowledge_documents_changed();

CREATE TRIGGER knowledge_documents_updated AFTER UPDATE ON knowledge_documents
    FOR EACH ROW WHEN (OLD.sort_name = NEW.sort_name OR OLD.name <> NEW.name) EXECUTE FUNCTION knowledge_documents_changed();

-- All that filters, orders and sums of documents read.
CREATE INDEX knowledge_documents_listed ON knowledge_documents (base_id, folder_id, sort_name, id, size_bytes, text_characters,
    final_characters, rewrite_cost, rewrite_known, reading_cost, reading_requests, reading_unpriced, tokens, digitizing, rewriting,
    embedding, deletion_requested_at, updated_at);

-- Names that the server has to fold.
CREATE INDEX knowledge_documents_unfolded ON knowledge_documents (id) WHERE sort_name = '';

-- Drafts are few, and most bases have none.
CREATE INDEX knowledge_contents_drafts ON knowledge_contents (document_id, characters) WHERE variant = 'draft';

DROP INDEX transcripts_partner;

CREATE INDEX transcripts_partner ON transcripts (partner, id);

DROP INDEX dialog_analyses_partner;

CREATE INDEX dialog_analyses_partner ON dialog_analyses (partner, id);

CREATE FUNCTION knowledge_contents_measured_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Contents that another transaction commits meanwhile are seen by the statement after the lock.
    PERFORM 1 FROM knowledge_documents WHERE id = NEW.document_id FOR NO KEY UPDATE;
    UPDATE knowledge_documents SET
        size_bytes = COALESCE((SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'original'),
            (SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'digitized'),
            (SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'rewritten'), 0),
        text_characters = (SELECT COALESCE(c.characters, 0) FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'digitized'),
        final_characters = (SELECT COALESCE(c.characters, 0) FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'rewritten')
    WHERE id = NEW.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_contents_measured_added AFTER INSERT ON knowledge_contents FOR EACH ROW WHEN (NEW.variant IN ('original', 'digitized', 'rewritten')) EXECUTE FUNCTION knowledge_contents_measured_added();

CREATE FUNCTION knowledge_contents_measured_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM knowledge_documents WHERE id = NEW.document_id FOR NO KEY UPDATE;
    UPDATE knowledge_documents SET
        size_bytes = COALESCE((SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'original'),
            (SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'digitized'),
            (SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'rewritten'), 0),
        text_characters = (SELECT COALESCE(c.characters, 0) FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'digitized'),
        final_characters = (SELECT COALESCE(c.characters, 0) FROM knowledge_contents c WHERE c.document_id = NEW.document_id AND c.variant = 'rewritten')
    WHERE id = NEW.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_contents_measured_changed AFTER UPDATE OF variant, bytes, characters ON knowledge_contents FOR EACH ROW WHEN (OLD.variant IN ('original', 'digitized', 'rewritten') OR NEW.variant IN ('original', 'digitized', 'rewritten')) EXECUTE FUNCTION knowledge_contents_measured_changed();

CREATE FUNCTION knowledge_contents_measured_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM knowledge_documents WHERE id = OLD.document_id FOR NO KEY UPDATE;
    UPDATE knowledge_documents SET
        size_bytes = COALESCE((SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = OLD.document_id AND c.variant = 'original'),
            (SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = OLD.document_id AND c.variant = 'digitized'),
            (SELECT c.bytes FROM knowledge_contents c WHERE c.document_id = OLD.document_id AND c.variant = 'rewritten'), 0),
        text_characters = (SELECT COALESCE(c.characters, 0) FROM knowledge_contents c WHERE c.document_id = OLD.document_id AND c.variant = 'digitized'),
        final_characters = (SELECT COALESCE(c.characters, 0) FROM knowledge_contents c WHERE c.document_id = OLD.document_id AND c.variant = 'rewritten')
    WHERE id = OLD.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_contents_measured_removed AFTER DELETE ON knowledge_contents FOR EACH ROW WHEN (OLD.variant IN ('original', 'digitized', 'rewritten')) EXECUTE FUNCTION knowledge_contents_measured_removed();

CREATE FUNCTION knowledge_rewrites_counted_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_documents SET rewrite_cost = NEW.cost, rewrite_known = (NEW.complete AND NOT NEW.asking) WHERE id = NEW.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_rewrites_counted_added AFTER INSERT ON knowledge_rewrites FOR EACH ROW EXECUTE FUNCTION knowledge_rewrites_counted_added();

CREATE FUNCTION knowledge_rewrites_counted_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_documents SET rewrite_cost = NEW.cost, rewrite_known = (NEW.complete AND NOT NEW.asking) WHERE id = NEW.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_rewrites_counted_changed AFTER UPDATE OF cost, complete, asking ON knowledge_rewrites FOR EACH ROW EXECUTE FUNCTION knowledge_rewrites_counted_changed();

CREATE FUNCTION knowledge_rewrites_counted_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_documents SET rewrite_cost = NULL, rewrite_known = TRUE WHERE id = OLD.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_rewrites_counted_removed AFTER DELETE ON knowledge_rewrites FOR EACH ROW EXECUTE FUNCTION knowledge_rewrites_counted_removed();

CREATE FUNCTION knowledge_usage_counted_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_documents SET tokens = tokens + CASE WHEN NEW.outcome <> 'pending' THEN COALESCE(NEW.input_tokens, 0) + COALESCE(NEW.output_tokens, 0) ELSE 0 END - CASE WHEN OLD.outcome <> 'pending' THEN COALESCE(OLD.input_tokens, 0) + COALESCE(OLD.output_tokens, 0) ELSE 0 END,
        reading_cost = reading_cost + CASE WHEN NEW.outcome <> 'pending' AND NEW.kind = 'transcribe' THEN COALESCE(NEW.cost, 0) ELSE 0 END - CASE WHEN OLD.outcome <> 'pending' AND OLD.kind = 'transcribe' THEN COALESCE(OLD.cost, 0) ELSE 0 END,
        reading_requests = reading_requests + CASE WHEN NEW.outcome <> 'pending' AND NEW.kind = 'transcribe' THEN 1 ELSE 0 END - CASE WHEN OLD.outcome <> 'pending' AND OLD.kind = 'transcribe' THEN 1 ELSE 0 END,
        reading_unpriced = reading_unpriced + CASE WHEN NEW.outcome <> 'pending' AND NEW.kind = 'transcribe' AND NEW.cost IS NULL THEN 1 ELSE 0 END - CASE WHEN OLD.outcome <> 'pending' AND OLD.kind = 'transcribe' AND OLD.cost IS NULL THEN 1 ELSE 0 END
    WHERE id = NEW.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_usage_counted_changed AFTER UPDATE OF outcome, input_tokens, output_tokens, cost ON knowledge_usage FOR EACH ROW EXECUTE FUNCTION knowledge_usage_counted_changed();

CREATE FUNCTION knowledge_usage_counted_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_documents SET tokens = tokens - CASE WHEN OLD.outcome <> 'pending' THEN COALESCE(OLD.input_tokens, 0) + COALESCE(OLD.output_tokens, 0) ELSE 0 END,
        reading_cost = reading_cost - CASE WHEN OLD.outcome <> 'pending' AND OLD.kind = 'transcribe' THEN COALESCE(OLD.cost, 0) ELSE 0 END,
        reading_requests = reading_requests - CASE WHEN OLD.outcome <> 'pending' AND OLD.kind = 'transcribe' THEN 1 ELSE 0 END,
        reading_unpriced = reading_unpriced - CASE WHEN OLD.outcome <> 'pending' AND OLD.kind = 'transcribe' AND OLD.cost IS NULL THEN 1 ELSE 0 END
    WHERE id = OLD.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_usage_counted_removed AFTER DELETE ON knowledge_usage FOR EACH ROW WHEN (OLD.outcome <> 'pending') EXECUTE FUNCTION knowledge_usage_counted_removed();

CREATE FUNCTION knowledge_documents_stepped_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO knowledge_steps (document_id, step, state, at)
    SELECT NEW.id, s.step, 'queued', CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)
    FROM (SELECT 'digitize' AS step, NEW.digitizing AS state UNION ALL SELECT 'rewrite', NEW.rewriting UNION ALL SELECT 'embed', NEW.embedding) AS s
    WHERE s.state = 'queued';
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_documents_stepped_added AFTER INSERT ON knowledge_documents FOR EACH ROW WHEN ('queued' IN (NEW.digitizing, NEW.rewriting, NEW.embedding)) EXECUTE FUNCTION knowledge_documents_stepped_added();

CREATE FUNCTION knowledge_documents_digitizing_stepped() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO knowledge_steps (document_id, step, state, reason, at)
    SELECT NEW.id, 'digitize', NEW.digitizing, CASE WHEN NEW.digitizing IN ('failed', 'blocked') THEN SUBSTR(NEW.processing_error, 1, 100) END, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT);
    DELETE FROM knowledge_steps WHERE document_id = NEW.id
    AND id <= (SELECT k.id FROM knowledge_steps k WHERE k.document_id = NEW.id ORDER BY k.id DESC LIMIT 1 OFFSET 16);
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_documents_digitizing_stepped AFTER UPDATE OF digitizing ON knowledge_documents FOR EACH ROW WHEN (OLD.digitizing <> NEW.digitizing AND (OLD.digitizing IN ('none', 'done', 'failed', 'blocked') OR NEW.digitizing IN ('none', 'done', 'failed', 'blocked')) AND NEW.digitizing <> 'none') EXECUTE FUNCTION knowledge_documents_digitizing_stepped();

CREATE FUNCTION knowledge_documents_rewriting_stepped() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO knowledge_steps (document_id, step, state, reason, at)
    SELECT NEW.id, 'rewrite', NEW.rewriting, CASE WHEN NEW.rewriting IN ('failed', 'blocked') THEN SUBSTR(NEW.processing_error, 1, 100) END, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT);
    DELETE FROM knowledge_steps WHERE document_id = NEW.id
    AND id <= (SELECT k.id FROM knowledge_steps k WHERE k.document_id = NEW.id ORDER BY k.id DESC LIMIT 1 OFFSET 16);
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_documents_rewriting_stepped AFTER UPDATE OF rewriting ON knowledge_documents FOR EACH ROW WHEN (OLD.rewriting <> NEW.rewriting AND (OLD.rewriting IN ('none', 'done', 'failed', 'blocked') OR NEW.rewriting IN ('none', 'done', 'failed', 'blocked')) AND NEW.rewriting <> 'none') EXECUTE FUNCTION knowledge_documents_rewriting_stepped();

CREATE FUNCTION knowledge_documents_embedding_stepped() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO knowledge_steps (document_id, step, state, reason, at)
    SELECT NEW.id, 'embed', NEW.embedding, CASE WHEN NEW.embedding IN ('failed', 'blocked') THEN SUBSTR(NEW.embedding_error, 1, 100) END, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT);
    DELETE FROM knowledge_steps WHERE document_id = NEW.id
    AND id <= (SELECT k.id FROM knowledge_steps k WHERE k.document_id = NEW.id ORDER BY k.id DESC LIMIT 1 OFFSET 16);
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_documents_embedding_stepped AFTER UPDATE OF embedding ON knowledge_documents FOR EACH ROW WHEN (OLD.embedding <> NEW.embedding AND (OLD.embedding IN ('none', 'done', 'failed', 'blocked') OR NEW.embedding IN ('none', 'done', 'failed', 'blocked')) AND NEW.embedding <> 'none') EXECUTE FUNCTION knowledge_documents_embedding_stepped();

CREATE FUNCTION knowledge_bases_named_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_bases SET sort_name = CASE WHEN octet_length(NEW.name) = length(NEW.name) THEN LOWER(NEW.name COLLATE "C") ELSE '' END WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_bases_named_added AFTER INSERT ON knowledge_bases FOR EACH ROW WHEN (NEW.sort_name = '' AND octet_length(NEW.name) = length(NEW.name)) EXECUTE FUNCTION knowledge_bases_named_added();

CREATE FUNCTION knowledge_bases_named_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_bases SET sort_name = CASE WHEN octet_length(NEW.name) = length(NEW.name) THEN LOWER(NEW.name COLLATE "C") ELSE '' END WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_bases_named_changed AFTER UPDATE OF name ON knowledge_bases FOR EACH ROW WHEN (OLD.name <> NEW.name AND OLD.sort_name = NEW.sort_name) EXECUTE FUNCTION knowledge_bases_named_changed();

CREATE FUNCTION knowledge_folders_named_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_folders SET sort_name = CASE WHEN octet_length(NEW.name) = length(NEW.name) THEN LOWER(NEW.name COLLATE "C") ELSE '' END WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_folders_named_added AFTER INSERT ON knowledge_folders FOR EACH ROW WHEN (NEW.sort_name = '' AND octet_length(NEW.name) = length(NEW.name)) EXECUTE FUNCTION knowledge_folders_named_added();

CREATE FUNCTION knowledge_folders_named_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_folders SET sort_name = CASE WHEN octet_length(NEW.name) = length(NEW.name) THEN LOWER(NEW.name COLLATE "C") ELSE '' END WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_folders_named_changed AFTER UPDATE OF name ON knowledge_folders FOR EACH ROW WHEN (OLD.name <> NEW.name AND OLD.sort_name = NEW.sort_name) EXECUTE FUNCTION knowledge_folders_named_changed();

CREATE FUNCTION knowledge_documents_named_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_documents SET sort_name = CASE WHEN octet_length(NEW.name) = length(NEW.name) THEN LOWER(NEW.name COLLATE "C") ELSE '' END WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_documents_named_added AFTER INSERT ON knowledge_documents FOR EACH ROW WHEN (NEW.sort_name = '' AND octet_length(NEW.name) = length(NEW.name)) EXECUTE FUNCTION knowledge_documents_named_added();

CREATE FUNCTION knowledge_documents_named_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE knowledge_documents SET sort_name = CASE WHEN octet_length(NEW.name) = length(NEW.name) THEN LOWER(NEW.name COLLATE "C") ELSE '' END WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_documents_named_changed AFTER UPDATE OF name ON knowledge_documents FOR EACH ROW WHEN (OLD.name <> NEW.name AND OLD.sort_name = NEW.sort_name) EXECUTE FUNCTION knowledge_documents_named_changed();
