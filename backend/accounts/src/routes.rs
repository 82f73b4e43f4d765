//! The endpoints of partners and keys.

use axum::{
    Json,
    body::Bytes,
    extract::{FromRef, State},
    http::{HeaderMap, StatusCode},
};
use colloquy_base::{clock::rfc3339, invalid::InvalidField, json};
use colloquy_config::LimitsConfig;
use colloquy_http::{ApiError, ApiJson, ApiPath, Listing, PageQuery};
use colloquy_kernel::{router::DescribedRouter, routes};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Caller, DataScope, PartnerId, PartnerSettings, PartnerTenant, Principal, Scope, Tenant,
    keys::{self, KeyKind, NewKey, StoredKey},
    partners::{self, Partner, PartnerChange},
};
use crate::{Accounts, Directory};

/// Partners and their keys.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(me))
        .routes(routes!(list_partners))
        .routes(routes!(
            read_partner,
            create_partner,
            update_partner,
            delete_partner
        ))
        .routes(routes!(list_keys, create_key))
        .routes(routes!(revoke_key))
}

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Ten years.
const MAX_EXPIRY_DAYS: u32 = 3_650;

/// Whose key it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Me {
    /// The partner that the key reaches; null for an administrator key, which reaches all.
    partner: Option<PartnerId>,
    /// Whether it is an administrator key.
    #[serde(rename = "isAdmin")]
    is_admin: bool,
    /// What the key may be used for; null for everything.
    scopes: Option<Vec<Scope>>,
    /// The key's id.
    key_id: String,
}

/// A partner.
#[derive(Debug, Serialize, ToSchema)]
pub struct PartnerView {
    /// The identifier.
    id: PartnerId,
    /// What people call it.
    display_name: String,
    /// What is switched for it.
    settings: PartnerSettings,
    /// How much of its storage it uses.
    storage: StorageView,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339.
    updated_at: String,
}

impl PartnerView {
    fn new(partner: Partner, limits: &LimitsConfig) -> Self {
        Self {
            storage: StorageView {
                used_bytes: partner.stored_bytes,
                limit_bytes: partner.storage_limit(limits),
            },
            id: partner.id,
            display_name: partner.display_name,
            settings: partner.settings,
            created_at: rfc3339(partner.created_at),
            updated_at: rfc3339(partner.updated_at),
        }
    }
}

/// Storage usage of a partner.
#[derive(Debug, Serialize, ToSchema)]
pub struct StorageView {
    /// Bytes stored for the partner: uploads, files derived from them, stored responses, versions of characters, the characters of open calls,
    /// transcripts and metadata of calls that ended, analyses and legacy completions; 8 KiB for each document, 4 KiB for each knowledge base and
    /// folder, and 1 KiB for each video found in a channel; 1 KiB for each transcript of a recording, beside its options, its URL until it ends,
    /// and its text; 1 KiB for each webhook delivery, beside its URL and payload; 1 KiB for each API key and 2 KiB for each quota, revoked ones
    /// too, beside their lists of origins, models and characters. Deleted files do not count.
    used_bytes: u64,
    /// Storage limit of the partner, in bytes. Requests that would store more are rejected with 413.
    limit_bytes: u64,
}

/// What can be set about a partner.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartnerBody {
    /// What people call it, 1 to 200 characters, without control characters; the identifier when it is left out at creation.
    display_name: Option<String>,
    /// What is switched for it; it replaces all settings.
    settings: Option<PartnerSettings>,
}

impl From<PartnerBody> for PartnerChange {
    fn from(body: PartnerBody) -> Self {
        Self {
            display_name: body.display_name,
            settings: body.settings,
        }
    }
}

/// A new partner and its first key.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedPartner {
    /// The partner.
    #[serde(flatten)]
    partner: PartnerView,
    /// The key; it is shown this once.
    api_key: String,
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyView {
    /// The id, which is also the middle part of the key.
    id: String,
    /// What people call it.
    name: String,
    /// The kind.
    kind: KeyKind,
    /// What it may be used for; null for everything.
    scopes: Option<Vec<Scope>>,
    /// The origins of the pages that may use it; null for other keys than publishable ones.
    allowed_origins: Option<Vec<String>>,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339; null for never.
    expires_at: Option<String>,
    /// RFC 3339, to about a minute; null for never.
    last_used_at: Option<String>,
    /// RFC 3339; null for a key that was not revoked.
    revoked_at: Option<String>,
}

