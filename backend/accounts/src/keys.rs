//! API keys: made once, shown once, verified often.
//!
//! A key reads `cqk_<id>_<secret>`: the kind, the row's id (32 hexadecimal digits) and 32 random bytes in base64url.
//! The row keeps an HMAC-SHA-256 of the whole text under a server secret, so a stolen table gives no key. Rows are
//! remembered for [`MAX_AGE`], which bounds how long a key revoked on another node still works here.

mod known;
mod new;

use std::{net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use colloquy_base::{cache::ShortCache, clock::Clock};
use colloquy_http::limits::HeldAttempt;
use colloquy_store::{Slice, Store, StoreError};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::OnceCell;
use utoipa::ToSchema;

pub use self::{
    known::{KnownKey, authenticate_known, expires_at, remember},
    new::NewKey,
};
use super::{
    AccountError, DataScope, KeyRefused, PartnerId, Principal, Scope, Tenant, server_secret,
    storage, store,
};
use crate::{Accounts, Directory};

/// How long a row is trusted without being read again.
const MAX_AGE: Duration = Duration::from_secs(5);
/// How exact `last_used_at` is.
const LAST_USED_STEP_MS: i64 = 60_000;
/// The id that the key of the configuration goes by.
pub const CONFIGURED_KEY_ID: &str = "configuration";

/// Kinds of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// For the customer's servers.
    Secret,
    /// For pages: makes calls only, from the allowed origins only.
    Publishable,
    /// For operators: reaches all partners.
    Admin,
}

impl KeyKind {
    const ALL: [Self; 3] = [Self::Secret, Self::Publishable, Self::Admin];

    fn prefix(self) -> &'static str {
        match self {
            Self::Secret => "cqk_",
            Self::Publishable => "cqp_",
            Self::Admin => "cqa_",
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Publishable => "publishable",
            Self::Admin => "admin",
        }
    }

    pub(super) fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The id, which is also part of the key.
    pub id: String,
    /// The kind.
    pub kind: KeyKind,
    /// Whose key it is; `None` for an admin key.
    pub partner: Option<PartnerId>,
    /// What people call it.
    pub name: String,
    /// The HMAC of the key, hexadecimal.
    pub(super) mac: String,
    /// What it may be used for; `None` for everything.
    pub scopes: Option<Vec<Scope>>,
    /// The origins of the pages that may use it; publishable keys only.
    pub allowed_origins: Option<Vec<String>>,
    /// When it was made, in milliseconds since 1970, as all times here.
    pub created_at: i64,
    /// When it ends.
    pub expires_at: Option<i64>,
    /// When it was used last, to about a minute.
    pub last_used_at: Option<i64>,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
    /// How many requests a minute all keys of the partner may make together.
    pub(super) partner_rate: Option<NonZeroU32>,
}

/// Makes a key. The text is the only copy.
///
/// # Errors
/// For settings that do not belong together, when the partner is gone or would store more than it may, or when the database fails.
pub async fn create(
    directory: &Directory,
    new: NewKey,
) -> Result<(StoredKey, String), AccountError> {
    let tenant = new.tenant.clone();
    let made = prepare(directory, new).await?;
    let transaction = directory.store.begin().await?;
    if let Some(tenant) = &tenant
        && !store::partner_exists(&transaction, tenant).await?
    {
        return Err(AccountError::NotFound("Partner"));
    }
    store::insert_key(&transaction, &made.0).await?;
    if let Some(tenant) = &tenant {
        storage::charge_key(directory, &transaction, tenant.partner(), &made.0.id).await?;
    }
    transaction.commit().await?;
    Ok(made)
}

/// A checked key and its text, not stored yet.
pub(super) async fn prepare(
    directory: &Directory,
    new: NewKey,
) -> Result<(StoredKey, String), AccountError> {
    let now_ms = directory.clock.now_ms();
    let new = new.validated(now_ms)?;
    let id = directory.clock.new_id().simple().to_string();
    let (text, mac) = mint(directory, new.kind.prefix(), &id).await?;
    let publishable = new.kind == KeyKind::Publishable;
    let key = StoredKey {
        id,
        kind: new.kind,
        partner: new.tenant.map(|tenant| tenant.partner().clone()),
        name: new.name,
        mac,
        scopes: new.scopes,
        allowed_origins: publishable.then_some(new.allowed_origins),
        created_at: now_ms,
        expires_at: new.expires_at,
        last_used_at: None,
        revoked_at: None,
        partner_rate: None,
    };
    Ok((key, text))
}

