//! From a client's body to a request that may be sent: quota, models, character, stored conversation, reservation,
//! knowledge, in this order, so that a request that is refused has cost nothing.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{
    Speaker,
    bill::{self, Bill},
    dispatch::Dispatch,
    prompt::{self, Manner},
    retrieval::{self, Found},
    stored,
    wire::{Request, Svc, VisibleResult, VisibleRetrieval},
};
use crate::{
    accounts::{
        ledger::{About, Limits},
        quotas::{Quota, QuotaKind},
    },
    app::App,
    characters::{self, CharacterInput},
    http::{ApiError, Arrival},
    providers::{Model, ModelApi, Passage},
};

/// A request that is paid for and may be sent.
pub(super) struct Prepared {
    /// When it came.
    pub(super) came_at: Instant,
    /// The request, with the character and its knowledge in it.
    pub(super) request: Request,
    /// What the client gave, as items, for storing.
    pub(super) own_items: Vec<Value>,
    /// The models that may serve it.
    pub(super) dispatch: Dispatch,
    /// The first of them.
    pub(super) model: Arc<Model>,
    /// What was reserved.
    pub(super) bill: Bill,
    /// What was looked up, for the client; `None` when nothing was to be looked up.
    pub(super) retrieval: Option<VisibleRetrieval>,
}

/// Who asks, through which endpoint.
pub(super) struct Asker<'a> {
    /// The quota.
    pub(super) quota: &'a Arc<Quota>,
    /// The endpoint, for the usage.
    pub(super) endpoint: &'static str,
    /// When the request came, and its id.
    pub(super) arrival: &'a Arrival,
}

/// Prepares a request.
///
/// # Errors
/// 400 that names the field, 403 when the quota does not allow it, 429 when it is exhausted, the database's failure.
pub(super) async fn prepare(
    app: &App,
    asker: &Asker<'_>,
    mut request: Request,
) -> Result<Prepared, ApiError> {
    let quota = asker.quota;
    quota.require_kind(QuotaKind::Text)?;
    let models = models(app, quota, &request)?;
    let character = character(app, quota, request.svc.take()).await?;
    let own_items = match request.api {
        ModelApi::Responses => request.input_items(),
        ModelApi::Chat => Vec::new(),
    };
    if let Some(id) = &request.previous_response_id {
        let items = stored::conversation(app, quota, id).await?;
        request.prepend_items(items);
    }
    // A request that no model can be asked is refused before it is paid for.
    Dispatch::new(app, &request, &models, None, false)?;

    let added = character.as_ref().map_or(0, Persona::added_bytes);
    let about = About {
        endpoint: asker.endpoint,
        model: models[0].name().to_owned(),
        character: character
            .as_ref()
            .and_then(|persona| persona.reference.clone()),
        request_id: asker.arrival.id.clone(),
    };
    let bound = bill::bound(&request, added, &models);
    let reservation = app.ledger.reserve(quota, bound, about).await?;
    let mut bill = Bill::new(reservation, Arc::clone(&models[0]));

    let mut grounding = None;
    let mut visible = None;
    if let Some(persona) = character {
        let found = persona.look_up(app, &request).await;
        let passages = found.as_ref().map_or(&[][..], |found| &found.passages);
        request.prepend_system(&prompt::system(&persona.speaker, Manner::Written, passages));
        visible = found.as_ref().map(|found| persona.visible(found));
        let passages = found.map(|found| found.passages).unwrap_or_default();
        grounding = Some(Arc::new(persona.speaker.grounding(passages)));
    }
    bill.set_input_bytes(request.bound_bytes());
    let bounded = bill.standing().limits != Limits::default();
    let dispatch = Dispatch::new(app, &request, &models, grounding.as_ref(), bounded)?;
    Ok(Prepared {
        came_at: asker.arrival.at,
        dispatch,
        own_items,
        model: Arc::clone(&models[0]),
        bill,
        retrieval: visible,
        request,
    })
}

