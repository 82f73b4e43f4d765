//! From a client's body to a request that may be sent: quota, models, character, stored conversation, storage,
//! reservation, knowledge, in this order, so that a request that is refused has cost nothing.

use std::{collections::HashSet, sync::Arc};

use colloquy_accounts::{
    Principal, Tenant,
    ledger::{Limits, UsageContext},
    partners,
    quotas::{Quota, QuotaKind},
    storage::PendingText,
};
use colloquy_base::{fair_queue::Priority, invalid::InvalidField};
use colloquy_characters::{
    CharacterError, CharacterInput, NoDocumentMemory, RenderError, ResolveError,
};
use colloquy_formats::{Request, VisibleResult, VisibleRetrieval};
use colloquy_http::{Arrival, memory::Share};
use colloquy_knowledge::{Origin, Passage, UnknownBase, quoting};
use colloquy_providers::{ChatMessage, ChatRequest, Model, ModelApi};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{
    ReplyContext,
    bill::{Bill, Bounds},
    dispatch::{self, Dispatch},
    error::PrepareError,
    prompt::{self, PromptStyle},
    request::ClientRequest,
    retrieval::{self, Found},
    seal::Sealer,
    stored::{self, Recent},
    svc::Svc,
};
use crate::Generation;

/// How much of the last turns is copied, in bytes: what the embedded model reads, and more than a search does.
const TURNS_BYTES: usize = 64 * 1024;
/// The most that one of them counts, in bytes.
const TURN_BYTES: usize = 16 * 1024;

/// A request that is paid for and may be sent.
pub(super) struct Prepared {
    /// When it came.
    pub(super) came_at: Instant,
    /// Its id.
    pub(super) request_id: String,
    /// What seals its compaction, or has opened those before it.
    pub(super) seal: Option<Sealer>,
    /// The request, with the character and its knowledge in it.
    pub(super) request: Arc<Request>,
    /// What is kept with the response, as items: what the client gave, behind the conversation when that is not stored.
    pub(super) own_items: Vec<Value>,
    /// The storage of these items, if they will be stored.
    pub(super) pending: Option<PendingText>,
    /// The stored response that it goes on from.
    pub(super) previous_id: Option<String>,
    /// The models that may serve it.
    pub(super) dispatch: Dispatch,
    /// The first of them.
    pub(super) model: Arc<Model>,
    /// What was reserved.
    pub(super) bill: Bill,
    /// What was looked up, for the client; `None` when nothing was to be looked up.
    pub(super) retrieval: Option<VisibleRetrieval>,
    /// The knowledge base that the character names and its partner does not have.
    pub(super) unknown_base: Option<UnknownBase>,
}

/// Who asks, through which endpoint.
pub(super) struct Requester<'a> {
    /// The quota.
    pub(super) quota: &'a Arc<Quota>,
    /// The endpoint, for the usage.
    pub(super) endpoint: &'static str,
    /// When the request came, and its id.
    pub(super) arrival: &'a Arrival,
    /// What the request holds of the room for bodies.
    pub(super) memory: Option<&'a Share>,
    /// The last response of the connection that it came on, when it is one that remembers it.
    pub(super) recent: Option<&'a Arc<Recent>>,
}

