//! Partners, their API keys and quotas: who asks, what they may do, and how much of it.
//!
//! Keys are random, shown once, stored as HMAC-SHA-256 with a server secret and compared in constant time. A handler
//! gets a [`Principal`]; every finder of partner data takes a [`Tenant`], which only a principal can give. What costs
//! something is asked for with the key of a quota ([`quotas`]) and accounted for in the [`ledger`]. It stops at who may do
//! a thing: what the thing is belongs to the other capabilities.

pub mod keys;
pub mod ledger;
pub mod partners;
pub mod quotas;
pub mod routes;
mod secrets;
mod store;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::ApiError;

pub use self::{keys::KeyRing, secrets::server_secret, store::partner_exists};

/// A partner's identifier, as it stands in paths and in `repo:<partner>/<character>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String)]
#[serde(try_from = "String", into = "String")]
pub struct PartnerId(String);

impl PartnerId {
    /// Checks an identifier: 1 to 64 of `a-z`, `0-9`, `-` and `_`, beginning with a letter or digit.
    ///
    /// # Errors
    /// When it is not of that form.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if begins && text.len() <= 64 && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ApiError::invalid(
                "partner",
                "a partner is 1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit",
            ))
        }
    }

    /// The identifier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PartnerId {
    type Error = ApiError;

    fn try_from(text: String) -> Result<Self, ApiError> {
        Self::parse(&text)
    }
}

impl From<PartnerId> for String {
    fn from(partner: PartnerId) -> Self {
        partner.0
    }
}

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Create and read calls.
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
}

/// Whose data a key reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
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
    pub reach: Reach,
    /// What the key may be used for; `None` for everything.
    pub scopes: Option<Vec<Scope>>,
    /// For a publishable key, the origins of the pages that may use it.
    pub allowed_origins: Option<Vec<String>>,
}

impl Principal {
    /// The tenant behind a partner named in a path.
    ///
    /// # Errors
    /// 403 when the key does not reach that partner.
    pub fn tenant(&self, partner: &PartnerId) -> Result<Tenant, ApiError> {
        match &self.reach {
            Reach::Admin => Ok(Tenant(partner.clone())),
            Reach::Partner(own) if own == partner => Ok(Tenant(own.clone())),
            Reach::Partner(_) => Err(ApiError::forbidden("Access denied")),
        }
    }

    /// The tenant of a partner-scoped key, `None` for an admin key.
    #[must_use]
    pub fn own_tenant(&self) -> Option<Tenant> {
        match &self.reach {
            Reach::Admin => None,
            Reach::Partner(own) => Some(Tenant(own.clone())),
        }
    }

    /// Passes for an admin key only.
    ///
    /// # Errors
    /// 403 for a partner's key.
    pub fn require_admin(&self) -> Result<(), ApiError> {
        match self.reach {
            Reach::Admin => Ok(()),
            Reach::Partner(_) => Err(ApiError::forbidden("This needs an administrator key")),
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
    /// 403 when the key lacks it.
    pub fn require(&self, scope: Scope) -> Result<(), ApiError> {
        match &self.scopes {
            Some(scopes) if !scopes.contains(&scope) => {
                Err(ApiError::forbidden("The API key lacks the scope for this"))
            }
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
    pub(crate) fn of_row(partner: &str) -> Self {
        Self(PartnerId(partner.to_owned()))
    }

    /// The partner.
    #[must_use]
    pub fn partner(&self) -> &PartnerId {
        &self.0
    }
}
