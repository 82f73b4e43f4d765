//! The job that embeds.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use anyhow::Context as _;
use colloquy_accounts::Tenant;
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_blobs::{BlobKey, ObjectError, Written};
use colloquy_index::{
    analysis::Language,
    chunking::{Chunk, ChunkId, ChunkOptions, NotCut, table_of_contents},
    search::PackedVector,
};
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_providers::{
    Embedder, EmbeddingRequest, Embeddings, ProviderError, ProviderErrorKind, TokenUsage,
};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{
    Cutter, Manifest, Profile,
    change::{change_over, change_over_if_ready},
    manifest,
};
use crate::{
    Bases,
    admission::{
        self, Admission, PaidRequest, PaidStep, UsageBound, UsageOutcome, Used, is_unsent,
    },
    budget,
    content::{self, Variant},
    cutting,
    document::Step,
    outage,
    store::{self, NewManifest, OwnedDocument},
};

/// The tokens that a price is for.
const PRICED_TOKENS: u64 = 1_000_000;
/// The most tokens that a model puts around a text.
const MARKS: u64 = 8;
/// How often embedding is begun.
pub(super) const ATTEMPTS: u32 = 6;
/// The largest table of contents that is kept, in bytes; one that is larger has its highest headings.
const MAX_CONTENTS: usize = 64 * 1024;
/// After so many requests documents that wait come first.
const TURN: usize = 16;
/// The vector of a chunk that is found by its words alone.
const WORDS: [f32; 1] = [1.0];

/// Embeds the final content of a document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Embed {
    /// The document's id.
    pub document: String,
}

/// Vectors by the content of their chunks, a byte for each number. The chunks and these are all that is held of a document for as long as it is
/// embedded: 100,000 chunks of 384 dimensions take 40 MB.
type Vectors = HashMap<ChunkId, PackedVector>;

/// The chunks of a document, and a vector for each of them.
struct Embedded {
    language: Option<Language>,
    chunks: Vec<Chunk>,
    vectors: Vectors,
}

/// Why there are no vectors of a document.
enum NoManifest {
    /// It cannot be embedded, for this reason.
    Refused(String),
    /// It waits for room in a budget, and says so.
    Waits,
    /// Others wait, who come first: another run goes on with it.
    More,
    /// The document is deleted, or has another content.
    Changed,
}

impl Job for Embed {
    type State = Bases;

    const KIND: &'static str = "bases.embed";

    const RETRY: RetryRule = RetryRule {
        attempts: ATTEMPTS,
        first: Duration::from_secs(2),
        most: Duration::from_secs(300),
    };

    /// Each has the text of a document and its vectors in memory.
    const AT_ONCE: usize = 4;

    fn dedup_key(&self) -> Option<String> {
        Some(self.document.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        outage::outlast(&bases, ended, || {
            store::wait_with_embedding(bases.store.db(), &self.document, outage::REASON)
        })
        .await
    }

    async fn give_up(self, bases: Bases, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        let (db, now) = (bases.store.db(), bases.clock.now_ms());
        match why {
            // It may be embedded another time, so a base that changes its profile goes on waiting for it.
            GivenUp::Failed => {
                let reason = "the document could not be embedded; it was tried several times";
                let (id, failed) = (&self.document, Step::Failed);
                store::set_embedding(db, id, failed, Some(reason), now).await?;
            }
            GivenUp::Died => {
                let reason =
                    "embedding the document ended the server's process, so it is not embedded";
                store::refuse_embedding(db, &self.document, reason, now).await?;
                if let Some(owned) = store::load_document(db, &self.document).await? {
                    change_over_if_ready(&bases, &owned.base_id).await?;
                }
            }
        }
        Ok(())
    }
}

impl Embed {
    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let db = bases.store.db();
        let Some(owned) = store::load_document(db, &self.document).await? else {
            store::stop_embedding(db, &self.document).await?;
            return Ok(RunResult::Done);
        };
        let (document, now) = (&owned.document, bases.clock.now_ms());
        let contents = store::contents_of(db, &document.id).await?;
        let rewritten = contents
            .into_iter()
            .find(|content| content.variant == Variant::Rewritten);
        let Some(rewritten) = rewritten else {
            store::stop_embedding(db, &document.id).await?;
            return Ok(RunResult::Done);
        };
        store::set_embedding(db, &document.id, Step::Running, None, now).await?;
        let anew = store::is_embedded_anew(db, &document.id).await?;
        let most = u64::from(bases.config.knowledge.max_text_bytes);
        let text = content::text(bases, &rewritten, most).await?;
        let profile = Profile::current(bases).await?;
        let embedded = match self.embed(bases, &owned, &profile, text, anew).await? {
            Ok(embedded) => embedded,
            Err(NoManifest::Waits) => return Ok(RunResult::Done),
            Err(NoManifest::More | NoManifest::Changed) => {
                return Ok(RunResult::Again(Duration::ZERO));
            }
            Err(NoManifest::Refused(refused)) => {
                let now = bases.clock.now_ms();
                store::refuse_embedding(db, &document.id, &refused, now).await?;
                change_over_if_ready(bases, &owned.base_id).await?;
                return Ok(RunResult::Done);
            }
        };
        self.store(bases, run, &owned, &profile, embedded, anew)
            .await
    }