impl From<StoredKey> for KeyView {
    fn from(key: StoredKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            kind: key.kind,
            scopes: key.scopes,
            allowed_origins: key.allowed_origins,
            created_at: rfc3339(key.created_at),
            expires_at: key.expires_at.map(rfc3339),
            last_used_at: key.last_used_at.map(rfc3339),
            revoked_at: key.revoked_at.map(rfc3339),
        }
    }
}

/// A key to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyBody {
    /// What people call it, at most 100 bytes, without control characters.
    #[serde(default)]
    name: String,
    /// `secret` (default) or `publishable`.
    kind: Option<KeyKind>,
    /// What it may be used for; everything when it is left out.
    scopes: Option<Vec<Scope>>,
    /// The origins of the pages that may use it, 1 to 100 of at most 300 bytes each; for a publishable key.
    #[serde(default)]
    allowed_origins: Vec<String>,
    /// When it ends, in days from now.
    expires_in_days: Option<u32>,
}

/// A new key.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedKey {
    /// The key, without its secret.
    #[serde(flatten)]
    key: KeyView,
    /// The key itself; it is shown this once.
    api_key: String,
}

/// Whose key this is.
#[utoipa::path(get, path = "/api/auth/me", tag = "accounts", responses((status = 200, body = Me)))]
pub(crate) async fn me(Caller(principal): Caller) -> Json<Me> {
    let (partner, is_admin) = match principal.reach {
        DataScope::Admin => (None, true),
        DataScope::Partner(partner) => (Some(partner), false),
    };
    Json(Me {
        partner,
        is_admin,
        scopes: principal.scopes,
        key_id: principal.key_id,
    })
}

/// All partners for administrators, the own one for others.
#[utoipa::path(
    get, path = "/api/partners", tag = "accounts", params(PageQuery),
    responses((status = 200, body = [PartnerView]))
)]
pub(crate) async fn list_partners(
    State(accounts): State<Accounts>,
    Caller(principal): Caller,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<Vec<PartnerView>>), ApiError> {
    let partners = partners::list(&accounts, &principal, &page.slice()).await?;
    let listed = page.of(partners, |partner| partner.id.as_str().to_owned());
    let limits = &accounts.config.limits;
    let partners = listed.entries.into_iter();
    let partners = partners.map(|partner| PartnerView::new(partner, limits));
    let partners = partners.collect();
    Ok((listed.links, Json(partners)))
}

/// A partner; administrators only.
#[utoipa::path(
    get, path = "/api/partners/{partner}", tag = "accounts", params(("partner" = String, Path)),
    responses((status = 200, body = PartnerView), (status = 404))
)]
pub(crate) async fn read_partner(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
) -> Result<Json<PartnerView>, ApiError> {
    caller.principal.require_admin()?;
    let partner = partners::read(&accounts, &caller.tenant).await?;
    Ok(Json(PartnerView::new(partner, &accounts.config.limits)))
}

/// Makes a partner and its first key, which is shown this once; administrators only. The body may be left out.
#[utoipa::path(
    post, path = "/api/partners/{partner}", tag = "accounts", params(("partner" = String, Path)),
    request_body = Option<PartnerBody>,
    responses((status = 201, body = CreatedPartner), (status = 409))
)]
pub(crate) async fn create_partner(
    State(accounts): State<Accounts>,
    Caller(principal): Caller,
    ApiPath(partner): ApiPath<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<CreatedPartner>), ApiError> {
    principal.require_admin()?;
    let body: PartnerBody = match body.is_empty() {
        true => PartnerBody::default(),
        false => json::read(&body)?,
    };
    let id = PartnerId::parse(&partner)?;
    let (partner, api_key) = partners::create(&accounts, id, body.into()).await?;
    let partner = PartnerView::new(partner, &accounts.config.limits);
    Ok((
        StatusCode::CREATED,
        Json(CreatedPartner { partner, api_key }),
    ))
}

/// Changes what the body names; administrators only.
#[utoipa::path(
    put, path = "/api/partners/{partner}", tag = "accounts", params(("partner" = String, Path)),
    request_body = PartnerBody,
    responses((status = 200, body = PartnerView), (status = 404))
)]
pub(crate) async fn update_partner(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiJson(body): ApiJson<PartnerBody>,
) -> Result<Json<PartnerView>, ApiError> {
    caller.principal.require_admin()?;
    let partner = partners::update(&accounts, &caller.tenant, body.into()).await?;
    accounts.kernel.jobs.wake();
    Ok(Json(PartnerView::new(partner, &accounts.config.limits)))
}

