-- Questions of a knowledge base with the documents that answer them, for evaluations of its retrieval.
CREATE TABLE knowledge_questions (
    id TEXT NOT NULL PRIMARY KEY,
    base_id TEXT NOT NULL REFERENCES knowledge_bases (id) ON DELETE CASCADE,
    user_message TEXT NOT NULL,
    -- What was said before it.
    robot_message TEXT,
    -- The name that stands for "you" in the second form of the question.
    character_replacement_name TEXT,
    -- What the question counts in the storage of its partner, with its documents and its results.
    bytes BIGINT NOT NULL,
    -- Goes up with every change.
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX knowledge_questions_base ON knowledge_questions (base_id, id, bytes);

CREATE TABLE knowledge_question_documents (
    question_id TEXT NOT NULL REFERENCES knowledge_questions (id) ON DELETE CASCADE,
    document_id TEXT NOT NULL REFERENCES knowledge_documents (id) ON DELETE CASCADE,
    PRIMARY KEY (question_id, document_id)
);

CREATE INDEX knowledge_question_documents_document ON knowledge_question_documents (document_id);

CREATE TABLE knowledge_evaluations (
    id TEXT NOT NULL PRIMARY KEY,
    base_id TEXT NOT NULL REFERENCES knowledge_bases (id) ON DELETE CASCADE,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'done', 'failed')),
    -- How many documents of each ranking count.
    cutoff BIGINT NOT NULL,
    -- How the streams are fused, JSON.
    parameters TEXT NOT NULL,
    -- What the index held at the beginning and at the end, JSON.
    conditions TEXT,
    -- The figures of all questions, JSON; null until it is done.
    figures TEXT,
    error TEXT,
    -- Questions at the beginning, and those that were asked.
    questions BIGINT NOT NULL,
    asked BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);

CREATE INDEX knowledge_evaluations_base ON knowledge_evaluations (base_id, id);

-- A base has one at a time.
CREATE UNIQUE INDEX knowledge_evaluations_unfinished ON knowledge_evaluations (base_id) WHERE status IN ('queued', 'running');

CREATE TABLE knowledge_evaluation_results (
    evaluation_id TEXT NOT NULL REFERENCES knowledge_evaluations (id) ON DELETE CASCADE,
    question_id TEXT NOT NULL REFERENCES knowledge_questions (id) ON DELETE CASCADE,
    -- The revision of the question that was asked, and at which ranks its documents were found, JSON; null until it is asked.
    revision BIGINT,
    outcome TEXT,
    PRIMARY KEY (evaluation_id, question_id)
);

CREATE INDEX knowledge_evaluation_results_question ON knowledge_evaluation_results (question_id);

CREATE FUNCTION knowledge_questions_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(b.partner, 'question', b.name, OLD.id, TRUE) FROM knowledge_bases b WHERE b.id = OLD.base_id AND b.deletion_requested_at IS NULL;
    ELSE
        PERFORM note_change(b.partner, 'question', b.name, NEW.id, FALSE) FROM knowledge_bases b WHERE b.id = NEW.base_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_questions_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_questions
    FOR EACH ROW EXECUTE FUNCTION knowledge_questions_changed();

CREATE FUNCTION knowledge_evaluations_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_change(b.partner, 'evaluation', b.name, OLD.id, TRUE) FROM knowledge_bases b WHERE b.id = OLD.base_id AND b.deletion_requested_at IS NULL;
    ELSE
        PERFORM note_change(b.partner, 'evaluation', b.name, NEW.id, FALSE) FROM knowledge_bases b WHERE b.id = NEW.base_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_evaluations_changed AFTER INSERT OR UPDATE OR DELETE ON knowledge_evaluations
    FOR EACH ROW EXECUTE FUNCTION knowledge_evaluations_changed();

CREATE FUNCTION knowledge_questions_forgotten() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM changes WHERE partner = OLD.partner AND kind IN ('question', 'evaluation') AND base = OLD.name;
    RETURN NULL;
END
$$;

CREATE TRIGGER knowledge_questions_forgotten AFTER DELETE ON knowledge_bases
    FOR EACH ROW EXECUTE FUNCTION knowledge_questions_forgotten();
