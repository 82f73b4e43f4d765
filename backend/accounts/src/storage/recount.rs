//! Recounts the texts of partners.
//!
//! A node of a version that did not count texts stores and deletes them without a change of the sum. While such nodes run beside newer
//! ones, as in a rolling restart, the sums drift from the rows; nothing else puts them right.

use colloquy_store::{Executor, Store, StoreError, statement};

use crate::{Tenant, store::share_partner};

/// How many partners are read at once.
const PARTNERS: usize = 500;

/// Compares the sum of each partner's texts with its rows, and corrects the sum where they differ. Returns how many sums were corrected.
/// Safe on many nodes at once, and beside whatever stores and deletes texts.
///
/// `kinds` are queries, one for each kind of text, that return the bytes of each text of the partner `$1` as `bytes`.
///
/// # Errors
/// The database's failure. Sums before it are corrected.
pub async fn recount_texts(store: &Store, kinds: &[&str]) -> Result<u64, StoreError> {
    let sql = comparison(kinds);
    let (db, mut corrected, mut after) = (store.patient(), 0, String::new());
    loop {
        let partners = partners_after(&db, &after).await?;
        for PartnerRow { id } in &partners {
            // Rows and sum change in one transaction, so one statement that reads both sees them as they belong together.
            if !compare(&db, &sql, id).await?.is_some_and(|it| it.differs()) {
                continue;
            }
            if let Some(Comparison { counted, actual }) = correct(store, &sql, id).await? {
                corrected += 1;
                tracing::warn!(
                    partner = id.as_str(),
                    counted,
                    actual,
                    "the bytes of a partner's texts were counted wrongly and are corrected"
                );
            }
        }
        match partners.into_iter().nth(PARTNERS - 1) {
            Some(last) => after = last.id,
            None => return Ok(corrected),
        }
    }
}

#[derive(sqlx::FromRow)]
struct PartnerRow {
    id: String,
}

async fn partners_after(db: &impl Executor, after: &str) -> Result<Vec<PartnerRow>, StoreError> {
    let sql = format!("SELECT id FROM partners WHERE id > $1 ORDER BY id LIMIT {PARTNERS}");
    db.fetch_all(statement(sql, [after.into()])).await
}

/// The bytes of a partner's texts.
#[derive(sqlx::FromRow)]
struct Comparison {
    /// Those that count in its storage.
    counted: i64,
    /// Those that its rows have.
    actual: i64,
}

impl Comparison {
    fn differs(&self) -> bool {
        self.counted != self.actual
    }
}

/// The statement that reads a [`Comparison`].
fn comparison(kinds: &[&str]) -> String {
    format!(
        "SELECT COALESCE((SELECT texts FROM partner_storage WHERE partner = $1), 0) AS counted, \
         (SELECT CAST(COALESCE(SUM(kept.bytes), 0) AS BIGINT) FROM ({}) AS kept) AS actual",
        kinds.join(" UNION ALL ")
    )
}

async fn compare(
    db: &impl Executor,
    sql: &str,
    partner: &str,
) -> Result<Option<Comparison>, StoreError> {
    db.fetch_one(statement(sql.to_owned(), [partner.into()]))
        .await
}

/// Sets the sum to what the rows have, and returns what both were, or `None` if they were equal or the partner is gone.
async fn correct(
    store: &Store,
    sql: &str,
    partner: &str,
) -> Result<Option<Comparison>, StoreError> {
    let transaction = store.begin_patient().await?;
    share_partner(&transaction, &Tenant::of_row(partner)).await?;
    // Holds the row of the sum. Whoever changed it before has committed the rows as well, which are seen below; the rows of all others
    // are not, and they change the sum after this.
    let hold = "INSERT INTO partner_storage (partner, bytes, texts) SELECT id, 0, 0 FROM partners WHERE id = $1 \
                ON CONFLICT (partner) DO UPDATE SET texts = partner_storage.texts";
    if transaction
        .execute(statement(hold, [partner.into()]))
        .await?
        == 0
    {
        return Ok(None);
    }
    let found = compare(&transaction, sql, partner).await?;
    let Some(found) = found.filter(Comparison::differs) else {
        return Ok(None);
    };
    let set = "UPDATE partner_storage SET texts = $2 WHERE partner = $1";
    let values = [partner.into(), found.actual.into()];
    transaction.execute(statement(set, values)).await?;
    transaction.commit().await?;
    Ok(Some(found))
}