    async fn store(
        &self,
        bases: &Bases,
        run: &Run,
        owned: &OwnedDocument,
        profile: &Profile,
        embedded: Embedded,
        anew: bool,
    ) -> anyhow::Result<RunResult> {
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
            contents: contents(chunks),
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
        bases: &Bases,
        owned: &OwnedDocument,
        profile: &Profile,
        text: String,
        anew: bool,
    ) -> anyhow::Result<Result<Embedded, NoManifest>> {
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
        let mut known = match anew {
            true => made_anew(bases, &owned.document.id, profile).await?,
            false => known(bases, &owned.document.id, profile).await?,
        };
        // Those of what the document says no more are not held.
        let wanted: HashSet<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
        known.retain(|id, _| wanted.contains(id));
        drop(wanted);
        let mut making = Making {
            bases,
            owned,
            profile,
            chunks: &chunks,
            kept: known.len(),
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

/// The vectors of a document while they are made.
struct Making<'a> {
    bases: &'a Bases,
    owned: &'a OwnedDocument,
    profile: &'a Profile,
    chunks: &'a [Chunk],
    vectors: Vectors,
    /// How many of them are put aside, or were there before.
    kept: usize,
    /// Whether those that were there before are made again.
    anew: bool,
}

impl Making<'_> {
    /// Makes the vectors that are missing. Returns why it stopped before all of them were made; those that were made then are to be put
    /// aside.
    async fn make(&mut self, embedder: &dyn Embedder) -> anyhow::Result<Option<NoManifest>> {
        let (bases, owned, chunks) = (self.bases, self.owned, self.chunks);
        let mut asked = HashSet::new();
        let missing = chunks
            .iter()
            .filter(|chunk| asked.insert(chunk.id) && !self.vectors.contains_key(&chunk.id));
        let missing: Vec<&Chunk> = missing.collect();
        drop(asked);
        let claim = Claim::new(Priority::Background, owned.tenant().partner().as_str());
        for (number, part) in missing.chunks(embedder.max_texts().max(1)).enumerate() {
            let request = EmbeddingRequest {
                texts: part.iter().map(|chunk| chunk.passage()).collect(),
                claim: claim.clone(),
            };
            let tokens = match embedder.counts_exactly() {
                true => part.iter().map(|chunk| chunk.tokens as u64).sum(),
                // A token has at least a byte, but for those at both ends of a text.
                false => {
                    let bytes = request.texts.iter().map(|text| text.len() as u64 + MARKS);
                    bytes.sum()
                }
            };
            let paid = PaidRequest {
                step: PaidStep::Embed,
                model: embedder.name(),
                is_local: is_local(bases),
                bound: UsageBound {
                    counts_tokens: true,
                    tokens: Some(tokens),
                    seconds: None,
                    cost: cost(bases, tokens),
                },
            };
            let Ok(admission) = admission::admit(bases, owned.payer(), paid).await? else {
                return Ok(Some(NoManifest::Waits));
            };
            let answer = embedder.embed(request).await;
            settle(bases, admission, &answer).await?;
            match answer {
                Ok(made) => {
                    let ids = part.iter().map(|chunk| chunk.id);
                    let vectors = made.vectors.iter();
                    let packed = vectors.map(|vector| PackedVector::from(vector.as_slice()));
                    self.vectors.extend(ids.zip(packed));
                }
                // It would say the same again.
                Err(error) if error.kind == ProviderErrorKind::Rejected => {
                    let reason = format!("{} refuses the document", embedder.name());
                    return Ok(Some(NoManifest::Refused(reason)));
                }
                Err(error) => return Err(error.into()),
            }
            if (number + 1) % TURN == 0 {
                // A short document does not wait until all of a long one is embedded.
                if jobs::count_due::<Embed>(bases).await? > 0 {
                    return Ok(Some(NoManifest::More));
                }
                if is_worth_keeping(self.kept, self.vectors.len()) {
                    self.put_aside().await?;
                }
            }
        }
        Ok(None)
    }

    /// Keeps the vectors that were made so far, so that the next attempt need not ask, and pay, for them again. Where all of them are made
    /// `anew`, those that there were are found until then.
    async fn put_aside(&mut self) -> anyhow::Result<()> {
        if self.vectors.len() == self.kept {
            return Ok(());
        }
        let (bases, owned) = (self.bases, self.owned);
        let tenant = owned.tenant();
        let (written, chunk_count) =
            write(bases, &tenant, None, self.chunks, &self.vectors).await?;
        if self.anew {
            self.keep_beside(&written).await?;
        } else {
            let new = NewManifest {
                document: &owned.document.id,
                base: &owned.base_id,
                profile: self.profile,
                written,
                chunk_count,
                contents: "[]".to_owned(),
                stale: true,
            };
            let new = &new;
            outage::insist(bases, || async move {
                let transaction = bases.store.begin().await?;
                bases.blobs.keep(&transaction, &new.written).await?;
                let old = store::put_manifest(&transaction, new, bases.clock.now_ms()).await?;
                bases.blobs.doom(&transaction, old.as_slice()).await?;
                transaction.commit().await?;
                Ok(())
            })
            .await?;
        }
        self.kept = self.vectors.len();
        Ok(())
    }

    /// Keeps vectors that are made anew beside the manifest of those that there were.
    async fn keep_beside(&self, written: &Written) -> anyhow::Result<()> {
        let (bases, profile, id) = (self.bases, self.profile, &self.owned.document.id);
        outage::insist(bases, || async move {
            let transaction = bases.store.begin().await?;
            bases.blobs.keep(&transaction, written).await?;
            let new = Some((&written.key, profile.id));
            // Otherwise the document is gone, and nothing is kept.
            if let Some(old) = store::replace_vectors(&transaction, id, new).await? {
                bases.blobs.doom(&transaction, old.as_slice()).await?;
                transaction.commit().await?;
            }
            Ok(())
        })
        .await
    }
}

/// True if enough vectors were made since so many were kept that all of them are written again: a quarter of those. What is written of a
/// document while no other waits is then a few times its vectors, however long it is.
fn is_worth_keeping(kept: usize, made: usize) -> bool {
    made - kept >= kept.div_ceil(4)
}

/// Whether vectors are made by this server.
fn is_local(bases: &Bases) -> bool {
    bases.config.embedder.base_url.is_none()
}

/// What so many tokens cost, where that is known.
fn cost(bases: &Bases, tokens: u64) -> Option<u64> {
    if is_local(bases) {
        return Some(0);
    }
    let price = bases.config.embedder.input_usd?;
    Some(price.cost_of(tokens, PRICED_TOKENS))
}

/// Settles what a request for vectors came to.
async fn settle(
    bases: &Bases,
    admission: Admission,
    answer: &Result<Embeddings, ProviderError>,
) -> anyhow::Result<()> {
    let made = match answer {
        // Nothing was asked.
        Err(error) if is_unsent(error) => return admission.withdraw().await,
        Err(_) if is_local(bases) => {
            let (outcome, used) = (UsageOutcome::Fault, Used::nothing());
            return admission.settle(outcome, used).await;
        }
        Err(error) => {
            let (outcome, used) = UsageOutcome::of_failure(error);
            return admission.settle(outcome, used).await;
        }
        Ok(made) => made,
    };
    let cost = match made.tokens {
        Some(tokens) => cost(bases, tokens),
        None => is_local(bases).then_some(0),
    };
    let tokens = made.tokens.map(|input| TokenUsage {
        input,
        ..TokenUsage::default()
    });
    let used = Used {
        tokens,
        seconds: None,
        cost,
    };
    admission.settle(UsageOutcome::Success, used).await
}

/// Writes a manifest of the chunks that have vectors, and tells how many these are.
async fn write(
    bases: &Bases,
    tenant: &Tenant,
    language: Option<Language>,
    chunks: &[Chunk],
    vectors: &Vectors,
) -> anyhow::Result<(Written, usize)> {
    let (bytes, count) = {
        let chunks = chunks.iter();
        let with_vectors = chunks.filter_map(|chunk| Some((chunk, vectors.get(&chunk.id)?)));
        let chunks: Vec<_> = with_vectors.collect();
        (manifest::to_bytes(language, &chunks)?, chunks.len())
    };
    let bytes = &bytes;
    let written = outage::insist(bases, || async move {
        let written = bases.blobs.write_paid(tenant.partner(), bytes.clone());
        written.await.context("writing the manifest")
    });
    Ok((written.await?, count))
}

/// The headings of a document as JSON: those of the lower levels are left out where there are very many.
fn contents(chunks: &[Chunk]) -> String {
    for lowest in (1..=6).rev() {
        let headings = chunks.iter().flat_map(|chunk| {
            let headings = chunk.headings.iter();
            headings.map(|heading| (chunk.index, heading))
        });
        let headings = headings.filter(|(_, heading)| heading.level <= lowest);
        let table = serde_json::to_string(&table_of_contents(headings));
        if let Ok(table) = table
            && table.len() <= MAX_CONTENTS
        {
            return table;
        }
    }
    "[]".to_owned()
}

/// The vectors that were made anew before the document's embedding was broken off.
async fn made_anew(bases: &Bases, document: &str, profile: &Profile) -> anyhow::Result<Vectors> {
    let blob = store::vectors_of(bases.store.db(), document, profile.id).await?;
    vectors_in(bases, blob).await
}

/// The vectors that were made of an earlier content of the document, which need not be made again.
async fn known(bases: &Bases, document: &str, profile: &Profile) -> anyhow::Result<Vectors> {
    let blob = store::manifest_of(bases.store.db(), document, profile.id).await?;
    vectors_in(bases, blob).await
}

async fn vectors_in(bases: &Bases, blob: Option<BlobKey>) -> anyhow::Result<Vectors> {
    let Some(blob) = blob else {
        return Ok(HashMap::new());
    };
    let bytes = match bases.blobs.read_whole(&blob, u64::MAX).await {
        // What is lost or damaged is made again.
        Err(ObjectError::Missing | ObjectError::Damaged) => return Ok(HashMap::new()),
        read => read?,
    };
    let manifest = spawn_blocking(move || Manifest::read(bytes)).await?;
    Ok(manifest.map(Manifest::vectors).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_of_a_long_document_is_a_few_times_its_vectors() {
        let (mut kept, mut written) = (0, 0);
        let all = 100_000;
        for made in (TURN..=all).step_by(TURN) {
            if is_worth_keeping(kept, made) {
                written += made;
                kept = made;
            }
            assert!(made - kept <= made / 4, "{kept} of {made}");
        }
        assert!(written < 6 * all, "{written}");
    }
}
