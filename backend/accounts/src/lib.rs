//! Partners, their API keys and quotas: who asks, what they may do, and how much of it.
//!
//! Keys are random, shown once, stored as HMAC-SHA-256 with a server secret and compared in constant time. A handler
//! gets a [`Principal`]; every finder of partner data takes a [`Tenant`], which only a principal can give. What costs
//! something is asked for with the key of a quota ([`quotas`]) and accounted for in the [`ledger`]. It stops at who may do
//! a thing: what the thing is belongs to the other capabilities.

mod answers;
mod caller;
mod error;
pub mod keys;
pub mod ledger;
pub mod partners;
pub mod quotas;
pub mod routes;
mod secrets;
mod settings;
pub mod storage;
mod store;

use std::{num::NonZeroU32, ops::Deref, sync::Arc};

use axum::extract::FromRef;
use colloquy_http::{Interface, limits::RateLimits};
use colloquy_kernel::{Base, Capability, Kernel, Routes, State};
use colloquy_store::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::{ledger::Ledger, partners::PartnerDependent, quotas::QuotaCache};

pub use self::{
    caller::{
        Caller, ChangeRecorder, Credential, LastingKey, PartnerTenant, RecordedChange, SessionKey,
        SessionLookup, record_change,
    },
    error::{AccessDenied, AccountError, KeyRefused},
    keys::KeyRing,
    secrets::server_secret,
    settings::PartnerSettings,
    store::{begin_run, hold_partner, partner_exists, share_partner, share_partner_of_quota},
};
pub use colloquy_base::identifiers::PartnerId;

/// Who there is and what was read of them a moment ago: what commands and servers share.
#[derive(Debug)]
pub struct Directory {
    base: Base,
    /// What verifies API keys.
    pub key_ring: KeyRing,
    /// Quotas that were read a moment ago.
    pub quotas: QuotaCache,
    /// What has to do with changes of a partner and with its end.
    dependents: Vec<Arc<dyn PartnerDependent>>,
}

impl Directory {
    /// An empty memory of this database; `dependents` have to do with changes of a partner and with its end.
    #[must_use]
    pub fn new(base: Base, dependents: Vec<Arc<dyn PartnerDependent>>) -> Self {
        Self {
            key_ring: KeyRing::new(Arc::clone(&base.clock)),
            quotas: QuotaCache::new(Arc::clone(&base.clock)),
            dependents,
            base,
        }
    }
}

impl Directory {
    /// Forgets what was read of a partner a moment ago.
    fn forget(&self, tenant: &Tenant) {
        self.key_ring
            .forget(|key| key.partner.as_ref() == Some(tenant.partner()));
        self.quotas.forget_partner(tenant.partner());
    }
}

impl Deref for Directory {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.base
    }
}

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Accounts(Arc<Parts>);

/// What [`Accounts`] holds, besides the [`Directory`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    directory: Directory,
    /// The process.
    pub kernel: Kernel,
    /// What reserves and settles usage.
    pub ledger: Ledger,
    /// The rate limits of keys and addresses.
    pub limits: RateLimits,
}

impl Accounts {
    /// Makes the secret of the API keys, so that a database that cannot be written is noticed at the start.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open(kernel: Kernel, directory: Directory) -> Result<Self, StoreError> {
        server_secret(&kernel.store, "api_keys").await?;
        Ok(Self(Arc::new(Parts {
            ledger: Ledger::new(Arc::clone(&kernel.clock)),
            limits: RateLimits::new(&kernel.config.limits, &kernel.clock),
            directory,
            kernel,
        })))
    }
}

colloquy_kernel::state!(Accounts: Parts.directory: Directory);

/// Partners, keys, quotas and the ledger, as a part of a server.
#[derive(Debug)]
pub struct AccountsCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for AccountsCapability
where
    Accounts: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "accounts"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![
            (
                Interface::MANAGEMENT,
                routes::routes().merge(quotas::routes::routes()),
            ),
            (Interface::TEXT, quotas::routes::text_routes()),
        ]
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        ledger::start(&Accounts::from_ref(state)).await
    }
}

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Create, read and delete calls.
    Calls,
    /// Read and write characters.
    Characters,
    /// Read webhook deliveries and send them again.
    Webhooks,
    /// Read and write the partner's keys and quotas.
    Keys,
    /// Synthesize speech.
    Speech,
    /// Use legacy messaging.
    Messaging,
    /// Read and write knowledge bases.
    Knowledge,
    /// Have recordings written down.
    Transcripts,
    /// Have conversations analyzed.
    Analyses,
    /// Read and write the voice library.
    Voices,
}

/// Whose data a key reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataScope {
    /// All partners.
    Admin,
    /// One partner.
    Partner(PartnerId),
}

/// Whoever made a request, after their key was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The key's identifier.
    pub key_id: String,
    /// Whose data the key reaches.
    pub reach: DataScope,
    /// What the key may be used for; `None` for everything.
    pub scopes: Option<Vec<Scope>>,
    /// For a publishable key, the origins of the pages that may use it.
    pub allowed_origins: Option<Vec<String>>,
    /// How many requests a minute all keys of its partner may make together; `None` where only each of them is counted.
    pub partner_rate: Option<NonZeroU32>,
}

impl Principal {
    /// The tenant behind a partner named in a path.
    ///
    /// # Errors
    /// When the key does not reach that partner.
    pub fn tenant(&self, partner: &PartnerId) -> Result<Tenant, AccessDenied> {
        match &self.reach {
            DataScope::Admin => Ok(Tenant(partner.clone())),
            DataScope::Partner(own) if own == partner => Ok(Tenant(own.clone())),
            DataScope::Partner(_) => Err(AccessDenied::OtherPartner),
        }
    }

    /// The tenant of a partner-scoped key, `None` for an admin key.
    #[must_use]
    pub fn own_tenant(&self) -> Option<Tenant> {
        match &self.reach {
            DataScope::Admin => None,
            DataScope::Partner(own) => Some(Tenant(own.clone())),
        }
    }

    /// Passes for an admin key only.
    ///
    /// # Errors
    /// For a partner's key.
    pub fn require_admin(&self) -> Result<(), AccessDenied> {
        match self.reach {
            DataScope::Admin => Ok(()),
            DataScope::Partner(_) => Err(AccessDenied::NotAdministrator),
        }
    }

    /// Whether the key is publishable: one that pages show to everybody.
    #[must_use]
    pub fn is_publishable(&self) -> bool {
        self.allowed_origins.is_some()
    }

    /// Checks the key's scope.
    ///
    /// # Errors
    /// When the key lacks it.
    pub fn require(&self, scope: Scope) -> Result<(), AccessDenied> {
        match &self.scopes {
            Some(scopes) if !scopes.contains(&scope) => Err(AccessDenied::MissingScope),
            _ => Ok(()),
        }
    }
}

/// A partner whose data may be read and written. Only a [`Principal`], or a stored row, can give one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant(PartnerId);

impl Tenant {
    /// The tenant that a stored row belongs to.
    #[must_use]
    pub fn of_row(partner: &str) -> Self {
        Self(PartnerId::of_row(partner))
    }

    /// The partner.
    #[must_use]
    pub fn partner(&self) -> &PartnerId {
        &self.0
    }
}