/// Prepares a request.
///
/// # Errors
/// When a field is wrong, the quota does not allow it or is exhausted, the response would be stored on a disk that is nearly full or by a
/// partner that has no room for it, or the database fails.
pub(super) async fn prepare(
    generation: &Generation,
    asker: &Requester<'_>,
    request: ClientRequest,
) -> Result<Prepared, PrepareError> {
    let quota = asker.quota;
    quota.require_kind(QuotaKind::Text)?;
    let ClientRequest {
        text: mut request,
        svc,
    } = request;
    // A message on a WebSocket has no method by which it was refused.
    if request.store {
        generation.edge.require_disk()?;
    }
    let models = models(generation, quota, &request)?;
    let character = character(generation, quota, svc, Documents::Searched).await?;
    let is_kept = request.store || asker.recent.is_some();
    let mut previous_id = request.previous_response_id.clone();
    let mut items_before = Vec::new();
    let mut given_ids = HashSet::new();
    if let Some(id) = &previous_id {
        let recent = asker.recent.map(Arc::as_ref);
        let before = stored::conversation(generation, quota, id, recent, asker.memory).await?;
        // What is kept has to stand without what is kept elsewhere, or not at all.
        if is_kept && !(request.store && before.is_stored) {
            if let Some(memory) = asker.memory {
                memory.grow(before.weight)?;
            }
            items_before = before.items.clone();
            previous_id = None;
        }
        request.prepend_items(before.items);
        given_ids = before.given_ids;
    }
    // What stands in the conversation already is not repeated for a reference.
    stored::resolve_references(generation, quota, &mut request, &given_ids, asker.memory).await?;
    let own_items = match request.api {
        ModelApi::Responses if is_kept => {
            items_before.extend(request.input_items());
            items_before
        }
        ModelApi::Responses | ModelApi::Chat => Vec::new(),
    };
    let pending = match request.store {
        true => Some(stored::reserve_storage(generation, quota, &own_items).await?),
        false => None,
    };
    request.check_calls()?;
    let seal = open_compactions(generation, quota, &mut request).await?;
    // A request that no model can be asked is refused before it is paid for.
    let models = dispatch::able(&request, models)?;

    let added = character.as_ref().map_or(0, Persona::added_bytes);
    if let Some(memory) = asker.memory {
        let read = request.bound_bytes().saturating_add(added);
        memory.grow(working_bytes(&models, read))?;
    }
    let about = UsageContext {
        endpoint: asker.endpoint,
        model: models[0].name().to_owned(),
        character: character
            .as_ref()
            .and_then(|persona| persona.reference.clone()),
        request_id: asker.arrival.id.clone(),
    };
    let bounds = Bounds::new(&request, added);
    let most = bounds.most(&models);
    // The compaction of a model that has one of its own takes no limit.
    let least = match request.compacts {
        true => most,
        false => bounds.least(&models),
    };
    let reservation = generation
        .ledger
        .reserve_within(quota, least, most, about)
        .await?;
    let mut bill = Bill::new(reservation, Arc::clone(&models[0]), bounds);

    let mut grounding = None;
    let mut visible = None;
    let mut unknown_base = None;
    if let Some(persona) = character {
        let turns = match persona.speaker.knowledge {
            Some(_) => last_turns(&request),
            None => Vec::new(),
        };
        let found = persona.look_up(generation, &turns).await;
        let passages = found.as_ref().map_or(&[][..], |found| &found.passages);
        request.prepend_system(&prompt::system(
            &persona.speaker,
            PromptStyle::Written,
            passages,
        ));
        visible = found.as_ref().map(|found| persona.visible(found));
        // The base may have been deleted since the character was resolved.
        let deleted = || found.as_ref()?.unknown_base.clone();
        unknown_base = persona.unknown_base.clone().or_else(deleted);
        if let Some(unknown) = &unknown_base {
            retrieval::warn_of(unknown);
        }
        let passages = found.map(|found| found.passages).unwrap_or_default();
        let known = Arc::new(persona.speaker.grounding(passages));
        // Chat completions show nothing of a search. Where tools were called a model reads more than the turns, and may answer otherwise.
        if request.api == ModelApi::Responses
            && models[0].chat.tells_passages()
            && !request.has_calls()
            && let Some(visible) = visible.as_mut().filter(|it| !it.results.is_empty())
        {
            let request = ChatRequest {
                system: String::new(),
                messages: turns,
                grounding: Arc::clone(&known),
            };
            if let Some(used) = retrieval::passages_of(&models[0].chat, request).await {
                keep(&mut visible.results, &used);
            }
        }
        grounding = Some(known);
    }
    bill.set_input_bytes(request.bound_bytes());
    let bounded = bill.standing().limits != Limits::default();
    let reserved = bill.reserved();
    let limit = |model: &Model| bounded.then(|| bounds.output_within(reserved, model));
    let request = Arc::new(request);
    let dispatch = Dispatch::new(
        generation,
        &quota.tenant,
        &request,
        &models,
        grounding.as_ref(),
        limit,
    );
    Ok(Prepared {
        came_at: asker.arrival.at,
        request_id: asker.arrival.id.clone(),
        seal,
        dispatch,
        own_items,
        pending,
        previous_id,
        model: Arc::clone(&models[0]),
        bill,
        retrieval: visible,
        unknown_base,
        request,
    })
}

