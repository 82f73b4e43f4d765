//! The SQL of calls.

mod lost;

use std::{sync::Arc, time::Duration};

use colloquy_accounts::{Tenant, storage};
use colloquy_base::money::Usd;
use colloquy_characters::Character;
use colloquy_kernel::node;
use colloquy_store::{Executor, Order, Slice, StoreError, Transaction, statement};
use serde_json::{Map, Value};

pub(super) use self::lost::{count_open, end_lost, end_not_joined};
use super::{
    CallSetup, CallState, TranscriptLine, bill::Cost, ending::EndRequests, room::PageOrigin,
};

/// The query of the bytes of each call of the partner `$1` that count, for `storage::recount_texts`: those of its character and parameters
/// until it ends, and those of its transcript and metadata from then on.
pub const TEXTS: &str = "SELECT octet_length(character_json) + octet_length(character_params) AS bytes \
     FROM calls WHERE partner = $1 AND state IN ('starting', 'ongoing') \
     UNION ALL SELECT ended_bytes FROM calls WHERE partner = $1 AND ended_bytes > 0";

pub(super) struct NewCall {
    pub(super) id: String,
    pub(super) tenant: Tenant,
    /// The page that placed it with a publishable key.
    pub(super) page: Option<PageOrigin>,
    /// Who pays for it.
    pub(super) quota: Option<String>,
    /// As it is now: later edits of a saved one do not reach the call.
    pub(super) character: Arc<Character>,
    pub(super) character_params: Map<String, Value>,
    pub(super) time_limit_seconds: u32,
    pub(super) webhook_url: Option<String>,
    /// When its URL expires, on the database's clock, in seconds since 1970.
    pub(super) expires_s: i64,
    /// On the database's clock, too, so that the clock of no node matters to a call that nobody has joined.
    pub(super) created_at: i64,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct CallRow {
    pub(super) id: String,
    pub(super) partner: String,
    state: String,
    character_reference: Option<String>,
    character_json: String,
    character_params: String,
    /// How many bytes of its character and parameters count until it ends.
    pub(super) character_bytes: i64,
    /// How many bytes of its transcript and metadata count since it ended.
    pub(super) ended_bytes: i64,
    /// With how many bytes it counts among the calls of its publishable key that ended without media.
    pub(super) silent_bytes: i64,
    pub(super) page_key: Option<String>,
    time_limit_seconds: i64,
    pub(super) webhook_url: Option<String>,
    pub(super) expires_at: i64,
    pub(super) endpoint: Option<String>,
    pub(super) taken_at: Option<i64>,
    pub(super) call_seconds: Option<i64>,
    pub(super) server_runtime_seconds: Option<i64>,
    error_code: Option<String>,
    transcript: Option<String>,
    visitor: Option<String>,
    metadata: Option<String>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    ended_at: Option<i64>,
    cost: Option<i64>,
    cost_is_lower_bound: bool,
}

impl CallRow {
    pub(super) fn state(&self) -> Result<CallState, StoreError> {
        CallState::parse(&self.state)
            .ok_or_else(|| StoreError::malformed(format!("call {} has no known state", self.id)))
    }

    /// The saved character as the API shows it; `None` for an inline one.
    pub(super) fn character(&self) -> Option<String> {
        let reference = self.character_reference.as_deref();
        reference.map(|reference| format!("repo:{reference}"))
    }

    /// Returns why the call failed; `None` if it did not.
    pub(super) fn error_code(&self) -> Result<Option<String>, StoreError> {
        let has_failed = self.state()? == CallState::Error;
        Ok(self.error_code.clone().filter(|_| has_failed))
    }

    pub(super) fn transcript(&self) -> Result<Vec<TranscriptLine>, StoreError> {
        self.transcript.as_deref().map_or_else(
            || Ok(Vec::new()),
            |lines| serde_json::from_str(lines).map_err(StoreError::malformed),
        )
    }

    /// Returns the facts that became known of the visitor.
    pub(super) fn visitor(&self) -> Result<Map<String, Value>, StoreError> {
        self.visitor.as_deref().map_or_else(
            || Ok(Map::new()),
            |facts| serde_json::from_str(facts).map_err(StoreError::malformed),
        )
    }

    /// Returns the time at which the call ended, in milliseconds since 1970; `None` while it is not over. A call that was presumed lost may run on.
    pub(super) fn ended_at(&self) -> Result<Option<i64>, StoreError> {
        let is_over = matches!(self.state()?, CallState::Completed | CallState::Error);
        Ok(self.ended_at.filter(|_| is_over))
    }

