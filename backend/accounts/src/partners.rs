//! Partners: the customers whose data is kept apart.

use std::time::Duration;

use colloquy_base::{invalid::InvalidField, names};
use colloquy_config::LimitsConfig;
use colloquy_store::{Executor, Slice, StoreError, Transaction};
use tokio::time::sleep;

use super::{
    AccountError, DataScope, PartnerId, PartnerSettings, Principal, Tenant, keys, keys::NewKey,
    quotas, storage, store,
};
use crate::Directory;

/// A stored partner.
#[derive(Debug, Clone, PartialEq)]
pub struct Partner {
    /// The identifier.
    pub id: PartnerId,
    /// What people call it.
    pub display_name: String,
    /// What is switched for it.
    pub settings: PartnerSettings,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it was changed last, in milliseconds since 1970.
    pub updated_at: i64,
    /// How many bytes its files and texts have together, without files that were deleted and are not removed yet.
    pub stored_bytes: u64,
}

impl Partner {
    /// How many bytes its files and texts may have together.
    #[must_use]
    pub fn storage_limit(&self, limits: &LimitsConfig) -> u64 {
        let own = self.settings.storage_bytes;
        own.unwrap_or(limits.storage_bytes_per_partner)
    }
}

/// What can be set about a partner; `None` leaves it as it is.
#[derive(Debug, Clone, Default)]
pub struct PartnerChange {
    /// What people call it.
    pub display_name: Option<String>,
    /// All settings.
    pub settings: Option<PartnerSettings>,
}

impl PartnerChange {
    fn validate(&self) -> Result<(), InvalidField> {
        if let Some(name) = &self.display_name {
            if !(1..=200).contains(&name.chars().count()) {
                return Err(InvalidField::new("display_name", "1 to 200 characters"));
            }
            names::visible("display_name", name)?;
        }
        self.settings
            .as_ref()
            .map_or(Ok(()), PartnerSettings::validate)
    }
}

/// What other capabilities have to do with a change of a partner, and with its end.
#[async_trait::async_trait]
pub trait PartnerDependent: std::fmt::Debug + Send + Sync {
    /// Notes what follows from other settings, in the transaction that stores them.
    ///
    /// # Errors
    /// The database's failure.
    async fn change(
        &self,
        _transaction: &Transaction,
        _partner: &Partner,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Why the partner cannot be deleted now, as its administrator is told. It is asked in the transaction that would delete
    /// it.
    ///
    /// # Errors
    /// The database's failure.
    async fn obstacle(
        &self,
        _transaction: &Transaction,
        _tenant: &Tenant,
    ) -> Result<Option<&'static str>, StoreError> {
        Ok(None)
    }

