//! Calls and transcripts as the API shows them.

use colloquy_base::{clock::rfc3339, money::Usd};
use colloquy_kernel::node;
use colloquy_protocol::Originator;
use colloquy_store::StoreError;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{CallState, ReplyRecord, TranscriptLine, quality::QualityPoint, sign, store::CallRow};
use crate::Calls;

/// The status of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallEnvelope {
    data: CallView,
}

/// A page of calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallList {
    /// Newest first.
    data: Vec<CallView>,
    /// The `cursor` of the next page; null on the last.
    next_cursor: Option<String>,
}

/// A call.
#[derive(Debug, Serialize, ToSchema)]
struct CallView {
    /// `/v2/calls/<id>`.
    id: String,
    /// The saved character, `repo:<partner>/<character>`; null for a custom one.
    character: Option<String>,
    state: CallState,
    /// Why the call failed, such as `NODE_LOST`; absent unless the state is `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    /// Where the SDK reaches the running call; empty unless it is `ongoing`.
    available_endpoints: Vec<EndpointView>,
    duration: DurationView,
    /// Opens the call's session once; null after it was used, expired, or the call ended.
    #[serde(rename = "signedUrl")]
    signed_url: Option<String>,
    /// The page's `customMetadata`; absent until it joined, when it passed none, and when it passed more than 1 KiB while the server's disk
    /// was nearly full.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    created_at: String,
    updated_at: String,
    /// The time at which the page joined, RFC 3339; null until then.
    joined_at: Option<String>,
    /// The time at which the call ended, RFC 3339; null until then.
    ended_at: Option<String>,
    /// The cost of the call. Null until the call ended, if the time that media flowed is not known, and if the call ended under an earlier version of
    /// the server.
    cost: Option<CallCostView>,
}

/// The cost of a call.
#[derive(Debug, Serialize, ToSchema)]
struct CallCostView {
    /// The price of the time that media flowed, in US dollars, by `calls.usd_per_hour`; 0 unless that is set.
    dollars: Usd,
    /// True if the cost is higher by an unknown amount: no price of calls is set, and services outside of the server understood, answered or spoke.
    is_lower_bound: bool,
}

/// Where the SDK reaches a running call.
#[derive(Debug, Serialize, ToSchema)]
struct EndpointView {
    /// `websocket`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The session's URL without signature; the resume token of the last `welcome` opens it.
    url: String,
}

/// How long a call took.
#[derive(Debug, Serialize, ToSchema)]
struct DurationView {
    /// How long media flowed, in whole seconds; null until the call completed.
    call_seconds: Option<i64>,
    /// How long the server worked on the call, in whole seconds; null until the call completed.
    server_runtime_seconds: Option<i64>,
}

/// The transcript of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TranscriptEnvelope {
    data: TranscriptView,
}

/// What was said.
#[derive(Debug, Serialize, ToSchema)]
struct TranscriptView {
    /// False until the call completed, when it ended unexpectedly, and when nothing was said.
    available: bool,
    /// The lines, oldest first; absent unless `available`.
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<Vec<LineView>>,
}

/// A line.
#[derive(Debug, Serialize, ToSchema)]
struct LineView {
    text: String,
    /// `bot` or `user`.
    #[schema(value_type = String)]
    originator: Originator,
}

/// The lines of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallLinesEnvelope {
    data: CallLinesView,
}

/// What was said in a call until now.
#[derive(Debug, Serialize, ToSchema)]
struct CallLinesView {
    /// True while the call is not over, so that further lines may come.
    is_open: bool,
    /// The lines, oldest first.
    lines: Vec<CallLineView>,
}

/// A line with its time.
#[derive(Debug, Serialize, ToSchema)]
struct CallLineView {
    /// The words; those of the character as far as they were spoken.
    text: String,
    /// `bot` or `user`.
    #[schema(value_type = String)]
    originator: Originator,
    /// When it began, in milliseconds since the media connected.
    at_ms: u64,
    /// Whether the visitor spoke over it. False in calls that ended under an earlier version of the server.
    interrupted: bool,
    /// How the line came about; null unless it is a reply of the character, and in calls that ended under an earlier version of the server.
    reply: Option<ReplyRecord>,
}

/// The quality of the connection of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallQualityEnvelope {
    data: CallQualityView,
}

/// The quality of the connection of a call until now.
#[derive(Debug, Serialize, ToSchema)]
struct CallQualityView {
    /// True while the call is not over, so that further points may come.
    is_open: bool,
    /// The points, oldest first, 120 at most: one for each 10 seconds, or for longer parts in calls of more than 20 minutes. Parts without media have none.
    points: Vec<QualityPoint>,
}

/// The facts that became known of the visitor of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallVisitorEnvelope {
    data: CallVisitorView,
}

