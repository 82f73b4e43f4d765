//! The SQL of calls.

use std::time::Duration;

use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use serde_json::{Map, Value};

use super::{CallSetup, CallState, TranscriptLine};
use crate::{
    accounts::Tenant,
    characters::Character,
    http::ApiError,
    node,
    store::{self, statement},
};

pub(super) struct NewCall {
    pub(super) id: String,
    pub(super) tenant: Tenant,
    /// Who pays for it.
    pub(super) quota: Option<String>,
    /// As it is now: later edits of a saved one do not reach the call.
    pub(super) character: Character,
    pub(super) character_params: Map<String, Value>,
    pub(super) time_limit_seconds: u32,
    pub(super) webhook_url: Option<String>,
    pub(super) expires_s: i64,
    pub(super) now: i64,
}

#[derive(Debug, Clone, FromQueryResult)]
pub(super) struct CallRow {
    pub(super) id: String,
    pub(super) partner: String,
    state: String,
    character_json: String,
    character_params: String,
    time_limit_seconds: i64,
    pub(super) webhook_url: Option<String>,
    pub(super) expires_at: i64,
    pub(super) endpoint: Option<String>,
    pub(super) taken_at: Option<i64>,
    pub(super) call_seconds: Option<i64>,
    pub(super) server_runtime_seconds: Option<i64>,
    transcript: Option<String>,
    metadata: Option<String>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
}

impl CallRow {
    pub(super) fn state(&self) -> Result<CallState, ApiError> {
        CallState::parse(&self.state)
            .ok_or_else(|| ApiError::internal(format!("call {} has no known state", self.id)))
    }

    /// The saved character as the API shows it; `None` for an inline one.
    pub(super) fn character(&self) -> Result<Option<String>, ApiError> {
        let reference = self.parsed_character()?.reference;
        Ok(reference.map(|reference| format!("repo:{reference}")))
    }

    pub(super) fn transcript(&self) -> Result<Vec<TranscriptLine>, ApiError> {
        self.transcript.as_deref().map_or_else(
            || Ok(Vec::new()),
            |lines| serde_json::from_str(lines).map_err(ApiError::internal),
        )
    }

    /// The longest it may last.
    pub(super) fn time_limit(&self) -> Duration {
        Duration::from_secs(self.time_limit_seconds.unsigned_abs())
    }

    /// What the page passed on when it joined.
    pub(super) fn metadata(&self) -> Result<Option<Map<String, Value>>, ApiError> {
        let metadata = self.metadata.as_deref().map(serde_json::from_str);
        metadata.transpose().map_err(ApiError::internal)
    }

    pub(super) fn setup(self) -> Result<CallSetup, ApiError> {
        Ok(CallSetup {
            tenant: Tenant::of_row(&self.partner),
            character: self.parsed_character()?,
            character_params: serde_json::from_str(&self.character_params)
                .map_err(ApiError::internal)?,
            time_limit: self.time_limit(),
            id: self.id,
        })
    }

    fn parsed_character(&self) -> Result<Character, ApiError> {
        serde_json::from_str(&self.character_json).map_err(ApiError::internal)
    }
}

const COLUMNS: &str = "id, partner, state, character_json, character_params, time_limit_seconds, webhook_url, expires_at, \
                       endpoint, taken_at, call_seconds, server_runtime_seconds, transcript, metadata, created_at, \
                       updated_at";

pub(super) async fn insert(db: &impl ConnectionTrait, new: NewCall) -> Result<CallRow, ApiError> {
    let sql = format!(
        "INSERT INTO calls (id, partner, state, character_json, character_params, time_limit_seconds, webhook_url, \
         expires_at, created_at, updated_at, quota) VALUES ($1, $2, 'starting', $3, $4, $5, $6, $7, $8, $8, $9) \
         RETURNING {COLUMNS}"
    );
    let values = [
        new.id.into(),
        new.tenant.partner().as_str().into(),
        serde_json::to_string(&new.character)
            .map_err(ApiError::internal)?
            .into(),
        serde_json::to_string(&new.character_params)
            .map_err(ApiError::internal)?
            .into(),
        i64::from(new.time_limit_seconds).into(),
        new.webhook_url.into(),
        (new.expires_s * 1000).into(),
        new.now.into(),
        new.quota.into(),
    ];
    CallRow::find_by_statement(statement(db, &sql, values))
        .one(db)
        .await?
        .ok_or_else(|| ApiError::internal("the new call was not stored"))
}

/// A call of a partner, and of one of its quotas alone when that asks.
pub(super) async fn find(
    db: &impl ConnectionTrait,
    tenant: &Tenant,
    quota: Option<&str>,
    id: &str,
) -> Result<Option<CallRow>, DbErr> {
    let sql = format!(
        "SELECT {COLUMNS} FROM calls WHERE id = $1 AND partner = $2 AND (CAST($3 AS TEXT) IS NULL OR quota = $3)"
    );
    let values = [
        id.into(),
        tenant.partner().as_str().into(),
        quota.map(str::to_owned).into(),
    ];
    CallRow::find_by_statement(statement(db, &sql, values))
        .one(db)
        .await
}

