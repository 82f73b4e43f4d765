//! How a model rewrites the text of a document, section by section.
//!
//! What was rewritten so far is the document's draft, which is stored after each section; when the last one is there, all of it is the final content. That a
//! section is being asked for is stored before: a process that dies then leaves an outcome that nobody knows, which may have been paid
//! for, and nothing is asked again until somebody wants it.

mod asking;
mod template;

use std::time::Duration;

use colloquy_accounts::{Tenant, ledger::budget};
use colloquy_blobs::{NoRoom, WriteError};
use colloquy_extract::format::{ContentType, Format};
use colloquy_index::chunking::{Chunk, ChunkId, ChunkOptions, NotCut};
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_providers::TokenUsage;
use colloquy_store::{StoreError, Transaction};
use serde::{Deserialize, Serialize};

pub(crate) use self::asking::models;
use self::asking::{Answer, NotWritten, Part};
use super::{
    Bases, accepting,
    content::{self, Content, NewContent, Variant},
    cutting,
    document::{ContentTypeChoice, Document, ModelTier, Step},
    error::BaseError,
    outage,
    store::{self, OwnedDocument, Rewrite as Progress},
    video,
};

/// How many characters of a text are a token, about.
pub(crate) const CHARACTERS_A_TOKEN: u64 = 4;
/// What a model is told with each section, in tokens, about.
const PROMPT_TOKENS: u64 = 300;
/// How often rewriting is begun when no model can be reached.
const ATTEMPTS: u32 = 5;
/// What stands between sections in a draft. It is no Markdown that anybody writes.
pub(crate) const BETWEEN: &str = "\n\n<!-- section -->\n\n";
/// What is told where no model is configured: trying again would change nothing.
pub(crate) const NO_MODEL: &str = "no model for rewriting is configured (rewriting.model)";
/// What is told when a process ended while a model was asked.
const UNCERTAIN: &str = "the server stopped while a section was being rewritten; what became of it is not known, so it is not asked for again by itself";

/// Rewrites the text of a document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rewrite {
    /// The document's id.
    pub document: String,
}

/// What rewriting documents would use, about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    pub(crate) tokens: TokenUsage,
    /// In units of 1e-8 dollars; `None` where a model has no price.
    pub(crate) cost: Option<u64>,
}

impl Default for Estimate {
    fn default() -> Self {
        Self {
            tokens: TokenUsage::default(),
            cost: Some(0),
        }
    }
}

impl Estimate {
    /// Adds a document whose text has so many characters, and whose answers are as long as its text.
    pub(crate) fn add(&mut self, bases: &Bases, tier: ModelTier, characters: i64) {
        let tokens = characters.unsigned_abs().div_ceil(CHARACTERS_A_TOKEN);
        let sections = tokens
            .div_ceil(bases.config.rewriting.section_tokens.into())
            .max(1);
        self.add_sums(bases, tier, tokens, sections);
    }

    /// Adds documents whose texts have so many tokens and sections together. The cost is rounded once.
    pub(crate) fn add_sums(&mut self, bases: &Bases, tier: ModelTier, tokens: u64, sections: u64) {
        let used = TokenUsage {
            input: tokens + sections * PROMPT_TOKENS,
            output: tokens,
            ..TokenUsage::default()
        };
        self.tokens.input += used.input;
        self.tokens.output += used.output;
        let models = asking::models(bases, tier);
        let first = models.first().filter(|model| model.is_priced());
        let cost = first.map(|model| model.cost(used));
        self.cost = self
            .cost
            .zip(cost)
            .map(|(sum, more)| sum.saturating_add(more));
    }
}

/// How a document is to be rewritten.
#[derive(Debug, Clone, Default)]
pub(crate) struct RewriteOptions {
    pub(crate) content_type: ContentTypeChoice,
    pub(crate) person_name: Option<String>,
}

