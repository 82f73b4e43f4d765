//! How the vectors of a document are made, put aside and found again, and when a run makes way for other documents.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant as ClockInstant},
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
    chunking::{Chunk, ChunkId, ChunkOptions},
    search::PackedVector,
};
use colloquy_kernel::jobs;
use colloquy_providers::{
    Embedder, EmbeddingRequest, Embeddings, ProviderError, ProviderErrorKind, TokenUsage,
};
use colloquy_store::StoreError;
use tokio::{task::spawn_blocking, time::Instant};

use super::{
    Manifest, Profile, TableOfContents,
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
/// A document that more requests embed is long. After so many a run of a long one looks whether it makes way, and whether vectors are worth
/// keeping.
pub(super) const TURN: usize = 16;
/// Among documents that are not long, one makes way for others after the request during which a run has lasted for so long. Each run cuts
/// the text, of which there is not much; a long one that is there, because little of it is missing, goes on among long ones then.
const FIRST_TURN: Duration = Duration::from_secs(1);
/// A long document makes way for another long one once a run has made this part of its vectors. Each run cuts the whole text.
const LONG_TURNS: usize = 4;

/// The bytes of a text for each of its tokens, at most, on the average of a long text.
const TOKEN_BYTES: usize = 6;

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
    /// Returns true if a run makes way for others of its lane after so many requests and so much time, in which it made this many vectors
    /// of a document of so many chunks. Each run makes at least one request, and a long document is cut a few times at most, however long
    /// it is.
    fn is_turn_over(self, requests: usize, lasted: Duration, made: usize, chunks: usize) -> bool {
        match self {
            Self::First => lasted >= FIRST_TURN,
            Self::Long => requests.is_multiple_of(TURN) && made >= chunks.div_ceil(LONG_TURNS),
        }
    }

    /// Returns where a document of so many chunks goes on that makes way for others of this lane. Each run of a long one cuts all of its
    /// text and writes its whole manifest, so one of which little is missing makes way among the short ones only once.
    fn make_way(self, chunks: usize, max_texts: usize) -> NoManifest {
        match self {
            Self::First if is_long(chunks, max_texts) => NoManifest::Long,
            Self::First | Self::Long => NoManifest::More,
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

/// Returns true if a document is long of which so many chunks are to be embedded, with so many texts a request.
fn is_long(chunks: usize, max_texts: usize) -> bool {
    chunks.div_ceil(max_texts.max(1)) > TURN
}

/// Returns true if a document of so many bytes of text, of which nothing is embedded yet, is a long one by all appearances. One that is
/// only a little too long is cut before that shows.
pub(super) fn is_long_text(bytes: usize, options: ChunkOptions, max_texts: usize) -> bool {
    let of_tokens = options.max_tokens.saturating_mul(TOKEN_BYTES);
    is_long(bytes / of_tokens.min(options.max_bytes), max_texts)
}

/// Why there are no vectors of a document.
pub(super) enum NoManifest {
    /// It cannot be embedded, for this reason.
    Refused(String),
    /// It waits for room in a budget, and says so.
    Waits,
    /// The server stops: the next one goes on with it.
    Stopping,
    /// Others wait, who come first: another run of the same lane goes on with it.
    More,
    /// The document is long and goes on among those: more than a turn of requests is missing, of which none was made, or it made way among
    /// the short ones for the few that are missing after an edit.
    Long,
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
    /// When the run began, by the server's clock.
    pub(super) began: ClockInstant,
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
        if self.lane == Lane::First && is_long(missing.len(), texts) {
            return Ok(Some(NoManifest::Long));
        }
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
            let requests = number + 1;
            if requests * texts >= missing.len() {
                break;
            }
            if bases.kernel.shutdown.is_cancelled() {
                return Ok(Some(NoManifest::Stopping));
            }
            if self.is_turn_over(requests) && self.lane.others_wait(bases).await? {
                return Ok(Some(self.lane.make_way(chunks.len(), texts)));
            }
            if self.is_time_to_keep(requests) {
                self.put_aside().await?;
                self.kept_at = runtime_now();
            }
        }
        Ok(None)
    }

    /// Returns true if the run makes way after so many requests, should others wait.
    fn is_turn_over(&self, requests: usize) -> bool {
        let lasted = self
            .bases
            .clock
            .instant()
            .saturating_duration_since(self.began);
        let made = self.vectors.len() - self.begun;
        let chunks = self.chunks.len();
        self.lane.is_turn_over(requests, lasted, made, chunks)
    }

    /// Returns true if vectors are put aside after so many requests, although the run goes on.
    fn is_time_to_keep(&self, requests: usize) -> bool {
        let is_due = !is_local(self.bases) && runtime_now() >= self.kept_at + KEEP_EVERY;
        match self.lane {
            Lane::First => is_due,
            Lane::Long if requests.is_multiple_of(TURN) => {
                is_due || is_worth_keeping(self.kept, self.vectors.len())
            }
            Lane::Long => false,
        }
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
                contents: TableOfContents::empty(),
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

/// The file of the vectors that were made of the document before, of its present or an earlier content; where all of them are made `anew`,
/// of those that are made again already.
pub(super) async fn made_before(
    bases: &Bases,
    document: &str,
    profile: &Profile,
    anew: bool,
) -> Result<Option<BlobKey>, StoreError> {
    let db = bases.store.db();
    match anew {
        true => store::vectors_of(db, document, profile.id).await,
        false => store::manifest_of(db, document, profile.id).await,
    }
}

/// The vectors that were [made before](made_before), which need not be made again.
pub(super) async fn known(
    bases: &Bases,
    document: &str,
    profile: &Profile,
    anew: bool,
) -> anyhow::Result<Vectors> {
    let Some(blob) = made_before(bases, document, profile, anew).await? else {
        return Ok(HashMap::new());
    };
    let bytes = match bases.blobs.read_whole(&blob, u64::MAX).await {
        // What was given up, lost or damaged is made again.
        Err(ObjectError::Missing | ObjectError::Lost | ObjectError::Damaged) => {
            return Ok(HashMap::new());
        }
        read => read?,
    };
    let manifest = spawn_blocking(move || Manifest::read(bytes)).await?;
    Ok(manifest.map(Manifest::vectors).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A long document of which each request makes one vector.
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
        /// Makes vectors as a run among long documents does while others always wait. Returns true if it made way.
        fn run(&mut self) -> bool {
            self.cuts += 1;
            let (begun, mut kept) = (self.made, self.made);
            while self.made + 1 < self.chunks {
                self.made += 1;
                let requests = self.made - begun;
                if Lane::Long.is_turn_over(requests, Duration::ZERO, requests, self.chunks) {
                    self.written += self.made;
                    return true;
                }
                if requests.is_multiple_of(TURN) && is_worth_keeping(kept, self.made) {
                    self.written += self.made;
                    kept = self.made;
                }
            }
            self.made = self.chunks;
            self.written += self.made;
            false
        }
    }

    #[test]
    fn the_work_on_long_documents_that_take_turns_grows_with_their_length() {
        for chunks in [100, 1_000, 10_000, 100_000] {
            assert!(is_long(chunks, 1));
            // One that is not long by all appearances was cut before it went among them.
            let document = || Document {
                chunks,
                cuts: 1,
                ..Document::default()
            };
            let mut documents = [document(), document(), document()];
            let mut waiting: VecDeque<usize> = (0..documents.len()).collect();
            while let Some(at) = waiting.pop_front() {
                if documents[at].run() {
                    waiting.push_back(at);
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
    fn an_edited_long_document_makes_way_among_short_ones_once() {
        let goes_on = |lane: Lane, chunks| lane.make_way(chunks, 2);
        assert!(matches!(goes_on(Lane::First, 32), NoManifest::More));
        assert!(matches!(goes_on(Lane::First, 33), NoManifest::Long));
        assert!(matches!(goes_on(Lane::Long, 33), NoManifest::More));
        assert!(matches!(goes_on(Lane::Long, 1), NoManifest::More));
    }

    /// How long a document of one request waits behind so many of so many chunks, which came before it, for one of two places of the first
    /// lane.
    fn wait(documents: usize, chunks: usize, max_texts: usize, request: Duration) -> Duration {
        let mut waiting = VecDeque::from(vec![chunks.div_ceil(max_texts); documents]);
        waiting.push_back(1);
        let mut places = [Duration::ZERO; 2];
        let mut before = documents;
        while let Some(mut left) = waiting.pop_front() {
            let place = usize::from(places[1] < places[0]);
            if before == 0 {
                return places[place];
            }
            before -= 1;
            if is_long(left * max_texts, max_texts) {
                continue;
            }
            let (mut requests, mut lasted) = (0, Duration::ZERO);
            while left > 0 {
                (left, requests, lasted) = (left - 1, requests + 1, lasted + request);
                if left > 0 && Lane::First.is_turn_over(requests, lasted, 0, chunks) {
                    waiting.push_back(left);
                    break;
                }
            }
            places[place] += lasted;
        }
        unreachable!("it gets its turn")
    }

    #[test]
    fn a_short_document_waits_for_one_request_of_each_before_it_and_for_no_long_one() {
        for request in [1, 4, 30].map(Duration::from_secs) {
            for long in [1_025, 1_250, 100_000] {
                assert_eq!(wait(6, long, 64, request), Duration::ZERO, "{long}");
            }
            for shorter in [1_024, 640, 128] {
                assert_eq!(wait(6, shorter, 64, request), 3 * request, "{shorter}");
            }
        }
        // Fast requests are not counted: all of a document takes less than a turn.
        let fast = Duration::from_millis(20);
        assert_eq!(wait(2, 1_024, 64, fast), 16 * fast);
    }

    #[test]
    fn a_text_is_long_before_it_is_cut_where_all_of_its_chunks_may_be_large() {
        let options = ChunkOptions::of(254);
        let of_chunk = 254 * TOKEN_BYTES;
        assert!(!is_long_text(TURN * 64 * of_chunk, options, 64));
        assert!(is_long_text((TURN * 64 + 1) * of_chunk, options, 64));
        assert!(is_long_text((TURN + 1) * of_chunk, options, 1));
        // A chunk has no more bytes than an index takes.
        let options = ChunkOptions::of(32_768);
        assert!(is_long_text((TURN + 1) * options.max_bytes, options, 1));
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
