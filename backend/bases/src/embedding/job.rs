//! The jobs that embed.
//!
//! A document begins as [`Embed`]. If more than [`TURN`](super::making::TURN) requests are to be made for it, it is queued as
//! [`EmbedLong`], which has places of its own in each process, before any of them: mostly its bytes say so, and else its chunks. The others
//! take turns of about a request. A long document of which fewer requests are missing, as after an edit, takes one such turn, and is queued
//! as [`EmbedLong`] if that is not enough. So a short document waits for a request of each that came before it, and for no other of a long
//! one. The work on a long one grows with its length: its text is cut again among the long ones, and a few times more where these take turns.
//!
//! One of the two works on a document at a time: [`Embed`] alone queues [`EmbedLong`], and works on nothing while that is unfinished.

use std::{collections::HashSet, time::Duration};

use colloquy_base::clock::runtime_now;
use colloquy_index::{
    analysis::Language,
    chunking::{Chunk, ChunkId, ChunkOptions, NotCut},
    search::PackedVector,
};
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_providers::ProviderError;
use colloquy_store::StoreError;
use serde::{Deserialize, Serialize};

use super::{
    Cutter, Profile,
    change::{change_over, change_over_if_ready},
    contents::TableOfContents,
    making::{Lane, Making, NoManifest, Vectors, is_long_text, known, made_before, write},
};
use crate::{
    Bases, budget,
    content::{self, Content, Variant},
    cutting,
    document::Step,
    outage,
    store::{self, NewManifest, OwnedDocument},
};

/// How often embedding is begun.
pub(super) const ATTEMPTS: u32 = 6;
/// The retries of both jobs.
const RETRY: RetryRule = RetryRule {
    attempts: ATTEMPTS,
    first: Duration::from_secs(2),
    most: Duration::from_secs(300),
};
/// The vector of a chunk that is found by its words alone.
const WORDS: [f32; 1] = [1.0];

/// Embeds the final content of a document, unless it is long.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Embed {
    /// The document's id.
    pub document: String,
}

/// Embeds a long document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmbedLong {
    /// The document's id.
    pub document: String,
}

/// The chunks of a document, and a vector for each of them.
struct Embedded {
    language: Option<Language>,
    chunks: Vec<Chunk>,
    vectors: Vectors,
}

impl Job for Embed {
    type State = Bases;

    const KIND: &'static str = "bases.embed";

    const RETRY: RetryRule = RETRY;

    /// Each has the text of a document and its vectors in memory. Of three places, a partner alone takes two.
    const AT_ONCE: usize = 3;

    fn dedup_key(&self) -> Option<String> {
        Some(self.document.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let (bases, document) = (&bases, &self.document);
        Embedding::of(bases, &run, document, Lane::First)
            .run()
            .await
    }

    async fn give_up(self, bases: Bases, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        give_up(&bases, &self.document, why).await
    }
}

impl Job for EmbedLong {
    type State = Bases;

    const KIND: &'static str = "bases.embed_long";

    const RETRY: RetryRule = RETRY;

    /// Beside those of [`Embed`].
    const AT_ONCE: usize = 3;

    fn dedup_key(&self) -> Option<String> {
        Some(self.document.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let (bases, document) = (&bases, &self.document);
        Embedding::of(bases, &run, document, Lane::Long).run().await
    }

    async fn give_up(self, bases: Bases, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        give_up(&bases, &self.document, why).await
    }
}

/// Notes that a document is not embedded.
async fn give_up(bases: &Bases, document: &str, why: GivenUp) -> anyhow::Result<()> {
    let (db, now) = (bases.store.db(), bases.clock.now_ms());
    match why {
        // It may be embedded another time, so a base that changes its profile goes on waiting for it.
        GivenUp::Failed => {
            let reason = "the document could not be embedded; it was tried several times";
            store::fail_embedding(db, document, reason, now).await?;
        }
        GivenUp::Died => {
            let reason = "embedding the document ended the server's process, so it is not embedded";
            store::refuse_embedding(db, document, reason, now).await?;
            if let Some(owned) = store::load_document(db, document).await? {
                change_over_if_ready(bases, &owned.base_id).await?;
            }
        }
    }
    Ok(())
}

/// A run of one of the jobs.
struct Embedding<'a> {
    bases: &'a Bases,
    run: &'a Run,
    /// The document's id.
    document: &'a str,
    lane: Lane,
}

impl<'a> Embedding<'a> {
    fn of(bases: &'a Bases, run: &'a Run, document: &'a str, lane: Lane) -> Self {
        Self {
            bases,
            run,
            document,
            lane,
        }
    }