/// Has a document rewritten from the beginning, in a transaction.
pub(crate) async fn queue(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    document: &str,
    options: Option<&RewriteOptions>,
) -> Result<(), StoreError> {
    let now = bases.clock.now_ms();
    // Before the document, as the job itself locks them.
    let job = Rewrite {
        document: document.to_owned(),
    };
    jobs::enqueue(bases, transaction, Some(tenant.partner()), &job).await?;
    if let Some(options) = options {
        let (kind, person) = (options.content_type, options.person_name.as_deref());
        store::set_rewrite_options(transaction, document, kind, person, now).await?;
    }
    store::forget_rewrite(transaction, document).await?;
    store::set_rewriting(transaction, document, Step::Queued, None, now).await
}

/// Has a document rewritten from where that failed, in a transaction.
pub(crate) async fn resume(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    document: &str,
) -> Result<(), StoreError> {
    let now = bases.clock.now_ms();
    // Before the document, as the job itself locks them.
    let job = Rewrite {
        document: document.to_owned(),
    };
    jobs::enqueue(bases, transaction, Some(tenant.partner()), &job).await?;
    store::resume_rewrite(transaction, document).await?;
    store::set_rewriting(transaction, document, Step::Queued, None, now).await
}

impl Job for Rewrite {
    type State = Bases;

    const KIND: &'static str = "bases.rewrite";

    const RETRY: RetryRule = RetryRule {
        attempts: ATTEMPTS,
        first: Duration::from_secs(5),
        most: Duration::from_secs(600),
    };

    /// They wait for models elsewhere.
    const AT_ONCE: usize = 8;

    fn dedup_key(&self) -> Option<String> {
        Some(self.document.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        outage::outlast(&bases, ended, || {
            store::wait_with_rewriting(bases.store.db(), &self.document, outage::REASON)
        })
        .await
    }

    async fn give_up(self, bases: Bases, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        let (db, now) = (bases.store.db(), bases.clock.now_ms());
        // Why no model could be reached is there already.
        let reason = match why {
            GivenUp::Failed => None,
            GivenUp::Died => Some(UNCERTAIN),
        };
        store::fail_rewriting(db, &self.document, reason, now).await?;
        Ok(())
    }
}

impl Rewrite {
    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let db = bases.store.db();
        let Some(owned) = store::load_document(db, &self.document).await? else {
            store::stop_rewriting(db, &self.document).await?;
            return Ok(RunResult::Done);
        };
        let contents = store::contents_of(db, &self.document).await?;
        let running = Rewriting {
            bases,
            run,
            tenant: owned.tenant(),
            owned: &owned,
            contents: &contents,
        };
        running.go_on().await
    }
}

/// A run of the job.
struct Rewriting<'a> {
    bases: &'a Bases,
    run: &'a Run,
    tenant: Tenant,
    owned: &'a OwnedDocument,
    contents: &'a [Content],
}

