//! The job that makes text of what was brought.

use std::time::Duration;

use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_digitize::{DigitizeError, DigitizeOptions, Format, digitize};
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult};
use serde::{Deserialize, Serialize};

use super::{
    Bases,
    accepting::AcceptedText,
    content::{self, NewContent, Variant},
    document::{Document, Step},
    store::{self, OwnedDocument},
};

/// How often it is begun.
const ATTEMPTS: u32 = 5;

/// Makes the text of a document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Digitize {
    /// The document's id.
    pub document: String,
}

/// What reading a document came to.
enum Outcome {
    Text(String),
    /// Why there is none, for whoever uploaded it.
    None(String),
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
        let Some(owned) = store::load_document(bases.store.db(), &self.document).await? else {
            return self.rest(&bases).await;
        };
        let document = &owned.document;
        let now = bases.clock.now_ms();
        let begun = store::set_digitizing(
            bases.store.db(),
            &document.id,
            document.revision,
            Step::Running,
            None,
            now,
        );
        if !begun.await? {
            return Ok(RunResult::Again(Duration::ZERO));
        }
        let outcome = read(&bases, &owned).await?;
        self.store(&bases, &run, &owned, outcome).await
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
        let outcome = match outcome {
            Outcome::None(reason) => Err((Step::Failed, reason, None)),
            Outcome::Text(text) => match over_limit(document, &text) {
                Some(reason) => {
                    // Kept, so that it need not be read again when there is room for it.
                    let (name, variant) = (format!("{}.md", document.id), Variant::Extracted);
                    let kept = NewContent::of_text(bases, tenant, variant, name, text).await?;
                    Err((Step::Blocked, reason, Some(kept)))
                }
                None => Ok(AcceptedText::write(bases, tenant, document, text).await?),
            },
        };
        let outcome = &outcome;
        let stored = run.insist(bases, || async move {
            let transaction = bases.store.begin().await?;
            if !run.holds(&transaction).await? {
                return Ok(true);
            }
            let (id, revision) = (&document.id, document.revision);
            let now = bases.clock.now_ms();
            let (step, error) = match outcome {
                Ok(_) => (Step::Done, None),
                Err((step, reason, _)) => (*step, Some(reason.as_str())),
            };
            if !store::set_digitizing(&transaction, id, revision, step, error, now).await? {
                return Ok(false);
            }
            match outcome {
                Ok(accepted) => {
                    accepted
                        .store(bases, &transaction, tenant, document, true)
                        .await?
                }
                Err((_, _, Some(kept))) => kept.store(bases, &transaction, id).await?,
                Err((_, _, None)) => {}
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
}

/// Why a text is not accepted, when it is longer than the document may be.
fn over_limit(document: &Document, text: &str) -> Option<String> {
    let limit = document.character_limit?;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    (length > limit).then(|| {
        format!(
            "BUDGET_BLOCKED: the text has {length} characters, and character_limit allows {limit}"
        )
    })
}

/// Reads what was brought.
async fn read(bases: &Bases, owned: &OwnedDocument) -> anyhow::Result<Outcome> {
    let document = &owned.document;
    let contents = store::contents_of(bases.store.db(), &document.id).await?;
    let of = |variant| contents.iter().find(|content| content.variant == variant);
    if let Some(extracted) = of(Variant::Extracted) {
        let most = u64::from(bases.config.knowledge.max_text_bytes);
        return Ok(Outcome::Text(content::text(bases, extracted, most).await?));
    }
    let original = of(Variant::Original);
    let Some(original) = original else {
        return Ok(Outcome::None("the document has no content".to_owned()));
    };
    let extension = original.file_name.rsplit('.').next().unwrap_or_default();
    let Some(format) = Format::of_extension(extension) else {
        let reason = format!("files of the type {extension:?} are not supported");
        return Ok(Outcome::None(reason));
    };
    let most = bases.config.knowledge.max_file_bytes;
    let file = bases.blobs.read_whole(&original.blob, most).await?;
    let tenant = owned.tenant();
    let claim = Claim::new(Priority::Background, tenant.partner().as_str());
    let options = DigitizeOptions::default();
    let ocr = bases.ocr.as_ref();
    match digitize(&bases.sandbox, ocr, &claim, file, format, &options).await {
        Ok(digitized) => Ok(Outcome::Text(digitized.document.markdown)),
        Err(error @ DigitizeError::Later(_)) => Err(error.into()),
        Err(error) => Ok(Outcome::None(error.to_string())),
    }
}