    async fn run(&self) -> anyhow::Result<RunResult> {
        let ended = self.attempt().await;
        let ended = outage::outlast(self.bases, ended, || {
            let db = self.bases.store.db();
            store::wait_with_embedding(db, self.document, Some(outage::REASON))
        })
        .await;
        if let Err(error) = &ended
            && let Some(failed) = error.downcast_ref::<ProviderError>()
        {
            // A reason that cannot be noted does not hide the failure.
            let _ = self.tell(failed).await;
        }
        ended
    }

    /// Says at the document why the embedding service gave no vectors, while another attempt follows and after the last one, which
    /// [`give_up`] follows.
    async fn tell(&self, error: &ProviderError) -> Result<(), StoreError> {
        let db = self.bases.store.db();
        let reason = error.reason();
        match self.run.attempt < ATTEMPTS {
            true => {
                let reason = format!("the embedding service failed and is asked again: {reason}");
                store::wait_with_embedding(db, self.document, Some(&reason)).await
            }
            false => {
                let reason =
                    format!("the embedding service failed, also when it was asked again: {reason}");
                store::note_embedding_error(db, self.document, &reason).await
            }
        }
    }

    async fn attempt(&self) -> anyhow::Result<RunResult> {
        let bases = self.bases;
        let db = bases.store.db();
        let Some(owned) = store::load_document(db, self.document).await? else {
            store::stop_embedding(db, self.document).await?;
            return Ok(RunResult::Done);
        };
        if self.lane == Lane::First && jobs::is_unfinished::<EmbedLong>(db, self.document).await? {
            return self.hand_over(&owned).await;
        }
        let (document, now) = (&owned.document, bases.clock.now_ms());
        let contents = store::contents_of(db, &document.id).await?;
        let rewritten = contents
            .into_iter()
            .find(|content| content.variant == Variant::Rewritten);
        let Some(rewritten) = rewritten else {
            store::stop_embedding(db, &document.id).await?;
            return Ok(RunResult::Done);
        };
        let anew = store::is_embedded_anew(db, &document.id).await?;
        let profile = Profile::current(bases).await?;
        if self.lane == Lane::First && self.is_long(&rewritten, &profile, anew).await? {
            return self.leave(&owned).await;
        }
        store::set_embedding(db, &document.id, Step::Running, None, now).await?;
        let most = u64::from(bases.config.knowledge.max_text_bytes);
        let text = content::text(bases, &rewritten, most).await?;
        let embedded = match self.embed(&owned, &profile, text, anew).await? {
            Ok(embedded) => embedded,
            Err(NoManifest::Waits) => return Ok(RunResult::Done),
            Err(NoManifest::More) => {
                // Nobody works on it meanwhile, so it may be deleted.
                store::wait_with_embedding(db, &document.id, None).await?;
                return Ok(RunResult::Again(Duration::ZERO));
            }
            Err(NoManifest::Long) => return self.leave(&owned).await,
            Err(NoManifest::Changed | NoManifest::Stopping) => {
                return Ok(RunResult::Again(Duration::ZERO));
            }
            Err(NoManifest::Refused(refused)) => {
                let now = bases.clock.now_ms();
                store::refuse_embedding(db, &document.id, &refused, now).await?;
                change_over_if_ready(bases, &owned.base_id).await?;
                return Ok(RunResult::Done);
            }
        };
        self.store(&owned, &profile, embedded, anew).await
    }

    /// Returns true if the document is long, without a look at its text: its bytes are many, and nothing of it is embedded.
    async fn is_long(&self, text: &Content, profile: &Profile, anew: bool) -> anyhow::Result<bool> {
        let Some(embedder) = &self.bases.providers.embedder else {
            return Ok(false);
        };
        let bytes = usize::try_from(text.bytes).unwrap_or_default();
        let options = ChunkOptions::of(embedder.max_tokens());
        if !is_long_text(bytes, options, embedder.max_texts()) {
            return Ok(false);
        }
        let made = made_before(self.bases, self.document, profile, anew).await?;
        Ok(made.is_none())
    }

    /// Leaves the document to the job of long ones. The vectors that were made of it, if any, are put aside before.
    async fn leave(&self, owned: &OwnedDocument) -> anyhow::Result<RunResult> {
        // Nobody works on it meanwhile, so it may be deleted.
        store::wait_with_embedding(self.bases.store.db(), self.document, None).await?;
        self.hand_over(owned).await
    }

    /// Queues the document among the long ones, or has the job that is there run again.
    async fn hand_over(&self, owned: &OwnedDocument) -> anyhow::Result<RunResult> {
        let (bases, run) = (self.bases, self.run);
        let tenant = &owned.tenant();
        let long = &EmbedLong {
            document: self.document.to_owned(),
        };
        run.insist(bases, || async move {
            let transaction = budget::begin(bases, &owned.base_id).await?;
            if run.holds(&transaction).await? {
                jobs::enqueue(bases, &transaction, Some(tenant.partner()), long).await?;
                transaction.commit().await?;
            }
            Ok(())
        })
        .await?;
        bases.kernel.jobs.wake();
        Ok(RunResult::Done)
    }

