-- How many bytes the texts of a partner have together: stored responses, versions of characters, analyses and completions. They count
-- against its storage limit as its files do.
ALTER TABLE partner_storage ADD COLUMN texts BIGINT NOT NULL DEFAULT 0;

INSERT INTO partner_storage (partner, bytes, texts)
SELECT kept.partner, 0, SUM(kept.bytes) FROM (
    SELECT q.partner AS partner, octet_length(r.input) + octet_length(r.response) AS bytes
        FROM responses r JOIN quotas q ON q.id = r.quota
    UNION ALL SELECT partner, octet_length(personality) + octet_length(parameters) FROM character_versions
    UNION ALL SELECT partner, COALESCE(octet_length(input), 0) + COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0)
        FROM dialog_analyses
    UNION ALL SELECT partner, COALESCE(octet_length(question), 0) + COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0)
        FROM completions
) AS kept WHERE TRUE GROUP BY kept.partner
ON CONFLICT (partner) DO UPDATE SET texts = excluded.texts;
