//! Profiles: what makes vectors.

use colloquy_store::StoreError;

use crate::{Bases, store};

/// The profile of bases that are searched by words alone.
const NAMELESS: &str = "words";

/// What makes vectors.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Profile {
    /// The number of the generation in indexes.
    pub(crate) id: i64,
    /// The model's name; [`NAMELESS`] where there is none.
    pub(crate) name: String,
}

impl Profile {
    /// The profile of the model that the settings name.
    pub(crate) async fn current(bases: &Bases) -> Result<Self, StoreError> {
        let made = bases.profile.get_or_try_init(|| async {
            let name = match &bases.providers.embedder {
                Some(embedder) => match bases.config.embedder.dimensions {
                    Some(dimensions) => format!("{} ({dimensions})", embedder.name()),
                    None => embedder.name().to_owned(),
                },
                None => NAMELESS.to_owned(),
            };
            let db = bases.store.db();
            loop {
                if let Some(profile) = store::find_profile(db, &name).await? {
                    return Ok(profile);
                }
                // Another node may take the number or the name first; then there is one to be found, or another number.
                store::insert_profile(db, &name).await?;
            }
        });
        made.await.cloned()
    }
}