    /// Returns the cost of the call; `None` while it is not over, if the cost is not known, and if the call ended under an earlier version.
    pub(super) fn cost(&self) -> Result<Option<Cost>, StoreError> {
        let cost = self.cost.filter(|_| self.ended_at.is_some());
        let cost = cost.map(|cost| Cost {
            usd: Usd(cost.unsigned_abs()),
            is_lower_bound: self.cost_is_lower_bound,
        });
        Ok(self.ended_at()?.and(cost))
    }

    /// Takes what it cost, which [`set_cost`] has stored.
    pub(super) fn set_cost(&mut self, cost: Cost) {
        self.cost = Some(storage::counted(cost.usd.0));
        self.cost_is_lower_bound = cost.is_lower_bound;
    }

    /// How many bytes its character has.
    pub(super) fn bytes_of_character(&self) -> usize {
        self.character_json.len()
    }

    /// The longest it may last.
    pub(super) fn time_limit(&self) -> Duration {
        Duration::from_secs(self.time_limit_seconds.unsigned_abs())
    }

    /// What the page passed on when it joined.
    pub(super) fn metadata(&self) -> Result<Option<Map<String, Value>>, StoreError> {
        let metadata = self.metadata.as_deref().map(serde_json::from_str);
        metadata.transpose().map_err(StoreError::malformed)
    }

    pub(super) fn setup(self, end_requests: EndRequests) -> Result<CallSetup, StoreError> {
        Ok(CallSetup {
            end_requests,
            tenant: Tenant::of_row(&self.partner),
            character: Arc::new(self.parsed_character()?),
            character_params: serde_json::from_str(&self.character_params)
                .map_err(StoreError::malformed)?,
            time_limit: self.time_limit(),
            id: self.id,
        })
    }

    fn parsed_character(&self) -> Result<Character, StoreError> {
        serde_json::from_str(&self.character_json).map_err(StoreError::malformed)
    }
}

/// The columns of a call besides its state.
const COLUMNS: &str = "id, partner, character_reference, character_json, character_params, character_bytes, ended_bytes, \
                       silent_bytes, page_key, time_limit_seconds, webhook_url, expires_at, endpoint, taken_at, call_seconds, \
                       server_runtime_seconds, error_code, transcript, visitor, metadata, created_at, updated_at, ended_at, cost, \
                       cost_is_lower_bound";

/// The same without what may be long and no list shows.
const LISTED: &str = "id, partner, character_reference, '' AS character_json, '' AS character_params, character_bytes, \
                      ended_bytes, silent_bytes, page_key, time_limit_seconds, webhook_url, expires_at, endpoint, taken_at, \
                      call_seconds, server_runtime_seconds, error_code, CAST(NULL AS TEXT) AS transcript, CAST(NULL AS TEXT) AS visitor, metadata, \
                      created_at, updated_at, ended_at, cost, cost_is_lower_bound";

/// The SQL that is true for a call that was presumed lost and runs on: its node lives, as [`node::LIVING`] has it, and has not said how the call
/// ended, which would have replaced the presumption.
pub(super) fn runs_on() -> String {
    format!(
        "(COALESCE(error_code, '') = '{NODE_LOST}' AND COALESCE(node_id, '') IN ({}))",
        node::LIVING
    )
}

/// The SQL of a call's state as it is shown: that of before for one that [`runs_on`].
fn shown_state() -> String {
    format!(
        "CASE WHEN NOT {} THEN state WHEN ongoing_at IS NULL THEN 'starting' ELSE 'ongoing' END",
        runs_on()
    )
}

/// The bytes of the characters and parameters of calls of publishable keys that have not begun.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct UnbegunBytes {
    /// Those of the calls of one key.
    pub(super) of_key: i64,
    /// Those of the calls of the key that were created from one network.
    pub(super) of_network: i64,
    /// Those of the calls of all publishable keys of the partner.
    pub(super) of_partner: i64,
    /// Those of the calls of all publishable keys of the partner that were created from the network.
    pub(super) of_partner_network: i64,
}