/// About how many tokens the input of a request has, as they are counted where a model does not tell.
///
/// # Errors
/// When a field is wrong, the quota does not allow it, or the database fails.
pub(super) async fn input_tokens(
    generation: &Generation,
    quota: &Quota,
    memory: Option<&Share>,
    request: ClientRequest,
) -> Result<u64, PrepareError> {
    quota.require_kind(QuotaKind::Text)?;
    let ClientRequest {
        text: mut request,
        svc,
    } = request;
    models(generation, quota, &request)?;
    if let Some(persona) = character(generation, quota, svc, Documents::Unused).await? {
        request.prepend_system(&prompt::system(&persona.speaker, PromptStyle::Written, &[]));
    }
    let mut given_ids = HashSet::new();
    if let Some(id) = &request.previous_response_id {
        let before = stored::conversation(generation, quota, id, None, memory).await?;
        request.prepend_items(before.items);
        given_ids = before.given_ids;
    }
    stored::resolve_references(generation, quota, &mut request, &given_ids, memory).await?;
    request.check_calls()?;
    open_compactions(generation, quota, &mut request).await?;
    Ok(request.bound_bytes().div_ceil(4))
}

/// The turns that a search and the embedded model read, so that no others are copied: [`TURNS_BYTES`] of them, the last ones.
fn last_turns(request: &Request) -> Vec<ChatMessage> {
    let mut room = TURNS_BYTES;
    request.turns(|turn| {
        let is_read = room > 0;
        room = room.saturating_sub(turn.content.len().min(TURN_BYTES));
        is_read
    })
}

/// The memory that answering a request of so many bytes takes besides its body: that of the model which takes most, since one answers at
/// a time.
pub(super) fn working_bytes(models: &[Arc<Model>], request_bytes: u64) -> usize {
    let of_models = models.iter().map(|it| it.chat.working_bytes(request_bytes));
    usize::try_from(of_models.max().unwrap_or_default()).unwrap_or(usize::MAX)
}

/// Keeps the results of these numbers.
fn keep(results: &mut Vec<VisibleResult>, numbers: &[usize]) {
    let mut number = 0..;
    results.retain(|_| number.next().is_some_and(|it| numbers.contains(&it)));
}

/// Puts summaries in the place of the compaction items of this service. The partner's seal, for a request that has to do with
/// compactions.
///
/// # Errors
/// When an item cannot be opened for this partner, or the database fails.
async fn open_compactions(
    generation: &Generation,
    quota: &Quota,
    request: &mut Request,
) -> Result<Option<Sealer>, PrepareError> {
    if !request.has_compactions() {
        return Ok(None);
    }
    let partner = partners::read(generation, &quota.tenant).await?;
    let seal = generation.seals.of(&partner);
    request.open_compactions(|content| seal.open(content))?;
    Ok(Some(seal))
}

