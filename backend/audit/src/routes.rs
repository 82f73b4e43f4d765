//! `/api/audit`: who changed what, and when.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{FromRef, State},
    http::HeaderMap,
};
use colloquy_accounts::{
    Accounts, Caller, Credential, DataScope, PartnerTenant, Scope, partner_exists,
};
use colloquy_base::{clock::rfc3339, invalid::InvalidField};
use colloquy_http::{ApiError, Listing, Page, PageQuery};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_store::{Keyset, StoreError, Value};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{
    IntoParams, ToSchema,
    openapi::schema::{Object, ObjectBuilder, Type},
};

use crate::{
    Audit,
    operations::{RECORDED, Resource},
    recorder::bounded,
    store::{self, Entry, Filter, Reader},
};

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Audit: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(list_changes))
        .routes(routes!(list_changes_of_partner))
}

/// Which entries to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Only changes by this operation: its `operationId` in this document.
    #[param(schema_with = action_schema)]
    action: Option<String>,
    /// Only changes with this API key, or with the key of this quota: its id.
    key: Option<String>,
    /// Only changes of resources with this id or name.
    subject: Option<String>,
    /// Only changes made at this time or later (inclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    from: Option<Timestamp>,
    /// Only changes made before this time (exclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    until: Option<Timestamp>,
}

fn action_schema() -> Object {
    let actions = RECORDED.iter().map(|operation| operation.action);
    let builder = ObjectBuilder::new().schema_type(Type::String);
    builder.enum_values(Some(actions)).build()
}

/// A change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// The id of the entry.
    id: String,
    /// When the change was asked for, RFC 3339.
    at: String,
    /// The id of the API key, `configuration` for the one that the settings name, or of the quota whose key it was. Null for the key of an
    /// administrator, unless an administrator reads.
    key_id: Option<String>,
    /// The name of the key or quota at that time; null where `key_id` is null, or if it had none.
    key_name: Option<String>,
    /// How the request showed its key.
    credential: Credential,
    /// True for an administrator.
    is_admin: bool,
    /// The partner whose data was changed; null for the server's.
    partner: Option<String>,
    /// The name of the operation: its `operationId` in this document.
    action: String,
    /// The method.
    method: String,
    /// The template of the path.
    path: String,
    /// The kind of resource that was changed.
    resource: Resource,
    /// The id or name of the resource; null if the operation is about all of them, or about whoever makes it. Of names of more than 120 bytes, the
    /// beginning.
    subject: Option<String>,
    /// The parameters of the path, without the partner. Of values of more than 120 bytes, the beginning.
    parameters: BTreeMap<String, String>,
    /// The status of the response: 5xx if the change failed, maybe half-way. Null while the request runs, or if its outcome is unknown since the server
    /// or the client went away.
    status: Option<u16>,
    /// The id of the request, as in the log and in `X-Request-Id`.
    request_id: String,
}

impl AuditEntry {
    fn new(entry: Entry, for_admin: bool) -> Result<Self, StoreError> {
        let is_shown = for_admin || !entry.administrator;
        Ok(Self {
            at: rfc3339(entry.at),
            key_id: is_shown.then_some(entry.key_id),
            key_name: Some(entry.key_name).filter(|name| is_shown && !name.is_empty()),
            credential: entry.credential,
            is_admin: entry.administrator,
            partner: entry.partner,
            action: entry.action,
            method: entry.method,
            path: entry.path,
            resource: entry.resource,
            subject: entry.subject,
            parameters: serde_json::from_str(&entry.parameters).map_err(StoreError::other)?,
            status: entry.status.and_then(|status| u16::try_from(status).ok()),
            request_id: entry.request_id,
            id: entry.id,
        })
    }
}