/// A call by its id alone, for those who hold a valid signature or an admin key.
pub(super) async fn load(db: &impl ConnectionTrait, id: &str) -> Result<Option<CallRow>, DbErr> {
    let sql = format!("SELECT {COLUMNS} FROM calls WHERE id = $1");
    CallRow::find_by_statement(statement(db, &sql, [id.into()]))
        .one(db)
        .await
}

/// Takes a call that nobody took.
pub(super) async fn take(
    db: &impl ConnectionTrait,
    id: &str,
    node: &str,
    endpoint: &str,
    metadata: Option<String>,
    now: i64,
) -> Result<Option<CallRow>, DbErr> {
    let sql = format!(
        "UPDATE calls SET taken_at = $5, node_id = $2, endpoint = $3, metadata = $4, updated_at = $5 \
         WHERE id = $1 AND state = 'starting' AND taken_at IS NULL RETURNING {COLUMNS}"
    );
    let values = [
        id.into(),
        node.into(),
        endpoint.into(),
        metadata.into(),
        now.into(),
    ];
    CallRow::find_by_statement(statement(db, &sql, values))
        .one(db)
        .await
}

pub(super) async fn mark_ongoing(
    db: &impl ConnectionTrait,
    id: &str,
    now: i64,
) -> Result<(), DbErr> {
    let sql = "UPDATE calls SET state = 'ongoing', ongoing_at = $2, updated_at = $2 \
               WHERE id = $1 AND state = 'starting' AND taken_at IS NOT NULL";
    db.execute_raw(statement(db, sql, [id.into(), now.into()]))
        .await
        .map(|_| ())
}

/// What a call leaves behind.
pub(super) struct End<'a> {
    pub(super) state: CallState,
    pub(super) error_code: Option<&'a str>,
    pub(super) call_seconds: Option<i64>,
    pub(super) server_runtime_seconds: Option<i64>,
    pub(super) transcript: Option<String>,
    pub(super) now: i64,
}

/// Ends a call that is not over; `None` when it is.
pub(super) async fn end(
    db: &impl ConnectionTrait,
    id: &str,
    end: End<'_>,
) -> Result<Option<CallRow>, DbErr> {
    let sql = format!(
        "UPDATE calls SET state = $2, error_code = $3, call_seconds = $4, server_runtime_seconds = $5, transcript = $6, \
         ended_at = $7, updated_at = $7 WHERE id = $1 AND state IN ('starting', 'ongoing') RETURNING {COLUMNS}"
    );
    let values = [
        id.into(),
        end.state.as_str().into(),
        end.error_code.map(str::to_owned).into(),
        end.call_seconds.into(),
        end.server_runtime_seconds.into(),
        end.transcript.into(),
        end.now.into(),
    ];
    CallRow::find_by_statement(statement(db, &sql, values))
        .one(db)
        .await
}

/// `starting` calls that nobody took in time become `error`.
pub(super) async fn end_not_joined(
    db: &impl ConnectionTrait,
    now: i64,
) -> Result<Vec<String>, DbErr> {
    let sql = "UPDATE calls SET state = 'error', error_code = 'NOT_JOINED', ended_at = $1, updated_at = $1 \
               WHERE state = 'starting' AND taken_at IS NULL AND expires_at <= $1 RETURNING id";
    ended(db, sql, [now.into()]).await
}

/// The calls that a statement has ended.
async fn ended(
    db: &impl ConnectionTrait,
    sql: &str,
    values: impl IntoIterator<Item = sea_orm::Value>,
) -> Result<Vec<String>, DbErr> {
    let rows = db.query_all_raw(statement(db, sql, values)).await?;
    rows.iter().map(|row| row.try_get("", "id")).collect()
}

/// Calls that were taken by nodes which are gone become `error`.
pub(super) async fn end_lost(
    db: &impl ConnectionTrait,
    own_node: &str,
    lost_before: i64,
    now: i64,
) -> Result<Vec<String>, DbErr> {
    let sql = format!(
        "UPDATE calls SET state = 'error', error_code = 'NODE_LOST', ended_at = $3, updated_at = $3 \
         WHERE state IN ('starting', 'ongoing') AND taken_at IS NOT NULL AND node_id <> $2 AND node_id NOT IN ({}) \
         RETURNING id",
        node::LIVING
    );
    let values = [lost_before.into(), own_node.into(), now.into()];
    ended(db, &sql, values).await
}

pub(super) async fn count_open(db: &impl ConnectionTrait, tenant: &Tenant) -> Result<u64, DbErr> {
    let sql = "SELECT COUNT(*) FROM calls WHERE partner = $1 AND state IN ('starting', 'ongoing')";
    store::count(db, sql, [tenant.partner().as_str().into()]).await
}
