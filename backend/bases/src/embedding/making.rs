//! How the vectors of a document are made, put aside and found again, and when a run makes way for other documents.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use anyhow::Context as _;
use colloquy_accounts::Tenant;
use colloquy_base::{
    clock::runtime_now,
    fair_queue::{Claim, Priority},
};
use colloquy_blobs::{BlobKey, ObjectError, Written};
use colloquy_index::{
    analysis::Language,
    chunking::{Chunk, ChunkId},
    search::PackedVector,
};
use colloquy_kernel::jobs;
use colloquy_providers::{
    Embedder, EmbeddingRequest, Embeddings, ProviderError, ProviderErrorKind, TokenUsage,
};
use tokio::{task::spawn_blocking, time::Instant};

use super::{
    Manifest, Profile,
    job::{Embed, EmbedLong},
    manifest,
};
use crate::{
    Bases,
    admission::{
        self, Admission, PaidRequest, PaidStep, UsageBound, UsageOutcome, Used, is_unsent,
    },
    outage,
    store::{self, NewManifest, OwnedDocument},
};

/// The tokens that a price is for.
const PRICED_TOKENS: u64 = 1_000_000;
/// The most tokens that a model puts around a text.
const MARKS: u64 = 8;
/// After so many requests a run looks whether it makes way, and whether vectors are worth keeping.
pub(super) const TURN: usize = 16;
/// A long document makes way for another long one once a run has made this part of its vectors. Each run cuts the whole text.
const LONG_TURNS: usize = 4;

/// Vectors that somebody is paid for are put aside so often, too.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// Vectors by the content of their chunks, a byte for each number. The chunks and these are all that is held of a document for as long as
/// it is embedded: 100,000 chunks of 384 dimensions take 40 MB.
pub(super) type Vectors = HashMap<ChunkId, PackedVector>;

/// The documents that a document is embedded among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Those that are short, or whose length is not known yet.
    First,
    /// Long ones.
    Long,
}

impl Lane {
    /// Returns true if a run that made so many vectors of a document of so many chunks makes way for others of its lane. The first lane is
    /// left once; a document comes back to the other one a few times at most, however long it is.
    fn is_turn_over(self, made: usize, chunks: usize) -> bool {
        match self {
            Self::First => true,
            Self::Long => made >= chunks.div_ceil(LONG_TURNS),
        }
    }

    /// Returns true if a document of this lane is due and no run has it.
    async fn others_wait(self, bases: &Bases) -> anyhow::Result<bool> {
        let due = match self {
            Self::First => jobs::count_due::<Embed>(bases).await?,
            Self::Long => jobs::count_due::<EmbedLong>(bases).await?,
        };
        Ok(due > 0)
    }
}

/// Why there are no vectors of a document.
pub(super) enum NoManifest {
    /// It cannot be embedded, for this reason.
    Refused(String),
    /// It waits for room in a budget, and says so.
    Waits,
    /// The server stops: the next one goes on with it.
    Stopping,
    /// Others wait, who come first: another run goes on with it.
    More,
    /// The document is deleted, or has another content.
    Changed,
}

/// The vectors of a document while they are made.
pub(super) struct Making<'a> {
    pub(super) bases: &'a Bases,
    pub(super) owned: &'a OwnedDocument,
    pub(super) profile: &'a Profile,
    pub(super) lane: Lane,
    pub(super) chunks: &'a [Chunk],
    pub(super) vectors: Vectors,
    /// How many of them were there when the run began.
    pub(super) begun: usize,
    /// How many of them are put aside, or were there before.
    pub(super) kept: usize,
    /// When they were put aside, or the run began.
    pub(super) kept_at: Instant,
    /// Whether those that were there before are made again.
    pub(super) anew: bool,
}