    /// Notes what follows from the partner's end, in the transaction that deletes it.
    ///
    /// # Errors
    /// The database's failure.
    async fn leave(
        &self,
        _transaction: &Transaction,
        _tenant: &Tenant,
        _now_ms: i64,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Forgets what this process remembers of the partner, which is gone.
    fn forget(&self, _tenant: &Tenant) {}
}

/// For so long the name of a partner that is gone rests: nodes remember keys and characters by it for 5 seconds.
const NAME_RESTS: Duration = Duration::from_secs(6);

/// Makes a partner and its first key, whose text is the only copy. A name whose partner was deleted a moment ago is waited
/// for.
///
/// # Errors
/// When it exists, for a bad name, or when the database fails.
pub async fn create(
    directory: &Directory,
    id: PartnerId,
    change: PartnerChange,
) -> Result<(Partner, String), AccountError> {
    change.validate()?;
    if let Some(deleted_at) = store::deleted_at(directory.store.db(), &id).await? {
        let rested = (directory.clock.now_ms() - deleted_at)
            .max(0)
            .unsigned_abs();
        sleep(NAME_RESTS.saturating_sub(Duration::from_millis(rested))).await;
    }
    let now_ms = directory.clock.now_ms();
    let mut partner = Partner {
        display_name: change
            .display_name
            .unwrap_or_else(|| id.as_str().to_owned()),
        settings: change.settings.unwrap_or_default(),
        created_at: now_ms,
        updated_at: now_ms,
        stored_bytes: 0,
        id,
    };
    let tenant = Tenant::of_row(partner.id.as_str());
    let (key, text) = keys::prepare(directory, NewKey::secret(tenant, "first key")).await?;
    let transaction = directory.store.begin().await?;
    if !store::insert_partner(&transaction, &partner).await? {
        return Err(AccountError::Conflict("The partner exists"));
    }
    store::insert_key(&transaction, &key).await?;
    // Whatever the limit is, the first key is made.
    partner.stored_bytes =
        storage::charge_key(directory, &transaction, &partner.id, &key.id).await?;
    transaction.commit().await?;
    Ok((partner, text))
}

/// A part of the partners that a principal reaches, by id.
///
/// # Errors
/// The database's failure.
pub async fn list(
    directory: &Directory,
    principal: &Principal,
    slice: &Slice,
) -> Result<Vec<Partner>, StoreError> {
    match &principal.reach {
        DataScope::Admin => store::list_partners(directory.store.db(), slice).await,
        DataScope::Partner(own) => Ok(store::find_partner(
            directory.store.db(),
            &Tenant(own.clone()),
        )
        .await?
        .into_iter()
        .collect()),
    }
}

/// A partner.
///
/// # Errors
/// When there is none, or the database fails.
pub async fn read(directory: &Directory, tenant: &Tenant) -> Result<Partner, AccountError> {
    store::find_partner(directory.store.db(), tenant)
        .await?
        .ok_or_else(|| AccountError::NotFound("Partner"))
}

/// What is switched for a partner, if there is one.
///
/// # Errors
/// The database's failure.
pub async fn settings(
    db: &impl Executor,
    tenant: &Tenant,
) -> Result<Option<PartnerSettings>, StoreError> {
    let partner = store::find_partner(db, tenant).await?;
    Ok(partner.map(|partner| partner.settings))
}

/// Changes a partner.
///
/// # Errors
/// When there is none, for a bad name, or when the database fails.
pub async fn update(
    directory: &Directory,
    tenant: &Tenant,
    change: PartnerChange,
) -> Result<Partner, AccountError> {
    change.validate()?;
    let transaction = directory.store.begin().await?;
    store::hold_partner(&transaction, tenant).await?;
    let mut partner = store::find_partner(&transaction, tenant)
        .await?
        .ok_or_else(|| AccountError::NotFound("Partner"))?;
    partner.display_name = change.display_name.unwrap_or(partner.display_name);
    partner.settings = change.settings.unwrap_or(partner.settings);
    partner.updated_at = directory.clock.now_ms();
    store::update_partner(&transaction, &partner).await?;
    for dependent in &directory.dependents {
        dependent.change(&transaction, &partner).await?;
    }
    transaction.commit().await?;
    directory.forget(tenant);
    Ok(partner)
}

/// Deletes a partner with everything that is its: keys, quotas, characters, calls, webhook deliveries, stored responses and
/// completions. What stays are the records of usage, which carry no more than the id of a quota that is not there.
///
/// # Errors
/// While calls of the partner are open, when there is none, or when the database fails.
pub async fn delete(directory: &Directory, tenant: &Tenant) -> Result<(), AccountError> {
    let transaction = directory.store.begin_patient().await?;
    // Whoever adds something to the partner waits for this transaction, and finds it gone.
    store::lock_partner(&transaction, tenant).await?;
    for dependent in &directory.dependents {
        if let Some(obstacle) = dependent.obstacle(&transaction, tenant).await? {
            return Err(AccountError::Conflict(obstacle));
        }
    }
    quotas::lock_all(&transaction, tenant).await?;
    let now_ms = directory.clock.now_ms();
    for dependent in &directory.dependents {
        dependent.leave(&transaction, tenant, now_ms).await?;
    }
    let found = store::delete_partner(&transaction, tenant).await?;
    if found {
        store::note_deleted(&transaction, tenant, now_ms).await?;
    }
    transaction.commit().await?;
    directory.forget(tenant);
    for dependent in &directory.dependents {
        dependent.forget(tenant);
    }
    if found {
        Ok(())
    } else {
        Err(AccountError::NotFound("Partner"))
    }
}