    async fn store(
        &self,
        owned: &OwnedDocument,
        profile: &Profile,
        embedded: Embedded,
        anew: bool,
    ) -> anyhow::Result<RunResult> {
        let (bases, run) = (self.bases, self.run);
        let document = &owned.document;
        let Embedded {
            language,
            chunks,
            vectors,
        } = &embedded;
        let (written, chunk_count) =
            write(bases, &owned.tenant(), *language, chunks, vectors).await?;
        let new = NewManifest {
            document: &document.id,
            base: &owned.base_id,
            profile,
            written,
            chunk_count,
            contents: TableOfContents::of(chunks),
            stale: false,
        };
        drop(embedded);
        let new = &new;
        let stored = run.insist(bases, || async move {
            let transaction = budget::begin(bases, &owned.base_id).await?;
            if !run.holds(&transaction).await? {
                return Ok(true);
            }
            let now = bases.clock.now_ms();
            // Somebody wrote another content meanwhile.
            let (id, revision) = (&document.id, document.revision);
            if !store::finish_embedding(&transaction, id, revision, anew, now).await? {
                return Ok(false);
            }
            bases.blobs.keep(&transaction, &new.written).await?;
            let old = store::put_manifest(&transaction, new, now).await?;
            bases.blobs.doom(&transaction, old.as_slice()).await?;
            if anew {
                let aside = store::replace_vectors(&transaction, id, None).await?;
                bases
                    .blobs
                    .doom(&transaction, aside.flatten().as_slice())
                    .await?;
            }
            change_over(bases, &transaction, &owned.base_id, profile).await?;
            transaction.commit().await?;
            Ok(true)
        });
        let stored = stored.await?;
        bases.index.wake();
        Ok(match stored {
            true => RunResult::Done,
            false => RunResult::Again(Duration::ZERO),
        })
    }

    /// Returns the chunks of a text with their vectors, all of them made `anew` or only those that are not there, or why there can be none.
    async fn embed(
        &self,
        owned: &OwnedDocument,
        profile: &Profile,
        text: String,
        anew: bool,
    ) -> anyhow::Result<Result<Embedded, NoManifest>> {
        let bases = self.bases;
        let language = owned.document.facts.language_of(&text);
        let cutter = Cutter(bases.providers.embedder.clone());
        let options = ChunkOptions::of(cutter.max_tokens());
        let count = move |text: &str| cutter.count(text);
        let chunks = match cutting::cut(bases, &owned.document, text, options, count).await? {
            Ok(chunks) => chunks,
            Err(NotCut::Stopped) => return Ok(Err(NoManifest::Changed)),
            Err(NotCut::TooMany) => {
                let reason = "the document is too long to be searched";
                return Ok(Err(NoManifest::Refused(reason.to_owned())));
            }
        };
        let most = u64::from(bases.config.knowledge.max_chunks);
        let (tenant, db) = (owned.tenant(), bases.store.db());
        let others = store::count_chunks(db, &tenant, profile.id, &owned.document.id).await?;
        if others + chunks.len() as u64 > most {
            let reason =
                format!("all documents together have more than {most} parts to be searched");
            return Ok(Err(NoManifest::Refused(reason)));
        }
        let Some(embedder) = &bases.providers.embedder else {
            let words = PackedVector::from(WORDS.as_slice());
            let vectors = chunks.iter().map(|chunk| (chunk.id, words.clone()));
            let vectors = vectors.collect();
            return Ok(Ok(Embedded {
                language,
                chunks,
                vectors,
            }));
        };
        let mut known = known(bases, &owned.document.id, profile, anew).await?;
        // Those of what the document says no more are not held.
        let wanted: HashSet<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
        known.retain(|id, _| wanted.contains(id));
        drop(wanted);
        let mut making = Making {
            bases,
            owned,
            profile,
            lane: self.lane,
            chunks: &chunks,
            begun: known.len(),
            kept: known.len(),
            kept_at: runtime_now(),
            began: bases.clock.instant(),
            vectors: known,
            anew,
        };
        let stopped = making.make(&**embedder).await;
        if !matches!(stopped, Ok(None)) {
            making.put_aside().await?;
        }
        let vectors = making.vectors;
        Ok(match stopped? {
            Some(stopped) => Err(stopped),
            None => Ok(Embedded {
                language,
                chunks,
                vectors,
            }),
        })
    }
}