/// Lists the changes of all partners and of the server, newest first; administrators only.
///
/// The changes are those that were asked for through the API and not refused: of partners, keys, quotas, characters, knowledge bases, folders, documents,
/// voices, webhook deliveries, and sessions of the console; the end and the deletion of calls; the deletion of transcripts, and further attempts at
/// transcripts and analyses. New calls, transcripts, analyses and what is generated are not among them. An entry is stored before the change is made, and
/// the change is refused with 503 if that fails. Entries are kept for `limits.audit_days` (365 unless set), those of deleted partners too.
#[utoipa::path(
    get, path = "/api/audit", tag = "audit log", params(AuditQuery, PageQuery),
    responses((status = 200, body = [AuditEntry]))
)]
pub(crate) async fn list_changes(
    State(audit): State<Audit>,
    Caller(principal): Caller,
    Listing { filter, page }: Listing<AuditQuery>,
) -> Result<(HeaderMap, Json<Vec<AuditEntry>>), ApiError> {
    principal.require_admin()?;
    list(&audit, Reader::All, filter, &page).await
}

/// Lists the changes of a partner's data, newest first; needs the scope `keys`. See `GET /api/audit`.
///
/// The keys of administrators are not named to keys of the partner. Administrators get the changes of deleted partners of this name, too.
#[utoipa::path(
    get, path = "/api/audit/{partner}", tag = "audit log", params(("partner" = String, Path), AuditQuery, PageQuery),
    responses((status = 200, body = [AuditEntry]), (status = 404, description = "Partner not found"))
)]
pub(crate) async fn list_changes_of_partner(
    State(audit): State<Audit>,
    caller: PartnerTenant,
    Listing { filter, page }: Listing<AuditQuery>,
) -> Result<(HeaderMap, Json<Vec<AuditEntry>>), ApiError> {
    caller.principal.require(Scope::Keys)?;
    let tenant = &caller.tenant;
    let reader = match caller.principal.reach {
        DataScope::Admin => Reader::Administrator(tenant),
        DataScope::Partner(_) => Reader::Partner(tenant),
    };
    let listed = list(&audit, reader, filter, &page).await?;
    let db = audit.store.db();
    if listed.1.is_empty()
        && !partner_exists(db, tenant).await?
        && !store::has_entries(db, tenant).await?
    {
        return Err(ApiError::not_found("Partner"));
    }
    Ok(listed)
}

async fn list(
    audit: &Audit,
    reader: Reader<'_>,
    query: AuditQuery,
    page: &Page,
) -> Result<(HeaderMap, Json<Vec<AuditEntry>>), ApiError> {
    let filter = filter(query)?;
    let keyset = keyset(page)?;
    let entries = store::list(audit.store.db(), reader, &filter, &keyset).await?;
    let listed = page.of(entries, |entry| format!("{}:{}", entry.at, entry.id));
    let for_admin = !matches!(reader, Reader::Partner(_));
    let entries = listed.entries.into_iter();
    let entries = entries.map(|entry| AuditEntry::new(entry, for_admin));
    let entries = entries.collect::<Result<_, StoreError>>()?;
    Ok((listed.links, Json(entries)))
}

fn filter(query: AuditQuery) -> Result<Filter, InvalidField> {
    if let Some(action) = &query.action
        && !RECORDED
            .iter()
            .any(|operation| operation.action == action.as_str())
    {
        return Err(InvalidField::new(
            "action",
            "is no operation that is recorded",
        ));
    }
    Ok(Filter {
        action: query.action,
        key: query.key,
        subject: query.subject.as_deref().map(bounded),
        from: query.from.map(Timestamp::as_millisecond),
        until: query.until.map(Timestamp::as_millisecond),
    })
}

/// Returns the part of a list that a page asks for. Its cursor is the time and the id of an entry.
fn keyset(page: &Page) -> Result<Keyset, InvalidField> {
    let parse = |cursor: &str| {
        let (at, id) = cursor.split_once(':')?;
        let is_id = id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit());
        let at: i64 = at.parse().ok()?;
        is_id.then(|| (Value::from(at), id.to_owned()))
    };
    let wrong = || InvalidField::new("cursor", "is not one of this list");
    let after = page.after().map(|cursor| parse(cursor).ok_or_else(wrong));
    Ok(Keyset {
        after: after.transpose()?,
        limit: page.rows(),
    })
}
