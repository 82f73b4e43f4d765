//! Partners: the customers whose data is kept apart.

use serde_json::{Map, Value};

use super::{PartnerId, Principal, Reach, Tenant, keys, keys::NewKey, quotas, store};
use crate::{app::Base, calls, http::ApiError};

/// A stored partner.
#[derive(Debug, Clone, PartialEq)]
pub struct Partner {
    /// The identifier.
    pub id: PartnerId,
    /// What people call it.
    pub display_name: String,
    /// Settings of the capabilities, such as `transcription_enabled`.
    pub settings: Map<String, Value>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it was changed last, in milliseconds since 1970.
    pub updated_at: i64,
}

/// What can be set about a partner; `None` leaves it as it is.
#[derive(Debug, Clone, Default)]
pub struct PartnerChange {
    /// What people call it.
    pub display_name: Option<String>,
    /// All settings.
    pub settings: Option<Map<String, Value>>,
}

impl PartnerChange {
    fn validate(&self) -> Result<(), ApiError> {
        let length = self.display_name.as_ref().map(|name| name.chars().count());
        if length.is_some_and(|length| !(1..=200).contains(&length)) {
            return Err(ApiError::invalid("display_name", "1 to 200 characters"));
        }
        Ok(())
    }
}

/// Makes a partner and its first key, whose text is the only copy.
///
/// # Errors
/// 409 when it exists, 400 for a bad name, the database's failure.
pub async fn create(
    base: &Base,
    id: PartnerId,
    change: PartnerChange,
) -> Result<(Partner, String), ApiError> {
    change.validate()?;
    let now_ms = base.clock.now_ms();
    let partner = Partner {
        display_name: change
            .display_name
            .unwrap_or_else(|| id.as_str().to_owned()),
        settings: change.settings.unwrap_or_default(),
        created_at: now_ms,
        updated_at: now_ms,
        id,
    };
    let tenant = Tenant::of_row(partner.id.as_str());
    let (key, text) = keys::prepare(base, NewKey::secret(tenant, "first key")).await?;
    let transaction = base.store.begin().await?;
    if !store::insert_partner(&transaction, &partner).await? {
        return Err(ApiError::conflict("The partner exists"));
    }
    store::insert_key(&transaction, &key).await?;
    transaction.commit().await?;
    Ok((partner, text))
}

/// The partners that a principal reaches, by id.
///
/// # Errors
/// The database's failure.
pub async fn list(base: &Base, principal: &Principal) -> Result<Vec<Partner>, ApiError> {
    match &principal.reach {
        Reach::Admin => store::list_partners(base.store.db()).await,
        Reach::Partner(own) => Ok(store::find_partner(base.store.db(), &Tenant(own.clone()))
            .await?
            .into_iter()
            .collect()),
    }
}

/// A partner.
///
/// # Errors
/// 404, or the database's failure.
pub async fn read(base: &Base, tenant: &Tenant) -> Result<Partner, ApiError> {
    store::find_partner(base.store.db(), tenant)
        .await?
        .ok_or_else(|| ApiError::not_found("Partner"))
}

/// Changes a partner.
///
/// # Errors
/// 404, 400 for a bad name, or the database's failure.
pub async fn update(
    base: &Base,
    tenant: &Tenant,
    change: PartnerChange,
) -> Result<Partner, ApiError> {
    change.validate()?;
    let transaction = base.store.begin().await?;
    let mut partner = store::find_partner(&transaction, tenant)
        .await?
        .ok_or_else(|| ApiError::not_found("Partner"))?;
    partner.display_name = change.display_name.unwrap_or(partner.display_name);
    partner.settings = change.settings.unwrap_or(partner.settings);
    partner.updated_at = base.clock.now_ms();
    store::update_partner(&transaction, &partner).await?;
    transaction.commit().await?;
    Ok(partner)
}

/// Deletes a partner with its keys, quotas and characters.
///
/// # Errors
/// 409 while calls of the partner are open, 404, or the database's failure.
pub async fn delete(base: &Base, tenant: &Tenant) -> Result<(), ApiError> {
    if calls::count_open(base, tenant).await? > 0 {
        return Err(ApiError::conflict(
            "The partner has calls that are starting or ongoing",
        ));
    }
    let transaction = base.store.begin().await?;
    quotas::lock_all(&transaction, tenant).await?;
    let found = store::delete_partner(&transaction, tenant).await?;
    transaction.commit().await?;
    base.key_ring
        .forget(|key| key.partner.as_ref() == Some(tenant.partner()));
    base.quotas.forget_partner(tenant.partner());
    base.characters.forget_partner(tenant);
    if found {
        Ok(())
    } else {
        Err(ApiError::not_found("Partner"))
    }
}