/// Deletes a partner with everything that is its: keys, quotas, characters, calls with their transcripts, webhook
/// deliveries, stored responses and completions; administrators only.
#[utoipa::path(
    delete, path = "/api/partners/{partner}", tag = "accounts", params(("partner" = String, Path)),
    responses((status = 204), (status = 404), (status = 409, description = "Calls are open"))
)]
pub(crate) async fn delete_partner(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
) -> Result<StatusCode, ApiError> {
    caller.principal.require_admin()?;
    partners::delete(&accounts, &caller.tenant).await?;
    accounts.kernel.jobs.wake();
    Ok(StatusCode::NO_CONTENT)
}

/// The partner's keys, newest first, without their secrets.
#[utoipa::path(
    get, path = "/api/keys/{partner}", tag = "accounts", params(("partner" = String, Path), PageQuery),
    responses((status = 200, body = [KeyView]), (status = 404))
)]
pub(crate) async fn list_keys(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<Vec<KeyView>>), ApiError> {
    caller.principal.require(Scope::Keys)?;
    let keys = keys::list(&accounts, Some(&caller.tenant), &page.slice()).await?;
    let listed = page.of(keys, |key| key.id.clone());
    let keys = listed.entries.into_iter().map(Into::into).collect();
    Ok((listed.links, Json(keys)))
}

/// Makes a key, which is shown this once. A key with scopes can only make keys with scopes of its own. Keys count in the partner's storage,
/// 1 KiB each beside their origins. A partner at its limit can still make keys until all of its keys, revoked ones too, have 1 MiB.
#[utoipa::path(
    post, path = "/api/keys/{partner}", tag = "accounts", params(("partner" = String, Path)),
    request_body = KeyBody,
    responses(
        (status = 201, body = CreatedKey), (status = 404),
        (status = 413, description = "The body is too large, or the partner would store more than it may and its keys more than 1 MiB \
                                      (`storage_limit_reached`)"),
    )
)]
pub(crate) async fn create_key(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiJson(body): ApiJson<KeyBody>,
) -> Result<(StatusCode, Json<CreatedKey>), ApiError> {
    caller.principal.require(Scope::Keys)?;
    let new = new_key(&accounts, caller.tenant, body)?;
    check_escalation(&caller.principal, &new)?;
    let (key, api_key) = keys::create(&accounts, new).await?;
    let key = key.into();
    Ok((StatusCode::CREATED, Json(CreatedKey { key, api_key })))
}

/// Revokes a key.
#[utoipa::path(
    delete, path = "/api/keys/{partner}/{key_id}", tag = "accounts",
    params(("partner" = String, Path), ("key_id" = String, Path)),
    responses((status = 204), (status = 404))
)]
pub(crate) async fn revoke_key(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiPath((_partner, key_id)): ApiPath<(String, String)>,
) -> Result<StatusCode, ApiError> {
    caller.principal.require(Scope::Keys)?;
    keys::revoke(&accounts, Some(&caller.tenant), &key_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn new_key(accounts: &Accounts, tenant: Tenant, body: KeyBody) -> Result<NewKey, ApiError> {
    let kind = body.kind.unwrap_or(KeyKind::Secret);
    if kind == KeyKind::Admin {
        return Err(ApiError::invalid("kind", "secret or publishable"));
    }
    Ok(NewKey {
        kind,
        tenant: Some(tenant),
        name: body.name,
        scopes: body.scopes,
        allowed_origins: body.allowed_origins,
        expires_at: expiry(accounts, body.expires_in_days)?,
    })
}

/// The time that lies so many days ahead.
///
/// # Errors
/// Beyond ten years.
pub fn expiry(directory: &Directory, days: Option<u32>) -> Result<Option<i64>, InvalidField> {
    match days {
        None => Ok(None),
        Some(days) if (1..=MAX_EXPIRY_DAYS).contains(&days) => {
            Ok(Some(directory.clock.now_ms() + i64::from(days) * DAY_MS))
        }
        Some(_) => Err(InvalidField::new("expires_in_days", "1 to 3650")),
    }
}

/// A key must not make one that may do more than itself.
fn check_escalation(principal: &Principal, new: &NewKey) -> Result<(), ApiError> {
    let Some(own) = &principal.scopes else {
        return Ok(());
    };
    let wanted = match (new.kind, &new.scopes) {
        (KeyKind::Publishable, None) => vec![Scope::Calls],
        (_, Some(scopes)) => scopes.clone(),
        (_, None) => {
            return Err(ApiError::forbidden(
                "A key with scopes cannot make one without",
            ));
        }
    };
    match wanted.iter().all(|scope| own.contains(scope)) {
        true => Ok(()),
        false => Err(ApiError::forbidden(
            "A key can only pass on scopes of its own",
        )),
    }
}