/// The models that may serve the request, the first one first; there is at least one.
fn models(app: &App, quota: &Quota, request: &Request) -> Result<Vec<Arc<Model>>, ApiError> {
    let named = [
        ("model", Some(&request.model)),
        ("fallback_model", request.fallback_model.as_ref()),
    ];
    let mut models: Vec<Arc<Model>> = Vec::with_capacity(named.len());
    for (field, name) in named {
        let Some(name) = name else { continue };
        let model = app.providers.models.get(name);
        let model = model.ok_or_else(|| {
            ApiError::invalid(field, format!("there is no model {name}"))
                .with_code("model_not_found")
        })?;
        quota.require_model(name)?;
        if !models.iter().any(|known| Arc::ptr_eq(known, model)) {
            models.push(Arc::clone(model));
        }
    }
    Ok(models)
}

/// A character that is ready to reply, and what it is called.
struct Persona {
    speaker: Speaker,
    /// `<partner>/<name>` of a saved one.
    reference: Option<String>,
    /// Whose documents it has.
    owner: String,
}

async fn character(
    app: &App,
    quota: &Quota,
    svc: Option<Svc>,
) -> Result<Option<Persona>, ApiError> {
    let Some(svc) = svc else { return Ok(None) };
    let Some(input) = svc.character else {
        // Parameters for nobody are a mistake that would go unnoticed.
        if svc.character_params.is_empty() {
            return Ok(None);
        }
        return Err(ApiError::invalid(
            "metadata.svc.character",
            "character_params are for a character",
        ));
    };
    quota.require_character(&input)?;
    resolved(app, quota, input, &svc.character_params)
        .await
        .map(Some)
        .map_err(in_svc)
}

async fn resolved(
    app: &App,
    quota: &Quota,
    input: CharacterInput,
    params: &Map<String, Value>,
) -> Result<Persona, ApiError> {
    let character = characters::resolve(app, &quota.principal(), input).await?;
    let rendered = character.render(params)?;
    let partner = quota.tenant.partner().as_str();
    let name = character.display_name().unwrap_or_default();
    let owner = character.reference.clone();
    Ok(Persona {
        owner: owner.unwrap_or_else(|| format!("{partner}\n{name}")),
        speaker: Speaker::new(&character, &rendered),
        reference: character.reference,
    })
}

/// An error about the character, as one about the request's field.
fn in_svc(error: ApiError) -> ApiError {
    let field = error.field.as_ref().map(|field| match field.as_str() {
        known if known.starts_with("character") => format!("metadata.svc.{known}"),
        part => format!("metadata.svc.character.{part}"),
    });
    ApiError { field, ..error }
}

impl Persona {
    /// The most that the character and its knowledge add to the input, in bytes.
    fn added_bytes(&self) -> u64 {
        let prompt = prompt::system(&self.speaker, Manner::Written, &[]).len() as u64;
        let knowledge = self
            .speaker
            .knowledge
            .as_ref()
            .map_or(0, |_| retrieval::MAX_BYTES);
        prompt.saturating_add(knowledge)
    }

    async fn look_up(&self, app: &App, request: &Request) -> Option<Found> {
        let knowledge = self.speaker.knowledge.as_ref()?;
        let patience = retrieval::patience(app);
        Some(retrieval::search(knowledge.as_ref(), &request.turns(), patience).await)
    }

    fn visible(&self, found: &Found) -> VisibleRetrieval {
        VisibleRetrieval {
            queries: found.queries.clone(),
            results: found
                .passages
                .iter()
                .map(|passage| self.source(passage))
                .collect(),
        }
    }

    fn source(&self, passage: &Passage) -> VisibleResult {
        let attributes = [
            ("chunk_index", Value::from(passage.chunk_index)),
            ("retrievers", Value::from(passage.retrievers.join(","))),
        ];
        VisibleResult {
            file_id: self.file_id(passage),
            filename: passage.title.clone(),
            score: Some(passage.score),
            text: passage.text.clone(),
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect(),
        }
    }

    /// The same for the same document of the same character, and nothing that could be read from it. An inline character is
    /// the one of its name.
    fn file_id(
        &self,
        Passage {
            document, title, ..
        }: &Passage,
    ) -> String {
        let owner = self.owner.as_str();
        let digest = Sha256::digest(format!("{owner}\n{document}\n{title}"));
        let short = digest.iter().take(12).map(|byte| format!("{byte:02x}"));
        format!("file_svc_{}", short.collect::<String>())
    }
}