/// Adds up what the calls of the publishable keys of a partner have that have not begun: of all of them and of the page's key, and those among
/// them that were created from the network of the page's visitor, which are none if visitors are not told apart.
pub(super) async fn unbegun_bytes(
    db: &impl Executor,
    partner: &str,
    page: &PageOrigin,
) -> Result<UnbegunBytes, StoreError> {
    let sum = |condition: &str| {
        format!(
            "CAST(COALESCE(SUM(CASE WHEN {condition} THEN c.character_bytes ELSE 0 END), 0) AS BIGINT)"
        )
    };
    // The keys come first, so that the sums are read from the index of each key's calls. SQLite keeps the order of a cross join.
    let sql = format!(
        "SELECT {} AS of_key, {} AS of_network, {} AS of_partner, {} AS of_partner_network \
         FROM api_keys k CROSS JOIN calls c \
         WHERE k.partner = $1 AND k.kind = 'publishable' AND c.page_key = k.id AND c.page_key IS NOT NULL AND c.state = 'starting'",
        sum("c.page_key = $2"),
        sum("c.page_key = $2 AND c.page_network = $3"),
        sum("TRUE"),
        sum("c.page_network = $3"),
    );
    let network = page.network.map(|network| network.to_string());
    let values = [partner.into(), page.key.as_str().into(), network.into()];
    db.fetch_one(statement(sql, values))
        .await?
        .ok_or_else(|| StoreError::other("the sums of calls were not read"))
}

/// Returns the call, and how many bytes of text it has.
pub(super) async fn insert(
    db: &impl Executor,
    new: NewCall,
) -> Result<(CallRow, usize), StoreError> {
    let sql = format!(
        "INSERT INTO calls (id, partner, state, character_json, character_params, time_limit_seconds, webhook_url, \
         expires_at, created_at, updated_at, quota, character_reference, page_key, character_bytes, page_network) \
         VALUES ($1, $2, 'starting', $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12, $13) \
         RETURNING state, {COLUMNS}"
    );
    let character = serde_json::to_string(&*new.character).map_err(StoreError::other)?;
    let params = serde_json::to_string(&new.character_params).map_err(StoreError::other)?;
    let bytes = character.len() + params.len();
    let page = new.page.map(|page| {
        let network = page.network.map(|network| network.to_string());
        (page.key, network)
    });
    let (page_key, page_network) = page.unzip();
    let values = [
        new.id.into(),
        new.tenant.partner().as_str().into(),
        character.into(),
        params.into(),
        i64::from(new.time_limit_seconds).into(),
        new.webhook_url.into(),
        (new.expires_s * 1000).into(),
        new.created_at.into(),
        new.quota.into(),
        new.character.reference.clone().into(),
        page_key.into(),
        storage::counted(bytes as u64).into(),
        page_network.flatten().into(),
    ];
    let row = db
        .fetch_one(statement(sql, values))
        .await?
        .ok_or_else(|| StoreError::other("the new call was not stored"))?;
    Ok((row, bytes))
}

/// A call of a partner, and of one of its quotas alone when that asks. `lost_before` is the time since which living nodes were heard.
pub(super) async fn find(
    db: &impl Executor,
    lost_before: i64,
    tenant: &Tenant,
    quota: Option<&str>,
    id: &str,
) -> Result<Option<CallRow>, StoreError> {
    let sql = format!(
        "SELECT {} AS state, {COLUMNS} FROM calls \
         WHERE id = $2 AND partner = $3 AND (CAST($4 AS TEXT) IS NULL OR quota = $4)",
        shown_state()
    );
    let values = [
        lost_before.into(),
        id.into(),
        tenant.partner().as_str().into(),
        quota.map(str::to_owned).into(),
    ];
    db.fetch_one(statement(sql, values)).await
}

/// Which calls to list.
#[derive(Debug, Default)]
pub(super) struct CallFilter {
    /// Those of this partner.
    pub(super) partner: Option<String>,
    /// Those that this quota pays for.
    pub(super) quota: Option<String>,
    /// Those in this state.
    pub(super) state: Option<CallState>,
    /// Those with this saved character, `<partner>/<name>`.
    pub(super) character: Option<String>,
    /// Those created at this time or later, in milliseconds since 1970.
    pub(super) created_from: Option<i64>,
    /// Those created before this time.
    pub(super) created_before: Option<i64>,
}

