//! What tests ask of the storage of a partner.

use colloquy_accounts::storage;
use colloquy_store::{Executor as _, StoreError};

use crate::TestWork;

/// Corrects the sums of the texts of partners that differ from their rows: those of a capability, as its query `texts` has them, and those of accounts.
/// Returns how many differed.
pub async fn recount_texts(work: &TestWork, texts: &str) -> Result<u64, StoreError> {
    storage::recount_texts(work.store(), &[texts, storage::TEXTS]).await
}

/// The bytes of the texts of `acme` as they are counted, which are those of its rows.
pub async fn counted(work: &TestWork) -> u64 {
    let db = work.store().db();
    let sql = "SELECT texts FROM partner_storage WHERE partner = 'acme'";
    let counted = db.fetch_count(sql).await.expect("a number");
    let of_rows = "SELECT CAST(COALESCE(SUM(t.bytes), 0) AS BIGINT) FROM ( \
                 SELECT octet_length(r.input) + octet_length(r.response) AS bytes \
                 FROM responses r JOIN quotas q ON q.id = r.quota WHERE q.partner = 'acme' \
                 UNION ALL SELECT octet_length(personality) + octet_length(parameters) FROM character_versions WHERE partner = 'acme' \
                 UNION ALL SELECT COALESCE(octet_length(input), 0) + COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0) \
                 FROM dialog_analyses WHERE partner = 'acme' \
                 UNION ALL SELECT COALESCE(octet_length(question), 0) + COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0) \
                 FROM completions WHERE partner = 'acme' \
                 UNION ALL SELECT octet_length(character_json) + octet_length(character_params) \
                 FROM calls WHERE partner = 'acme' AND ended_at IS NULL \
                 UNION ALL SELECT COALESCE(octet_length(transcript), 0) + COALESCE(octet_length(metadata), 0) \
                 FROM calls WHERE partner = 'acme' AND ended_at IS NOT NULL \
                 UNION ALL SELECT 1024 + octet_length(options) + COALESCE(octet_length(audio_url), 0) + COALESCE(octet_length(text), 0) \
                 + COALESCE(octet_length(error), 0) + part_bytes FROM transcripts WHERE partner = 'acme' \
                 UNION ALL SELECT 1024 + octet_length(url) + octet_length(payload) FROM webhook_deliveries WHERE partner = 'acme' \
                 UNION ALL SELECT 1024 + COALESCE(octet_length(allowed_origins), 0) FROM api_keys WHERE partner = 'acme' \
                 UNION ALL SELECT 2048 + COALESCE(octet_length(allowed_models), 0) + COALESCE(octet_length(allowed_characters), 0) \
                 FROM quotas WHERE partner = 'acme' AND purpose = 'key') AS t";
    assert_eq!(db.fetch_count(of_rows).await.expect("a number"), counted);
    counted
}