impl Making<'_> {
    /// Makes the vectors that are missing. Returns why it stopped before all of them were made; those that were made then are to be put
    /// aside.
    pub(super) async fn make(
        &mut self,
        embedder: &dyn Embedder,
    ) -> anyhow::Result<Option<NoManifest>> {
        let (bases, owned, chunks) = (self.bases, self.owned, self.chunks);
        let mut asked = HashSet::new();
        let missing = chunks
            .iter()
            .filter(|chunk| asked.insert(chunk.id) && !self.vectors.contains_key(&chunk.id));
        let missing: Vec<&Chunk> = missing.collect();
        drop(asked);
        let claim = Claim::new(Priority::Background, owned.tenant().partner().as_str());
        let texts = embedder.max_texts().max(1);
        for (number, part) in missing.chunks(texts).enumerate() {
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
            let is_last = (number + 1) * texts >= missing.len();
            if bases.kernel.shutdown.is_cancelled() && !is_last {
                return Ok(Some(NoManifest::Stopping));
            }
            if (number + 1) % TURN == 0 && !is_last {
                let made = self.vectors.len() - self.begun;
                if self.lane.is_turn_over(made, chunks.len())
                    && self.lane.others_wait(bases).await?
                {
                    return Ok(Some(NoManifest::More));
                }
                let is_due = !is_local(bases) && runtime_now() >= self.kept_at + KEEP_EVERY;
                if is_due || is_worth_keeping(self.kept, self.vectors.len()) {
                    self.put_aside().await?;
                    self.kept_at = runtime_now();
                }
            }
        }
        Ok(None)
    }

    /// Keeps the vectors that were made so far, so that the next attempt need not ask, and pay, for them again. Where all of them are made
    /// `anew`, those that there were are found until then.
    pub(super) async fn put_aside(&mut self) -> anyhow::Result<()> {
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
pub(super) async fn write(
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

/// The vectors that were made anew before the document's embedding was broken off.
pub(super) async fn made_anew(
    bases: &Bases,
    document: &str,
    profile: &Profile,
) -> anyhow::Result<Vectors> {
    let blob = store::vectors_of(bases.store.db(), document, profile.id).await?;
    vectors_in(bases, blob).await
}

/// The vectors that were made of an earlier content of the document, which need not be made again.
pub(super) async fn known(
    bases: &Bases,
    document: &str,
    profile: &Profile,
) -> anyhow::Result<Vectors> {
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
    use std::collections::VecDeque;

    use super::*;

    /// A document of which each request makes one vector.
    #[derive(Debug, Default)]
    struct Document {
        chunks: usize,
        made: usize,
        /// How often its text was cut.
        cuts: usize,
        /// How many vectors were written, all times together.
        written: usize,
    }

    impl Document {
        /// Makes vectors as a run does while others always wait. Returns the requests of the run, and whether it made way.
        fn run(&mut self, lane: Lane) -> (usize, bool) {
            self.cuts += 1;
            let (begun, mut kept) = (self.made, self.made);
            while self.made + TURN < self.chunks {
                self.made += TURN;
                if lane.is_turn_over(self.made - begun, self.chunks) {
                    self.written += self.made;
                    return (self.made - begun, true);
                }
                if is_worth_keeping(kept, self.made) {
                    self.written += self.made;
                    kept = self.made;
                }
            }
            self.made = self.chunks;
            self.written += self.made;
            (self.made - begun, false)
        }
    }

    #[test]
    fn the_work_on_long_documents_that_take_turns_grows_with_their_length() {
        for chunks in [100, 1_000, 10_000, 100_000] {
            let document = || Document {
                chunks,
                ..Document::default()
            };
            let mut documents = [document(), document(), document()];
            let mut waiting: VecDeque<_> =
                (0..documents.len()).map(|at| (at, Lane::First)).collect();
            while let Some((at, lane)) = waiting.pop_front() {
                if documents[at].run(lane).1 {
                    waiting.push_back((at, Lane::Long));
                }
            }
            for document in &documents {
                assert_eq!(document.made, chunks);
                assert!(document.cuts <= LONG_TURNS + 2, "{document:?}");
                assert!(document.written < 10 * chunks, "{document:?}");
            }
        }
    }

    #[test]
    fn a_short_document_waits_for_one_turn_of_each_long_one() {
        let long = || Document {
            chunks: 100_000,
            ..Document::default()
        };
        let mut before = [long(), long(), long()];
        // They go on among the long ones, which have places of their own.
        let runs = before.iter_mut().map(|document| document.run(Lane::First));
        let runs: Vec<_> = runs.collect();
        assert_eq!(runs, [(TURN, true); 3]);
    }

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