/// A part of the calls, newest first: ids sort by their time. `lost_before` is the time since which living nodes were heard.
pub(super) async fn list(
    db: &impl Executor,
    lost_before: i64,
    filter: CallFilter,
    slice: &Slice,
) -> Result<Vec<CallRow>, StoreError> {
    let state = shown_state();
    let mut sql = format!("SELECT {state} AS state, {LISTED} FROM calls WHERE TRUE");
    let mut values: Vec<colloquy_store::Value> = vec![lost_before.into()];
    let of_state = format!("{state} =");
    let conditions: [(&str, Option<colloquy_store::Value>); 6] = [
        ("partner =", filter.partner.map(Into::into)),
        ("quota =", filter.quota.map(Into::into)),
        (
            of_state.as_str(),
            filter.state.map(|state| state.as_str().into()),
        ),
        ("character_reference =", filter.character.map(Into::into)),
        ("created_at >=", filter.created_from.map(Into::into)),
        ("created_at <", filter.created_before.map(Into::into)),
    ];
    for (condition, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(&format!(" AND {condition} ${}", values.len()));
        }
    }
    slice.complete(&mut sql, &mut values, "id", Order::Descending);
    db.fetch_all(statement(sql, values)).await
}

/// A call by its id alone, for those who hold a valid signature or an admin key.
/// `lost_before` is the time since which living nodes were heard.
pub(super) async fn load(
    db: &impl Executor,
    lost_before: i64,
    id: &str,
) -> Result<Option<CallRow>, StoreError> {
    let state = shown_state();
    let sql = format!("SELECT {state} AS state, {COLUMNS} FROM calls WHERE id = $2");
    db.fetch_one(statement(sql, [lost_before.into(), id.into()]))
        .await
}

/// Who placed a call, and what its character brings.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct CallOwner {
    pub(super) partner: String,
    pub(super) page_key: Option<String>,
    character_json: String,
}

impl CallOwner {
    /// The character, as it was when the call was created.
    pub(super) fn character(&self) -> Result<Character, StoreError> {
        serde_json::from_str(&self.character_json).map_err(StoreError::malformed)
    }
}

/// Finds the owner of a call that is not over. One that is over has no character any more.
pub(super) async fn owner(db: &impl Executor, id: &str) -> Result<Option<CallOwner>, StoreError> {
    let sql = "SELECT partner, page_key, character_json FROM calls \
               WHERE id = $1 AND state IN ('starting', 'ongoing')";
    db.fetch_one(statement(sql, [id.into()])).await
}

/// Takes a call that nobody took.
pub(super) async fn take(
    db: &impl Executor,
    id: &str,
    node: &str,
    endpoint: &str,
    metadata: Option<String>,
    now: i64,
) -> Result<Option<CallRow>, StoreError> {
    let sql = format!(
        "UPDATE calls SET taken_at = $5, node_id = $2, endpoint = $3, metadata = $4, updated_at = $5 \
         WHERE id = $1 AND state = 'starting' AND taken_at IS NULL AND end_requested_at IS NULL RETURNING state, {COLUMNS}"
    );
    let values = [
        id.into(),
        node.into(),
        endpoint.into(),
        metadata.into(),
        now.into(),
    ];
    db.fetch_one(statement(sql, values)).await
}

/// Marks a taken call as ongoing since `ago_ms` milliseconds. That time is the database's, as heartbeats are, so that both
/// tell how long a lost call lasted; `database_now` stands for it in tests.
pub(super) async fn mark_ongoing(
    db: &impl Executor,
    id: &str,
    ago_ms: i64,
    database_now: Option<i64>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE calls SET state = 'ongoing', ongoing_at = {} - $3, updated_at = $4, page_network = NULL \
         WHERE id = $1 AND state = 'starting' AND taken_at IS NOT NULL",
        node::database_time(db, 2)
    );
    let values = [id.into(), database_now.into(), ago_ms.into(), now.into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// What a call leaves behind.
#[derive(Debug, Clone)]
pub(super) struct End<'a> {
    pub(super) state: CallState,
    pub(super) error_code: Option<&'a str>,
    pub(super) call_seconds: Option<i64>,
    pub(super) server_runtime_seconds: Option<i64>,
    pub(super) transcript: Option<String>,
    /// Facts about the visitor, as a JSON object.
    pub(super) visitor: Option<String>,
    pub(super) now: i64,
}

/// The error of a call whose node was taken for dead: a presumption, which the node's own word replaces.
pub(super) const NODE_LOST: &str = "NODE_LOST";

/// A call that is over.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct EndedCall {
    pub(super) state: String,
    pub(super) error_code: Option<String>,
    pub(super) ended_at: Option<i64>,
    pub(super) ended_bytes: i64,
}

impl EndedCall {
    /// When the call was presumed lost; `None` when it was not.
    pub(super) fn presumed_lost_at(&self) -> Option<i64> {
        let is_lost = self.error_code.as_deref() == Some(NODE_LOST);
        self.ended_at.filter(|_| is_lost)
    }
}

