//! The job that makes text of what was brought.

use std::time::Duration;

use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_blobs::NoRoom;
use colloquy_digitize::{DigitizeError, DigitizeOptions, Format, digitize, sound};
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_sandbox::Input;
use colloquy_store::{StoreError, Transaction};
use serde::{Deserialize, Serialize};

use super::{
    Bases,
    accepting::AcceptedText,
    budget::BudgetState,
    content::{self, NewContent, Variant},
    document::{Document, Fetching, Step},
    error::BaseError,
    facts::DocumentFacts,
    fetching::{self, FetchFailure},
    names, outage,
    store::{self, OwnedDocument},
    transcribing::{Recording, Transcribed},
    video::{self, Video},
};

/// How often it is begun.
pub(crate) const ATTEMPTS: u32 = 5;

/// Drops what was read of an original or an address that a document does not have any more, in a transaction: its failure, and a text that
/// waits for room.
pub(crate) async fn forget(
    bases: &Bases,
    transaction: &Transaction,
    document: &str,
) -> Result<(), StoreError> {
    store::forget_failed_digitizing(transaction, document).await?;
    let extracted = store::remove_content(transaction, document, Variant::Extracted).await?;
    bases.blobs.doom(transaction, extracted.as_slice()).await
}

/// Makes the text of a document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Digitize {
    /// The document's id.
    pub document: String,
}

/// What reading a document came to.
enum Outcome {
    Text {
        text: String,
        /// Its source, as in [`NewContent::made_of`].
        made_of: Option<String>,
        /// What the document calls itself.
        title: Option<String>,
        facts: DocumentFacts,
    },
    /// Why there is none, for whoever uploaded it.
    None(String),
    /// There is more of it, which another run reads.
    More,
    /// The document waits for room in a budget, and says so.
    Waits,
}

/// What an address gave.
enum Gotten {
    /// A file, which is kept, and what the platform says of it, where it is the sound of a video.
    Original(NewContent, Option<DocumentFacts>),
    /// The text itself, or why there is none.
    Outcome(Outcome),
}

impl Job for Digitize {
    type State = Bases;

    const KIND: &'static str = "bases.digitize";

    const RETRY: RetryRule = RetryRule {
        attempts: ATTEMPTS,
        first: Duration::from_secs(2),
        most: Duration::from_secs(300),
    };

    /// The sandbox has a place a core; the others are read from their place meanwhile.
    const AT_ONCE: usize = 8;

    fn dedup_key(&self) -> Option<String> {
        Some(self.document.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        outage::outlast(&bases, ended, || {
            store::wait_with_digitizing(bases.store.db(), &self.document, outage::REASON)
        })
        .await
    }

    async fn give_up(self, bases: Bases, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        let Some(owned) = store::load_document(bases.store.db(), &self.document).await? else {
            self.rest(&bases).await?;
            return Ok(());
        };
        let reason = match why {
            GivenUp::Failed => "the document could not be read; it was tried several times",
            GivenUp::Died => "reading the document ended the server's process, so it is not read",
        };
        let now = bases.clock.now_ms();
        let db = bases.store.db();
        let revision = owned.document.revision;
        store::set_digitizing(
            db,
            &self.document,
            revision,
            Step::Failed,
            Some(reason),
            now,
        )
        .await?;
        Ok(())
    }
}

impl Digitize {
    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let Some(owned) = store::load_document(bases.store.db(), &self.document).await? else {
            return self.rest(bases).await;
        };
        let document = &owned.document;
        if !matches!(document.digitizing, Step::Queued | Step::Running) {
            // Somebody wrote the text meanwhile.
            return Ok(RunResult::Done);
        }
        let now = bases.clock.now_ms();
        // The reason of the attempt before stays until this one has a result.
        let reason = document.processing_error.as_deref();
        let begun = store::set_digitizing(
            bases.store.db(),
            &document.id,
            document.revision,
            Step::Running,
            reason.filter(|_| run.attempt > 1),
            now,
        );
        if !begun.await? {
            return Ok(RunResult::Again(Duration::ZERO));
        }
        let outcome = self.read(bases, run, &owned).await?;
        if matches!(outcome, Outcome::More) {
            return Ok(RunResult::Again(Duration::ZERO));
        }
        self.store(bases, run, &owned, outcome).await
    }