/// Facts that the visitor told about themselves.
#[derive(Debug, Serialize, ToSchema)]
struct CallVisitorView {
    /// The fields of the character's `profile_schema`, or of `calls.user_info`, that became known, with their values; empty until the call completed.
    facts: Map<String, Value>,
}

/// Where a call is read.
pub(super) fn path(id: &str) -> String {
    format!("/v2/calls/{id}")
}

/// The status of a call, as it is now.
pub(super) fn call(calls: &Calls, row: &CallRow) -> Result<CallEnvelope, StoreError> {
    let state = row.state()?;
    let joinable = state == CallState::Starting
        && row.taken_at.is_none()
        && node::expected_database_now_ms(&calls.kernel) < row.expires_at;
    let signed_url = match joinable {
        true => sign::session_url(calls, &row.id, row.expires_at / 1000),
        false => None,
    };
    envelope(row, state, signed_url)
}

/// The statuses of a page of calls, as they are now.
pub(super) fn list(
    calls: &Calls,
    rows: &[CallRow],
    next_cursor: Option<String>,
) -> Result<CallList, StoreError> {
    let data = rows
        .iter()
        .map(|row| call(calls, row).map(|call| call.data));
    Ok(CallList {
        data: data.collect::<Result<_, _>>()?,
        next_cursor,
    })
}

/// The status of a call that is over; what the webhook says, too.
pub(super) fn ended(row: &CallRow) -> Result<CallEnvelope, StoreError> {
    envelope(row, row.state()?, None)
}

fn envelope(
    row: &CallRow,
    state: CallState,
    signed_url: Option<String>,
) -> Result<CallEnvelope, StoreError> {
    let endpoint = row
        .endpoint
        .as_ref()
        .filter(|_| state == CallState::Ongoing)
        .map(|url| EndpointView {
            kind: "websocket",
            url: url.clone(),
        });
    Ok(CallEnvelope {
        data: CallView {
            id: path(&row.id),
            character: row.character(),
            state,
            error_code: row.error_code()?,
            available_endpoints: endpoint.into_iter().collect(),
            duration: DurationView {
                call_seconds: row.call_seconds,
                server_runtime_seconds: row.server_runtime_seconds,
            },
            signed_url,
            metadata: row.metadata()?,
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
            joined_at: row.taken_at.map(rfc3339),
            ended_at: row.ended_at()?.map(rfc3339),
            cost: row.cost()?.map(|cost| CallCostView {
                dollars: cost.usd,
                is_lower_bound: cost.is_lower_bound,
            }),
        },
    })
}

/// The transcript of a call.
pub(super) fn transcript(row: &CallRow) -> Result<TranscriptEnvelope, StoreError> {
    let lines = match row.state()? {
        CallState::Completed => row.transcript()?,
        _ => Vec::new(),
    };
    let lines: Vec<LineView> = lines
        .into_iter()
        .map(|line| LineView {
            text: line.text,
            originator: line.originator,
        })
        .collect();
    let available = !lines.is_empty();
    Ok(TranscriptEnvelope {
        data: TranscriptView {
            available,
            transcript: available.then_some(lines),
        },
    })
}

/// The lines of a call until now; `said` are those of a call that is not over.
pub(super) fn lines(
    row: &CallRow,
    said: Vec<TranscriptLine>,
) -> Result<CallLinesEnvelope, StoreError> {
    let state = row.state()?;
    let lines = match state {
        CallState::Completed => row.transcript()?,
        CallState::Starting | CallState::Ongoing => said,
        CallState::Error => Vec::new(),
    };
    let lines = lines.into_iter().map(|line| CallLineView {
        text: line.text,
        originator: line.originator,
        at_ms: line.at_ms,
        interrupted: line.interrupted,
        reply: line.reply,
    });
    Ok(CallLinesEnvelope {
        data: CallLinesView {
            is_open: is_open(state),
            lines: lines.collect(),
        },
    })
}

/// The quality of a call until now.
pub(super) fn quality(
    row: &CallRow,
    points: Vec<QualityPoint>,
) -> Result<CallQualityEnvelope, StoreError> {
    let is_open = is_open(row.state()?);
    Ok(CallQualityEnvelope {
        data: CallQualityView { is_open, points },
    })
}

/// Returns the facts that became known of the visitor of a call.
pub(super) fn visitor(row: &CallRow) -> Result<CallVisitorEnvelope, StoreError> {
    let facts = row.visitor()?;
    Ok(CallVisitorEnvelope {
        data: CallVisitorView { facts },
    })
}

/// Returns true if a call is not over.
fn is_open(state: CallState) -> bool {
    matches!(state, CallState::Starting | CallState::Ongoing)
}