/// The models that may serve the request, the first one first; there is at least one.
fn models(
    generation: &Generation,
    quota: &Quota,
    request: &Request,
) -> Result<Vec<Arc<Model>>, PrepareError> {
    let named = [
        ("model", Some(&request.model)),
        ("fallback_model", request.fallback_model.as_ref()),
    ];
    let mut models: Vec<Arc<Model>> = Vec::with_capacity(named.len());
    for (field, name) in named {
        let Some(name) = name else { continue };
        let Some(model) = generation.providers.models.get(name) else {
            let embedder = generation.providers.embedder.as_ref();
            let is_embedder = embedder.is_some_and(|embedder| embedder.name() == name);
            let name = name.clone();
            if !is_embedder {
                return Err(PrepareError::UnknownModel { field, name });
            }
            quota.require_model(&name)?;
            let what = "makes embeddings; ask it with /v3/embeddings";
            return Err(PrepareError::OtherModel { field, name, what });
        };
        quota.require_model(name)?;
        if !models.iter().any(|known| Arc::ptr_eq(known, model)) {
            models.push(Arc::clone(model));
        }
    }
    Ok(models)
}

/// A character that is ready to reply, and what it is called.
pub(super) struct Persona {
    pub(super) speaker: ReplyContext,
    /// `<partner>/<name>` of a saved one.
    pub(super) reference: Option<String>,
    /// Whose documents it has.
    owner: String,
    /// The knowledge base that it names and its partner does not have, whether or not it is searched.
    pub(super) unknown_base: Option<UnknownBase>,
}

/// What a request does with the documents of its character. Their memory is reserved, and its knowledge base is looked for, where they are
/// searched.
#[derive(Debug, Clone, Copy)]
pub(super) enum Documents {
    Searched,
    Unused,
}

async fn character(
    generation: &Generation,
    quota: &Quota,
    svc: Option<Svc>,
    use_of: Documents,
) -> Result<Option<Persona>, PrepareError> {
    let Some(svc) = svc else { return Ok(None) };
    let Some(input) = svc.character else {
        // Parameters for nobody are a mistake that would go unnoticed.
        if svc.character_params.is_empty() {
            return Ok(None);
        }
        let message = "character_params are for a character";
        return Err(InvalidField::new("metadata.svc.character", message).into());
    };
    quota.require_character(input.saved())?;
    let principal = quota.principal();
    let who = (&principal, &quota.tenant);
    let persona: Result<_, PrepareError> =
        resolved(generation, who, input, &svc.character_params, use_of).await;
    persona.map(Some)
}

/// Resolves a character for a caller, who asks for this tenant, and fills its templates in.
///
/// # Errors
/// When the character is unknown, its templates cannot be filled in, its documents find no memory, or the database fails.
pub(super) async fn resolved<E>(
    generation: &Generation,
    (principal, tenant): (&Principal, &Tenant),
    input: CharacterInput,
    params: &Map<String, Value>,
    use_of: Documents,
) -> Result<Persona, E>
where
    E: From<ResolveError> + From<RenderError> + From<NoDocumentMemory> + From<CharacterError>,
{
    let character = colloquy_characters::resolve(generation, principal, input).await?;
    let rendered = colloquy_characters::rendered(generation, tenant, &character, params).await?;
    let (documents, unknown_base) = match use_of {
        Documents::Searched => (
            generation.documents(tenant, &character)?,
            colloquy_characters::unknown_base(generation, tenant, &character.parameters).await?,
        ),
        Documents::Unused => (None, None),
    };
    let partner = tenant.partner().as_str();
    let name = character.display_name().unwrap_or_default();
    let reference = character.reference.clone();
    Ok(Persona {
        owner: reference
            .clone()
            .unwrap_or_else(|| format!("{partner}\n{name}")),
        speaker: ReplyContext::new(
            generation,
            tenant,
            &character,
            &rendered,
            documents,
            Priority::Request,
        ),
        reference,
        unknown_base,
    })
}