/// A part of the keys of a partner, or of the admin keys, newest first; revoked ones too.
///
/// # Errors
/// When there is no such partner, or the database fails.
pub async fn list(
    directory: &Directory,
    tenant: Option<&Tenant>,
    slice: &Slice,
) -> Result<Vec<StoredKey>, AccountError> {
    let db = directory.store.db();
    let keys = store::list_keys(db, tenant, slice).await?;
    if let Some(tenant) = tenant
        && keys.is_empty()
        && !store::partner_exists(db, tenant).await?
    {
        return Err(AccountError::NotFound("Partner"));
    }
    Ok(keys)
}

/// Revokes a key of a partner, or an admin key. Doing it twice is harmless.
///
/// # Errors
/// When there is no such key there, or the database fails.
pub async fn revoke(
    directory: &Directory,
    tenant: Option<&Tenant>,
    id: &str,
) -> Result<(), AccountError> {
    let found =
        store::revoke_key(directory.store.db(), tenant, id, directory.clock.now_ms()).await?;
    directory.key_ring.forget(|key| key.id == id);
    if found {
        Ok(())
    } else {
        Err(AccountError::NotFound("API key"))
    }
}

/// Finds out whose key this is, for a request that came `from` an address.
///
/// # Errors
/// When it is unknown, expired or revoked, when the address has made too many attempts and the database would have to be asked,
/// or when that fails. Whether a publishable key may be used from here is the extractor's question.
pub async fn authenticate(
    accounts: &Accounts,
    text: &str,
    from: IpAddr,
) -> Result<Principal, KeyRefused> {
    if is_configured(accounts.config.admin_key.as_ref(), text) {
        return Ok(configured());
    }
    let Some((kind, id)) = split(text) else {
        return Err(KeyRefused::Invalid);
    };
    let key = find(accounts, id, text, from).await?;
    let known = verify(accounts, text, &key.mac).await?;
    if !known || key.kind != kind {
        return Err(KeyRefused::Invalid);
    }
    principal(accounts, &key)
}

/// Returns the principal of the key of the configuration.
fn configured() -> Principal {
    Principal {
        key_id: CONFIGURED_KEY_ID.to_owned(),
        reach: DataScope::Admin,
        scopes: None,
        allowed_origins: None,
        partner_rate: None,
    }
}

/// Returns the principal of a key, which is used now.
///
/// # Errors
/// When the key has ended.
fn principal(accounts: &Accounts, key: &StoredKey) -> Result<Principal, KeyRefused> {
    let now_ms = accounts.clock.now_ms();
    if key.revoked_at.is_some() || key.expires_at.is_some_and(|at| at <= now_ms) {
        return Err(KeyRefused::Invalid);
    }
    note_use(accounts, key, now_ms);
    let reach = match (&key.partner, key.kind) {
        (Some(partner), KeyKind::Secret | KeyKind::Publishable) => {
            DataScope::Partner(partner.clone())
        }
        (None, KeyKind::Admin) => DataScope::Admin,
        _ => return Err(KeyRefused::Invalid),
    };
    Ok(Principal {
        key_id: key.id.clone(),
        reach,
        scopes: key.scopes.clone(),
        allowed_origins: key.allowed_origins.clone(),
        partner_rate: key.partner_rate,
    })
}

/// The kind and the id that a key claims.
fn split(text: &str) -> Option<(KeyKind, &str)> {
    let kind = KeyKind::ALL
        .into_iter()
        .find(|kind| text.starts_with(kind.prefix()))?;
    Some((kind, id_of(kind.prefix(), text)?))
}

/// The text of a fresh key of this kind and id, which is the only copy, and its HMAC. Not to be called inside a
/// transaction, as [`KeyRing::mac`].
pub(super) async fn mint(
    directory: &Directory,
    prefix: &str,
    id: &str,
) -> Result<(String, String), StoreError> {
    let random = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    let text = format!("{prefix}{id}_{random}");
    let mac = directory.key_ring.mac(&directory.store, &text).await?;
    Ok((text, mac))
}

/// The id that a key of this kind claims; `None` for what is no such key.
pub(super) fn id_of<'a>(prefix: &str, text: &'a str) -> Option<&'a str> {
    let (id, random) = text.strip_prefix(prefix)?.split_once('_')?;
    let hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (id.len() == 32 && id.chars().all(hexadecimal) && random.len() == 43).then_some(id)
}

/// Whether the HMAC is that of the key.
pub(super) async fn verify(
    directory: &Directory,
    text: &str,
    mac: &str,
) -> Result<bool, StoreError> {
    let expected = directory.key_ring.mac(&directory.store, text).await?;
    Ok(expected.as_bytes().ct_eq(mac.as_bytes()).into())
}