/// How a call ended that is over; `None` when there is no such call.
pub(super) async fn ended_call(
    db: &impl Executor,
    id: &str,
) -> Result<Option<EndedCall>, StoreError> {
    let sql = "SELECT state, error_code, ended_at, ended_bytes FROM calls WHERE id = $1";
    db.fetch_one(statement(sql, [id.into()])).await
}

/// Ends a call that is not over; `None` when it is.
pub(super) async fn end(
    db: &impl Executor,
    id: &str,
    end: &End<'_>,
) -> Result<Option<CallRow>, StoreError> {
    end_where(db, id, end, "state IN ('starting', 'ongoing')").await
}

/// Ends a call that was presumed lost, which its node has ended in truth; `None` when it is another's end by now.
pub(super) async fn end_presumed_lost(
    db: &impl Executor,
    id: &str,
    end: &End<'_>,
) -> Result<Option<CallRow>, StoreError> {
    let condition = format!("state = 'error' AND error_code = '{NODE_LOST}'");
    end_where(db, id, end, &condition).await
}

/// What every end sets: only a call that is not over needs its character, and the network of its visitor.
pub(super) const CLEARED: &str = "character_json = '', character_params = '', page_network = NULL";

/// The bytes of a call's metadata, which count once it has ended.
const METADATA_BYTES: &str = "COALESCE(octet_length(metadata), 0)";

/// The `silent_bytes` of a call that leaves neither a transcript nor a length. Each counts with 1 KiB at least, so that a bound on their bytes
/// bounds their number, too.
const SILENT_BYTES: &str = "CASE WHEN page_key IS NULL OR ongoing_at IS NOT NULL THEN 0 \
                            WHEN octet_length(metadata) > 1024 THEN octet_length(metadata) ELSE 1024 END";

async fn end_where(
    db: &impl Executor,
    id: &str,
    end: &End<'_>,
    condition: &str,
) -> Result<Option<CallRow>, StoreError> {
    let has_media = end.transcript.is_some() || end.call_seconds.is_some_and(|seconds| seconds > 0);
    let silent_bytes = if has_media { "0" } else { SILENT_BYTES };
    let texts = [&end.transcript, &end.visitor].into_iter().flatten();
    let text_bytes = texts.map(String::len).sum::<usize>();
    let sql = format!(
        "UPDATE calls SET state = $2, error_code = $3, call_seconds = $4, server_runtime_seconds = $5, transcript = $6, \
         ended_at = $7, updated_at = $7, ended_bytes = {METADATA_BYTES} + $8, silent_bytes = {silent_bytes}, end_requested_at = NULL, visitor = $9, {CLEARED} \
         WHERE id = $1 AND {condition} RETURNING state, {COLUMNS}"
    );
    let values = [
        id.into(),
        end.state.as_str().into(),
        end.error_code.map(str::to_owned).into(),
        end.call_seconds.into(),
        end.server_runtime_seconds.into(),
        end.transcript.clone().into(),
        end.now.into(),
        storage::counted(text_bytes as u64).into(),
        end.visitor.clone().into(),
    ];
    db.fetch_one(statement(sql, values)).await
}

/// Stores what a call cost that has just ended.
pub(super) async fn set_cost(
    transaction: &Transaction,
    id: &str,
    cost: Cost,
) -> Result<(), StoreError> {
    let sql = "UPDATE calls SET cost = $2, cost_is_lower_bound = $3 WHERE id = $1";
    let values = [
        id.into(),
        storage::counted(cost.usd.0).into(),
        cost.is_lower_bound.into(),
    ];
    transaction
        .execute(statement(sql, values))
        .await
        .map(|_| ())
}

/// The node that holds a call and is not this one.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Holder {
    /// Its own origin, if its settings name one.
    pub(super) url: Option<String>,
}

/// Finds the node that holds a call and was heard at `given_up_before` or later, on the database's clock. A call that was presumed lost counts, too.
pub(super) async fn holder(
    db: &impl Executor,
    id: &str,
    own_node: &str,
    given_up_before: i64,
) -> Result<Option<Holder>, StoreError> {
    let sql = format!(
        "SELECT nodes.url AS url FROM calls JOIN nodes ON nodes.id = calls.node_id \
         WHERE calls.id = $2 AND calls.node_id <> $3 AND nodes.id IN ({}) \
         AND (calls.state IN ('starting', 'ongoing') OR calls.error_code = '{NODE_LOST}')",
        node::LIVING
    );
    let values = [given_up_before.into(), id.into(), own_node.into()];
    db.fetch_one(statement(sql, values)).await
}
