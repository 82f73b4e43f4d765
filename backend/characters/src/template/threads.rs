//! Where templates are filled in: away from the threads that serve requests, and so that no partner is in another's way.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    thread::available_parallelism,
    time::Duration,
};

use colloquy_accounts::Tenant;
use colloquy_base::invalid::InvalidField;
use serde_json::{Map, Value as Json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

use super::render;
use crate::{Character, Characters, RenderError, RenderedCharacter, problem::Problem};

/// How long a render waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// When to try again when the turn did not come.
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Room for renders: as many at once as there are processors, and one of each partner.
#[derive(Debug)]
pub(crate) struct Renders {
    together: Arc<Semaphore>,
    partners: Mutex<HashMap<Tenant, Arc<Semaphore>>>,
}

impl Default for Renders {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            together: Arc::new(Semaphore::new(processors)),
            partners: Mutex::default(),
        }
    }
}

/// A turn; the next one's begins when it is dropped.
struct Turn {
    _of_partner: OwnedSemaphorePermit,
    _together: OwnedSemaphorePermit,
}

impl Renders {
    /// Waits for a turn of this partner. Partners take turns, because each has at most one render waiting for a processor.
    async fn turn(&self, tenant: &Tenant) -> Result<Turn, RenderError> {
        let waiting = async {
            Ok::<_, tokio::sync::AcquireError>(Turn {
                _of_partner: self.of(tenant).acquire_owned().await?,
                _together: Arc::clone(&self.together).acquire_owned().await?,
            })
        };
        match timeout(PATIENCE, waiting).await {
            Ok(turn) => turn.map_err(|error| RenderError::Failed(error.to_string())),
            Err(_) => Err(RenderError::Busy),
        }
    }

    fn of(&self, tenant: &Tenant) -> Arc<Semaphore> {
        let mut partners = self.partners.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waits or renders holds a reference.
        partners.retain(|_, renders| Arc::strong_count(renders) > 1);
        let renders = partners
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(1)));
        Arc::clone(renders)
    }
}

/// Fills the templates in: the character's parameters, then `params`, which win. `tenant` is who asks.
///
/// # Errors
/// 400 that names an unknown placeholder, the reserved `context`, or a template that takes too long; 503 when too many
/// templates are waiting.
pub async fn rendered(
    characters: &Characters,
    tenant: &Tenant,
    character: &Arc<Character>,
    params: &Map<String, Json>,
) -> Result<RenderedCharacter, RenderError> {
    let rendered = filled(characters, tenant, character, params).await?;
    Ok(rendered.map_err(InvalidField::from)?)
}

/// Like [`rendered`], but tells a wrong template or parameter apart from a render that did not take place.
///
/// # Errors
/// Those of [`rendered`] that the character is not to blame for.
pub(crate) async fn filled(
    characters: &Characters,
    tenant: &Tenant,
    character: &Arc<Character>,
    params: &Map<String, Json>,
) -> Result<Result<RenderedCharacter, Problem>, RenderError> {
    let turn = characters.renders.turn(tenant).await?;
    let (character, params) = (Arc::clone(character), params.clone());
    let work = spawn_blocking(move || {
        let rendered = render(&character, &params);
        // Also when the one who asked is gone, the turn lasts as long as the work.
        drop((turn, character));
        rendered
    });
    work.await
        .map_err(|error| RenderError::Failed(error.to_string()))
}