/// Counts an attempt of the address as long as the database is asked for a key, so that nobody has it asked more often than
/// they may guess. A key that was right a while ago, as its `mac` shows, is none.
///
/// # Errors
/// When the address has none left.
pub(super) async fn hold_attempt<'a>(
    accounts: &'a Accounts,
    text: &str,
    mac: Option<&str>,
    from: IpAddr,
) -> Result<Option<HeldAttempt<'a>>, KeyRefused> {
    if let Some(mac) = mac
        && verify(accounts, text, mac).await?
    {
        return Ok(None);
    }
    Ok(Some(accounts.limits.hold_attempt(from).await?))
}

async fn find(
    accounts: &Accounts,
    id: &str,
    text: &str,
    from: IpAddr,
) -> Result<Arc<StoredKey>, KeyRefused> {
    let ring = &accounts.key_ring;
    if let Some(key) = ring.rows.get(id) {
        return Ok(key);
    }
    let known = ring.rows.get_old(id);
    let mac = known.as_ref().map(|key| key.mac.as_str());
    let attempt = hold_attempt(accounts, text, mac, from).await?;
    match read(accounts, id).await? {
        Some(key) => Ok(key),
        None => Err(unknown(attempt)),
    }
}

/// The key of this id, as it was a moment ago at most.
async fn read(accounts: &Accounts, id: &str) -> Result<Option<Arc<StoredKey>>, StoreError> {
    let ring = &accounts.key_ring;
    if let Some(key) = ring.rows.get(id) {
        return Ok(Some(key));
    }
    let generation = ring.rows.generation();
    let Some(key) = store::find_key(accounts.store.db(), id).await? else {
        return Ok(None);
    };
    let key = Arc::new(key);
    ring.rows
        .insert(generation, id.to_owned(), Arc::clone(&key));
    Ok(Some(key))
}

/// The database was asked for a key that nobody has.
pub(super) fn unknown(attempt: Option<HeldAttempt<'_>>) -> KeyRefused {
    match attempt {
        Some(attempt) => {
            attempt.keep();
            KeyRefused::Unknown
        }
        None => KeyRefused::Invalid,
    }
}

/// Stores that the key was used, about once a minute, without making the request wait.
fn note_use(accounts: &Accounts, key: &StoredKey, now_ms: i64) {
    let fresh = |at: i64| now_ms - at < LAST_USED_STEP_MS;
    if key.last_used_at.is_some_and(fresh) {
        return;
    }
    let mut noted = key.clone();
    noted.last_used_at = Some(now_ms);
    accounts.key_ring.rows.replace(&key.id, Arc::new(noted));
    let (accounts, id) = (accounts.clone(), key.id.clone());
    accounts.kernel.tasks.clone().spawn(async move {
        if let Err(error) = store::note_use(accounts.store.db(), &id, now_ms).await {
            tracing::warn!(key_id = id, %error, "cannot store when a key was used");
        }
    });
}

/// Whether this is the key that a setting names.
#[must_use]
pub fn is_configured(setting: Option<&colloquy_config::Secret>, text: &str) -> bool {
    setting.is_some_and(|key| same(key.reveal(), text))
}

/// Compares two secrets in a time that does not depend on where they differ.
fn same(left: &str, right: &str) -> bool {
    Sha256::digest(left.as_bytes())
        .ct_eq(&Sha256::digest(right.as_bytes()))
        .into()
}

/// What verifies keys: the server secret and the rows read a moment ago.
#[derive(Debug)]
pub struct KeyRing {
    secret: OnceCell<Secret>,
    rows: ShortCache<String, Arc<StoredKey>>,
}

/// The key of the HMAC; hidden from `Debug`.
struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl KeyRing {
    /// An empty ring.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            secret: OnceCell::new(),
            rows: ShortCache::new(clock, MAX_AGE, 10_000),
        }
    }

    pub(super) fn forget(&self, forget: impl Fn(&StoredKey) -> bool) {
        self.rows.forget(|_, key| forget(key));
    }

    /// The HMAC of a key's text. Not to be called inside a transaction: the first call may write the server secret, and
    /// on SQLite that would wait for the transaction.
    async fn mac(&self, store: &Store, text: &str) -> Result<String, StoreError> {
        let secret = self
            .secret
            .get_or_try_init(|| async { server_secret(store, "api_keys").await.map(Secret) })
            .await?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).map_err(StoreError::other)?;
        mac.update(text.as_bytes());
        let bytes = mac.finalize().into_bytes();
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