    /// Says that nothing runs: whoever deletes the document waits for that.
    async fn rest(&self, bases: &Bases) -> anyhow::Result<RunResult> {
        store::stop_digitizing(bases.store.db(), &self.document).await?;
        Ok(RunResult::Done)
    }

    async fn store(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedDocument,
        outcome: Outcome,
    ) -> anyhow::Result<RunResult> {
        let tenant = &owned.tenant();
        let document = &owned.document;
        let name = match &outcome {
            Outcome::Text {
                title: Some(title), ..
            } if is_unnamed(document) => names::of_title(title),
            Outcome::Text { .. } | Outcome::None(_) | Outcome::More | Outcome::Waits => None,
        };
        let name = name.as_deref();
        let facts = match &outcome {
            Outcome::Text { facts, .. } => Some(facts.clone()),
            Outcome::None(_) | Outcome::More | Outcome::Waits => None,
        };
        let facts = facts.as_ref();
        let outcome = match outcome {
            Outcome::None(reason) => Err(reason),
            Outcome::Waits => return Ok(RunResult::Done),
            Outcome::More => return Ok(RunResult::Again(Duration::ZERO)),
            Outcome::Text { text, made_of, .. } => {
                match AcceptedText::write(bases, tenant, document, text, made_of).await {
                    Ok(accepted) => Ok(accepted),
                    Err(BaseError::NoRoom(why @ NoRoom::Partner { .. })) => Err(why.to_string()),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let (outcome, base) = (&outcome, &owned.base_id);
        let stored = run.insist(bases, || async move {
            let transaction = bases.store.begin().await?;
            let state = BudgetState::lock(&transaction, base).await?;
            if !run.holds(&transaction).await? {
                return Ok(true);
            }
            let (id, revision) = (&document.id, document.revision);
            let now = bases.clock.now_ms();
            let (step, error) = match outcome {
                Ok(_) => (Step::Done, None),
                Err(reason) => (Step::Failed, Some(reason.as_str())),
            };
            if !store::set_digitizing(&transaction, id, revision, step, error, now).await? {
                return Ok(false);
            }
            if let Some(name) = name {
                let names = (document.name.as_str(), name);
                store::replace_name(&transaction, id, names, now).await?;
            }
            if let (Ok(accepted), Some(state)) = (outcome, state) {
                let others = store::count_characters(&transaction, base, Some(id)).await?;
                let limit = document.character_limit.map(i64::unsigned_abs);
                match state.room_for_text(accepted.characters(), others, limit) {
                    Ok(()) => {
                        accepted
                            .store(bases, &transaction, tenant, base, document, true)
                            .await?
                    }
                    // Kept, so that it need not be read again when there is room for it.
                    Err(why) => accepted.keep(bases, &transaction, document, &why).await?,
                }
            }
            if let Some(facts) = facts {
                store::set_facts(&transaction, id, facts).await?;
            }
            transaction.commit().await?;
            Ok(true)
        });
        let stored = stored.await?;
        bases.kernel.jobs.wake();
        Ok(match stored {
            true => RunResult::Done,
            // Somebody wrote another content meanwhile.
            false => RunResult::Again(Duration::ZERO),
        })
    }

    /// Reads what was brought, or what is at the address.
    async fn read(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedDocument,
    ) -> anyhow::Result<Outcome> {
        let document = &owned.document;
        let contents = store::contents_of(bases.store.db(), &document.id).await?;
        let of = |variant| contents.iter().find(|content| content.variant == variant);
        if let Some(extracted) = of(Variant::Extracted) {
            let most = u64::from(bases.config.knowledge.max_text_bytes);
            let text = content::text(bases, extracted, most).await?;
            return Ok(Outcome::Text {
                text,
                made_of: extracted.made_of.clone(),
                title: None,
                facts: document.facts.clone(),
            });
        }
        let original = of(Variant::Original).filter(|_| document.fetching != Fetching::Wanted);
        let mut options = DigitizeOptions {
            article_of: document.url.clone(),
            max_markdown_bytes: Some(bases.config.knowledge.max_text_bytes as usize),
            ..DigitizeOptions::default()
        };
        // Of the sound of a video, whose text tells nothing.
        let mut facts = match document.fetching {
            Fetching::Done => document.facts.clone(),
            Fetching::None | Fetching::Wanted => DocumentFacts::default(),
        };
        let (file_name, blob, sha256) = match (original, &document.url) {
            (Some(original), _) => {
                options.charset = original.charset().map(str::to_owned);
                let (name, blob) = (original.file_name.clone(), original.blob.clone());
                (name, blob, original.sha256.clone())
            }
            (None, None) => return Ok(Outcome::None("the document has no content".to_owned())),
            (None, Some(url)) => match self.fetch(bases, run, owned, url).await? {
                Gotten::Outcome(outcome) => return Ok(outcome),
                Gotten::Original(..) if run.attempt > 1 => {
                    // The attempts so far were to get it, and say nothing of what reads it.
                    return Ok(Outcome::More);
                }
                Gotten::Original(fetched, of_video) => {
                    facts = of_video.unwrap_or_default();
                    options.charset = content::charset(&fetched.media_type).map(str::to_owned);
                    let written = fetched.written.clone();
                    (fetched.file_name, written.key, written.sha256)
                }
            },
        };
        let extension = file_name.rsplit('.').next().unwrap_or_default();
        let Some(format) = Format::of_extension(extension) else {
            let reason = format!("files of the type {extension:?} are not supported");
            return Ok(Outcome::None(reason));
        };
        let most = bases.config.knowledge.max_file_bytes;
        let file = match bases.blobs.local(&blob, most).await {
            Err(error) if error.is_damage() => return Ok(Outcome::None(error.to_string())),
            file => file?,
        };
        let input = Input::File(file.path().to_owned());
        if let Some(container) = sound::container(format) {
            let recording = Recording {
                owned,
                container,
                file: input,
                sha256: &sha256,
                named_language: facts.spoken_language(),
            };
            return Ok(match recording.transcribe(bases, run).await? {
                Transcribed::More => Outcome::More,
                Transcribed::Waits => Outcome::Waits,
                Transcribed::None(reason) => Outcome::None(reason),
                Transcribed::Text {
                    text,
                    assumed_language,
                } => Outcome::Text {
                    text,
                    made_of: Some(sha256),
                    title: None,
                    facts: facts.assuming(assumed_language),
                },
            });
        }
        let tenant = owned.tenant();
        let claim = Claim::new(Priority::Background, tenant.partner().as_str());
        let ocr = bases.ocr().await.ok();
        match digitize(&bases.sandbox, ocr, &claim, input, format, &options).await {
            Ok(digitized) => Ok(Outcome::Text {
                facts: DocumentFacts::of(&digitized),
                text: digitized.document.markdown,
                made_of: Some(sha256),
                title: digitized.document.title,
            }),
            Err(error @ DigitizeError::Later(_)) => Err(error.into()),
            Err(error) => Ok(Outcome::None(error.to_string())),
        }
    }

    /// Gets what is at the address, and keeps it; or says why there is nothing.
    async fn fetch(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedDocument,
        url: &str,
    ) -> anyhow::Result<Gotten> {
        let tenant = owned.tenant();
        let document = &owned.document;
        let fetched = match video::is_video_address(bases, url) {
            false => {
                let fetched = fetching::fetch(bases, &tenant, url).await;
                fetched.map(|page| (page, None))
            }
            true => match video::describe(bases, &tenant, url).await {
                Ok(description) => {
                    // Before anything else can fail.
                    if let Some(title) = description.title()
                        && !self.entitle(bases, run, document, &title).await?
                    {
                        return Ok(Gotten::Outcome(Outcome::More));
                    }
                    match video::get(bases, &tenant, &description).await {
                        Ok(Video::Sound { sound, facts }) => Ok((sound, Some(facts))),
                        Ok(Video::Text { text, facts }) => {
                            return Ok(Gotten::Outcome(Outcome::Text {
                                text,
                                made_of: Some(url.to_owned()),
                                title: None,
                                facts,
                            }));
                        }
                        Err(failure) => Err(failure),
                    }
                }
                Err(failure) => Err(failure),
            },
        };
        match fetched {
            Ok((fetched, facts)) => {
                let fetched = NewContent {
                    made_of: Some(url.to_owned()),
                    ..fetched
                };
                let kept = self.keep(bases, run, document, &fetched, facts.as_ref());
                match kept.await? {
                    true => Ok(Gotten::Original(fetched, facts)),
                    false => Ok(Gotten::Outcome(Outcome::More)),
                }
            }
            Err(FetchFailure::Refused(reason)) => Ok(Gotten::Outcome(Outcome::None(reason))),
            Err(failure @ (FetchFailure::Later(_) | FetchFailure::Unreachable(_))) => {
                let most = failure.most_attempts();
                self.fetch_later(bases, run, failure.to_string(), most)
                    .await
            }
            Err(own @ FetchFailure::Own(_)) => Err(own.into()),
        }
    }

    /// Has the address fetched again, and says meanwhile why it was not; or says why there is nothing, after so many attempts.
    async fn fetch_later(
        &self,
        bases: &Bases,
        run: &Run,
        reason: String,
        most: u32,
    ) -> anyhow::Result<Gotten> {
        if run.attempt >= most {
            return Ok(Gotten::Outcome(Outcome::None(reason)));
        }
        let told = format!("{reason}; it is tried again");
        store::wait_with_digitizing(bases.store.db(), &self.document, &told).await?;
        Err(FetchFailure::Later(reason).into())
    }

    /// Stores what came from the address, so that it need not be fetched again, unless somebody else works on the document by now. Whether it was
    /// so.
    async fn keep(
        &self,
        bases: &Bases,
        run: &Run,
        document: &Document,
        original: &NewContent,
        of_video: Option<&DocumentFacts>,
    ) -> anyhow::Result<bool> {
        let transaction = bases.store.begin().await?;
        let holds = run.holds(&transaction).await?
            && store::touch_revision(&transaction, &document.id, document.revision).await?;
        if !holds {
            return Ok(false);
        }
        original.store(bases, &transaction, &document.id).await?;
        store::set_fetching(&transaction, &document.id, Fetching::Done).await?;
        if let Some(facts) = of_video {
            // The text of the recording tells nothing of it.
            store::set_facts(&transaction, &document.id, facts).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Gives a document the title of its video, unless it has a name already. Returns false if somebody else works on the document by now.
    async fn entitle(
        &self,
        bases: &Bases,
        run: &Run,
        document: &Document,
        title: &str,
    ) -> anyhow::Result<bool> {
        if !is_unnamed(document) {
            return Ok(true);
        }
        let transaction = bases.store.begin().await?;
        let holds = run.holds(&transaction).await?
            && store::touch_revision(&transaction, &document.id, document.revision).await?;
        if holds {
            let now = bases.clock.now_ms();
            let names = (document.name.as_str(), title);
            store::replace_name(&transaction, &document.id, names, now).await?;
            transaction.commit().await?;
        }
        Ok(holds)
    }
}

/// Whether the document is called by its address, for want of a name.
fn is_unnamed(document: &Document) -> bool {
    let url = document.url.as_deref();
    url.is_some_and(|url| document.name == names::derived(url))
}
