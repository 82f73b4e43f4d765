ALTER TABLE calls ADD COLUMN character_reference TEXT;

UPDATE calls SET character_reference = jsonb(character_json) ->> 'reference';

CREATE INDEX calls_list ON calls (partner, id)