impl Rewriting<'_> {
    fn document(&self) -> &Document {
        &self.owned.document
    }

    fn content(&self, variant: Variant) -> Option<&Content> {
        self.contents
            .iter()
            .find(|content| content.variant == variant)
    }

    async fn text(&self, content: &Content) -> anyhow::Result<String> {
        let most = u64::from(self.bases.config.knowledge.max_text_bytes);
        Ok(content::text(self.bases, content, most).await?)
    }

    async fn go_on(self) -> anyhow::Result<RunResult> {
        let (db, document) = (self.bases.store.db(), self.document());
        let now = self.bases.clock.now_ms();
        if !matches!(document.rewriting, Step::Queued | Step::Running) {
            // Somebody wrote the final content meanwhile.
            return Ok(RunResult::Done);
        }
        let Some(digitized) = self.content(Variant::Digitized) else {
            return self.fail("the document has no text to rewrite").await;
        };
        let models = asking::models(self.bases, document.model_tier);
        if models.is_empty() {
            return self.fail(NO_MODEL).await;
        }
        let sections = match self.sections(digitized).await? {
            Ok(sections) => sections,
            Err(NotCut::Stopped) => return Ok(RunResult::Again(Duration::ZERO)),
            Err(NotCut::TooMany) => {
                return self
                    .fail("the document has too many sections to rewrite")
                    .await;
            }
        };
        let cut = cut_of(&sections);
        let begun = store::rewrite_of(db, &document.id).await?;
        // What was asked about an earlier text says nothing about this one.
        let is_of_now = |begun: &Progress| begun.revision == document.revision;
        let is_uncertain = match &begun {
            Some(begun) if begun.asking && is_of_now(begun) => {
                store::was_asked(db, &document.id).await?
            }
            _ => false,
        };
        let mut progress = match begun {
            Some(_) if is_uncertain => return self.fail(UNCERTAIN).await,
            // Sections that were cut elsewhere do not go on with these.
            Some(begun) if is_of_now(&begun) && begun.cut == cut => begun,
            _ => Progress::new(document, cut, sections.len()),
        };
        if !store::note_rewriting(db, document, Step::Running, None, now).await? {
            return Ok(RunResult::Again(Duration::ZERO));
        }
        let mut parts = match (progress.done, self.content(Variant::Draft)) {
            (0, _) | (_, None) => Vec::new(),
            (_, Some(draft)) => {
                let text = self.text(draft).await?;
                text.split(BETWEEN).map(str::to_owned).collect()
            }
        };
        // Somebody may have taken the draft away; what is lost is rewritten again.
        parts.truncate(usize::try_from(progress.done).unwrap_or(0));
        progress.done = i64::try_from(parts.len()).unwrap_or(i64::MAX);
        while let Some(section) = sections.get(parts.len()) {
            if let Some(full) = self.storage_full(section).await? {
                return self.fail(&full.to_string()).await;
            }
            progress.asking = true;
            if !self.note(&progress).await? {
                return Ok(RunResult::Again(Duration::ZERO));
            }
            let part = Part {
                title: &document.name,
                path: &section.path,
                text: &section.text,
                place: (parts.len() + 1, sections.len()),
                content_type: self.content_type(),
                person: document.person_name.as_deref(),
            };
            progress.asking = false;
            match asking::ask(self.bases, self.owned, &models, part).await? {
                Ok(Answer { text, model, used }) => {
                    progress.model = model;
                    progress.count(used);
                    parts.push(text.replace(BETWEEN, "\n\n"));
                    progress.done = i64::try_from(parts.len()).unwrap_or(i64::MAX);
                    let is_last = parts.len() == sections.len();
                    if !is_last && !self.put_draft(&progress, &parts).await? {
                        return Ok(RunResult::Again(Duration::ZERO));
                    }
                }
                Err(NotWritten::Waits) => return Ok(RunResult::Done),
                Err(NotWritten::Unreached(reason)) => {
                    let now = self.bases.clock.now_ms();
                    let reason = Some(reason.as_str());
                    if !self.note(&progress).await?
                        || !store::note_rewriting(db, document, Step::Queued, reason, now).await?
                    {
                        return Ok(RunResult::Again(Duration::ZERO));
                    }
                    anyhow::bail!("no model could be reached");
                }
                Err(NotWritten::Spent { reason, used }) => {
                    progress.count(used);
                    self.note(&progress).await?;
                    return self.fail(&reason).await;
                }
            }
        }
        self.finish(&progress, parts).await
    }

    /// Why what is made of a section, about as long as it is, has no room in the partner's storage.
    async fn storage_full(&self, section: &Chunk) -> anyhow::Result<Option<NoRoom>> {
        let bytes = section.text.len() as u64;
        let blobs = &self.bases.blobs;
        match blobs.check_room(self.tenant.partner(), bytes).await {
            Ok(()) => Ok(None),
            Err(WriteError::NoRoom(why @ NoRoom::Partner { .. })) => Ok(Some(why)),
            Err(error) => Err(BaseError::from(error).into()),
        }
    }

    /// Says why the text cannot be rewritten, unless somebody has written another one meanwhile.
    async fn fail(&self, reason: &str) -> anyhow::Result<RunResult> {
        let (db, now) = (self.bases.store.db(), self.bases.clock.now_ms());
        let failed = store::note_rewriting(db, self.document(), Step::Failed, Some(reason), now);
        Ok(match failed.await? {
            true => RunResult::Done,
            false => RunResult::Again(Duration::ZERO),
        })
    }

    /// The sections of the text, each small enough for the model.
    async fn sections(&self, digitized: &Content) -> anyhow::Result<Result<Vec<Chunk>, NotCut>> {
        let text = self.text(digitized).await?;
        let tokens = self.bases.config.rewriting.section_tokens as usize;
        let options = ChunkOptions::sections(tokens);
        let count = |text: &str| text.len().div_ceil(4);
        cutting::cut(self.bases, self.document(), text, options, count).await
    }

    fn content_type(&self) -> ContentType {
        let document = self.document();
        match document.content_type {
            ContentTypeChoice::Article => ContentType::Article,
            ContentTypeChoice::Video => ContentType::Video,
            ContentTypeChoice::Book => ContentType::Book,
            ContentTypeChoice::Auto => {
                let original = self.content(Variant::Original);
                let extension = original.and_then(|original| original.file_name.rsplit('.').next());
                let url = document.url.as_deref();
                let is_video = url.is_some_and(|url| video::is_video_address(self.bases, url));
                ContentType::auto(extension.and_then(Format::of_extension), is_video)
            }
        }
    }

    /// Stores how far it is. Whether this run still holds the job, and nobody wrote another content.
    async fn note(&self, progress: &Progress) -> anyhow::Result<bool> {
        self.store(progress, &Written::Nothing).await
    }

    /// Stores what was rewritten so far.
    async fn put_draft(&self, progress: &Progress, parts: &[String]) -> anyhow::Result<bool> {
        let draft = self.write(Variant::Draft, &parts.join(BETWEEN)).await?;
        self.store(progress, &Written::Draft(draft)).await
    }

    /// Writes what may have been paid for, whatever time that takes.
    async fn write(&self, variant: Variant, text: &str) -> anyhow::Result<NewContent> {
        let (bases, tenant) = (self.bases, &self.tenant);
        let name = &format!("{}.md", self.document().id);
        outage::insist(bases, || async move {
            let (name, text) = (name.clone(), text.to_owned());
            Ok(NewContent::of_paid_text(bases, tenant, variant, name, text).await?)
        })
        .await
    }

    async fn finish(self, progress: &Progress, parts: Vec<String>) -> anyhow::Result<RunResult> {
        let whole = self.write(Variant::Rewritten, &parts.join("\n\n")).await?;
        let stored = self.store(progress, &Written::Whole(whole)).await?;
        self.bases.index.wake();
        self.bases.kernel.jobs.wake();
        Ok(match stored {
            true => RunResult::Done,
            // What was rewritten is of another text.
            false => RunResult::Again(Duration::ZERO),
        })
    }

    async fn store(&self, progress: &Progress, written: &Written) -> anyhow::Result<bool> {
        let stored = self
            .run
            .insist(self.bases, || self.try_store(progress, written));
        stored.await
    }

    async fn try_store(&self, progress: &Progress, written: &Written) -> anyhow::Result<bool> {
        let (bases, document) = (self.bases, self.document());
        let transaction = bases.store.begin().await?;
        if matches!(written, Written::Whole(_)) {
            // What follows is queued as by whoever wakes documents.
            budget::lock(&transaction, &self.owned.base_id).await?;
        }
        if !self.run.holds(&transaction).await? {
            return Ok(false);
        }
        let (id, now) = (&document.id, bases.clock.now_ms());
        if !store::touch_revision(&transaction, id, document.revision).await? {
            return Ok(false);
        }
        store::put_rewrite(&transaction, id, progress, now).await?;
        match written {
            Written::Nothing => {}
            Written::Draft(draft) => draft.store(bases, &transaction, id).await?,
            Written::Whole(whole) => {
                accepting::finish(bases, &transaction, &self.tenant, document, whole).await?;
                let draft = store::remove_content(&transaction, id, Variant::Draft).await?;
                bases.blobs.doom(&transaction, draft.as_slice()).await?;
            }
        }
        transaction.commit().await?;
        Ok(true)
    }
}

/// Names the cut of a text into sections: those of another cut are others, though they have the same numbers.
fn cut_of(sections: &[Chunk]) -> String {
    let ids = sections
        .iter()
        .map(|section| ChunkId::of(&section.text).to_string());
    ChunkId::of(&ids.collect::<String>()).to_string()
}

/// What is stored with how far it is.
enum Written {
    Nothing,
    Draft(NewContent),
    Whole(NewContent),
}