impl Persona {
    /// The most that the character and its knowledge add to the input, in bytes.
    fn added_bytes(&self) -> u64 {
        let prompt = prompt::system(&self.speaker, PromptStyle::Written, &[]).len() as u64;
        let knowledge = self
            .speaker
            .knowledge
            .as_ref()
            .map_or(0, |_| quoting::MAX_BYTES);
        prompt.saturating_add(knowledge)
    }

    pub(super) async fn look_up(
        &self,
        generation: &Generation,
        turns: &[ChatMessage],
    ) -> Option<Found> {
        let knowledge = self.speaker.knowledge.as_ref()?;
        let patience = retrieval::patience(generation);
        Some(retrieval::search(knowledge, turns, patience).await)
    }

    pub(super) fn visible(&self, found: &Found) -> VisibleRetrieval {
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

    /// The same for the same document, and nothing that could be read from it: for one of a base whoever asks, for one that a character
    /// carries the same for this character. An inline character is the one of its name.
    fn file_id(&self, passage: &Passage) -> String {
        let (owner, title) = (self.owner.as_str(), passage.title.as_str());
        let digest = match &passage.document {
            Origin::Carried(place) => Sha256::digest(format!("{owner}\n{place}\n{title}")),
            Origin::Kept(id) => Sha256::digest(id),
        };
        let short = digest.iter().take(12).map(|byte| format!("{byte:02x}"));
        format!("file_svc_{}", short.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use colloquy_config::ModelConfig;
    use colloquy_providers::embedded::Extractive;
    use serde_json::json;

    use super::*;

    #[test]
    fn turns_that_nobody_reads_are_not_copied() {
        let said = |content: &str, count: usize| {
            let turn = json!({"role": "user", "content": content});
            let body = json!({"model": "m", "input": vec![turn; count]});
            let request = Request::read(ModelApi::Responses, body).unwrap();
            last_turns(&request).len()
        };
        assert_eq!(said("Hi", 300), 300);
        assert_eq!(said(&"long ".repeat(20_000), 6), 4);
        assert_eq!(said(&"long ".repeat(20_000), 1), 1);
    }

    #[test]
    fn what_an_answer_takes_of_memory_counts() {
        let embedded = Model::new(Arc::new(Extractive), ModelConfig::default());
        let models = [Arc::new(embedded)];
        let working = |bytes| working_bytes(&models, bytes);
        assert!(working(10_000) > 100_000);
        assert!(working(100 << 20) < 10 << 20, "it reads a part");
        let of_others = working_bytes(&[], 1_000);
        assert_eq!(of_others, 0, "a model elsewhere takes none");
    }

    #[test]
    fn a_document_has_one_id_and_no_other_has_it() {
        let persona = |owner: &str| Persona {
            speaker: ReplyContext::default(),
            reference: None,
            owner: owner.to_owned(),
            unknown_base: None,
        };
        let id = |owner: &str, title: &str, document: Origin| {
            let title = title.to_owned();
            persona(owner).file_id(&Passage {
                title,
                document,
                ..Passage::default()
            })
        };
        let kept = |id: &str| Origin::Kept(id.to_owned());
        let (hours, prices) = (kept("0193-a"), kept("0193-b"));
        let of_hours = id("acme/ada", "Hours", hours.clone());
        assert_eq!(id("acme/max", "New hours", hours.clone()), of_hours);
        assert_ne!(id("acme/ada", "Hours", prices), of_hours);
        assert_ne!(id("acme/ada", "Hours", Origin::Carried(0)), of_hours);
        assert!(!of_hours.contains("0193"), "{of_hours}");

        let carried = |owner: &str, place| id(owner, "Hours", Origin::Carried(place));
        assert_ne!(carried("acme/ada", 0), carried("acme/ada", 1));
        assert_ne!(carried("acme/ada", 0), carried("acme/max", 0));
        // As it was given out before.
        assert_eq!(carried("acme/ada", 0), "file_svc_a690ebb82fd21c750ddfffd9");
    }
}
