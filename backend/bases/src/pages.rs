//! Rows of the documents of a base, read a page at a time, so that the memory that they take does not grow with the base.

use std::time::Duration;

use colloquy_store::StoreError;
use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::time::{sleep, timeout};

use super::{
    Bases,
    base::KnowledgeBase,
    error::BaseError,
    store::{self, DocumentPlace},
};

/// A row of a document, which stands somewhere in the order of these.
pub(crate) trait Placed {
    /// Its place.
    fn place(&self) -> DocumentPlace;
}

/// The back-off of pages that are read again once their answer has begun, so that a short outage does not cost a long download.
#[derive(Debug, Clone, Copy)]
struct Retries {
    /// Delay before the first retry; doubles with each one.
    first_delay: Duration,
    longest_delay: Duration,
    /// Duration of all retries of a page together, after which its last failure stands.
    total: Duration,
}

const RETRIES: Retries = Retries {
    first_delay: Duration::from_millis(250),
    longest_delay: Duration::from_secs(4),
    total: Duration::from_secs(30),
};

type Reading<T> = BoxFuture<'static, Result<T, StoreError>>;

/// The pages of rows of a base. Documents that are added or deleted meanwhile may be missing; each of the others is there once.
pub(crate) struct Pages<R> {
    /// A page that was read ahead.
    ready: Option<Vec<R>>,
    /// What the next page follows; `None` after the last one.
    after: Option<DocumentPlace>,
    /// The rows of a page that others follow.
    size: usize,
    read_page: Box<dyn FnMut(DocumentPlace) -> Reading<Vec<R>> + Send>,
    /// Reads if the base still exists.
    has_base: Box<dyn FnMut() -> Reading<bool> + Send>,
    /// `None` before an answer begins, which can have a status yet.
    retries: Option<Retries>,
}

impl<R: Placed> Pages<R> {
    /// Pages of so many rows, which `read_page` reads. `has_base` tells of an incomplete page if its base still exists.
    pub(crate) fn new(
        size: impl Into<usize>,
        read_page: impl FnMut(DocumentPlace) -> Reading<Vec<R>> + Send + 'static,
        has_base: impl FnMut() -> Reading<bool> + Send + 'static,
    ) -> Self {
        Self {
            ready: None,
            after: Some(DocumentPlace::first()),
            size: size.into(),
            read_page: Box::new(read_page),
            has_base: Box::new(has_base),
            retries: None,
        }
    }

    /// Pages of so many rows of the documents of a base, which `read_page` reads by the id of the base.
    pub(crate) fn of_base<F>(
        bases: &Bases,
        base: &KnowledgeBase,
        size: impl Into<usize>,
        read_page: impl Fn(Bases, String, DocumentPlace) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Vec<R>, StoreError>> + Send + 'static,
    {
        let (reader, read_base) = (bases.clone(), base.id.clone());
        let (bases, base) = (bases.clone(), base.id.clone());
        let has_base = move || {
            let (bases, base) = (bases.clone(), base.clone());
            async move { store::has_base(bases.store.db(), &base).await }.boxed()
        };
        let read_page = move |after| read_page(reader.clone(), read_base.clone(), after).boxed();
        Self::new(size, read_page, has_base)
    }

    /// Reads the first page, which [`Self::next`] returns, so that an outage is known before an answer begins. Later pages that meet an
    /// outage are read again for [`RETRIES`].
    ///
    /// # Errors
    /// The database's failure.
    pub(crate) async fn begun(self) -> Result<Self, BaseError> {
        self.begun_with(RETRIES).await
    }

    async fn begun_with(mut self, retries: Retries) -> Result<Self, BaseError> {
        self.ready = self.next().await?;
        self.retries = Some(retries);
        Ok(self)
    }

    /// Returns the next page, or `None` after the last one.
    ///
    /// # Errors
    /// The database's failure, or [`BaseError::NotFound`] if the base was deleted after the first page.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<R>>, BaseError> {
        if let Some(page) = self.ready.take() {
            return Ok(Some(page));
        }
        let Some(after) = self.after.take() else {
            return Ok(None);
        };
        let page = self.read(&after).await?;
        let is_full = page.len() >= self.size;
        self.after = page.last().filter(|_| is_full).map(Placed::place);
        Ok(Some(page))
    }

    /// Reads a page, again and again during an outage if the answer has begun.
    async fn read(&mut self, after: &DocumentPlace) -> Result<Vec<R>, BaseError> {
        let (retries, mut failure) = match (self.read_once(after).await, self.retries) {
            (Err(BaseError::Store(error)), Some(retries)) if error.is_unavailable() => {
                (retries, error)
            }
            (read, _) => return read,
        };
        tracing::warn!("an answer with documents waits for the end of an outage: {failure:#}");
        let read = timeout(retries.total, async {
            let mut delay = retries.first_delay;
            loop {
                sleep(delay).await;
                match self.read_once(after).await {
                    Err(BaseError::Store(error)) if error.is_unavailable() => failure = error,
                    read => return read,
                }
                delay = delay.saturating_mul(2).min(retries.longest_delay);
            }
        })
        .await;
        read.unwrap_or_else(|_| Err(failure.into()))
    }

    async fn read_once(&mut self, after: &DocumentPlace) -> Result<Vec<R>, BaseError> {
        let page = (self.read_page)(after.clone()).await?;
        // Without its base, the rest of the documents is missing, and the answer would look complete.
        let is_last = page.len() < self.size;
        if is_last && *after != DocumentPlace::first() && !(self.has_base)().await? {
            return Err(BaseError::NotFound("Knowledge base"));
        }
        Ok(page)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// A row of a test, which tells when it is dropped.
    #[derive(Debug)]
    pub(crate) struct Numbered {
        pub(crate) number: i64,
        held: Arc<AtomicUsize>,
    }

    impl Drop for Numbered {
        fn drop(&mut self) {
            self.held.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Placed for Numbered {
        fn place(&self) -> DocumentPlace {
            DocumentPlace {
                created_at: self.number,
                id: String::new(),
            }
        }
    }

    /// What became of the rows of a test.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Counters {
        reads: Arc<AtomicUsize>,
        held: Arc<AtomicUsize>,
        most_held: Arc<AtomicUsize>,
    }

    impl Counters {
        /// Pages that were read.
        pub(crate) fn reads(&self) -> usize {
            self.reads.load(Ordering::Relaxed)
        }

        /// The most rows that were held at once.
        pub(crate) fn most_held(&self) -> usize {
            self.most_held.load(Ordering::Relaxed)
        }

        fn row(&self, number: i64) -> Numbered {
            let held = self.held.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_held.fetch_max(held, Ordering::Relaxed);
            Numbered {
                number,
                held: Arc::clone(&self.held),
            }
        }
    }

    /// The pages of the rows 0 to `count`, 16 rows each, of which the one that begins with `fails_at` cannot be read.
    pub(crate) fn numbered(count: i64, fails_at: Option<i64>) -> (Pages<Numbered>, Counters) {
        numbered_in(count, fails_at, true)
    }

    /// Like [`numbered`], of a base that was deleted if `has_base` is false.
    pub(crate) fn numbered_in(
        count: i64,
        fails_at: Option<i64>,
        has_base: bool,
    ) -> (Pages<Numbered>, Counters) {
        let failure = move |begin: i64| {
            let is_away = fails_at == Some(begin);
            is_away.then(|| StoreError::unavailable("it is away"))
        };
        failing(count, failure, has_base)
    }

    /// Like [`numbered_in`], where the page that begins with a number fails if `failure` has a failure for it.
    fn failing(
        count: i64,
        mut failure: impl FnMut(i64) -> Option<StoreError> + Send + 'static,
        has_base: bool,
    ) -> (Pages<Numbered>, Counters) {
        let counters = Counters::default();
        let reader = counters.clone();
        let read_page = move |after: DocumentPlace| {
            reader.reads.fetch_add(1, Ordering::Relaxed);
            let begin = after.created_at.saturating_add(1).max(0);
            let page: Result<Vec<Numbered>, StoreError> = match failure(begin) {
                Some(error) => Err(error),
                None => {
                    let end = count.min(begin + 16);
                    Ok((begin..end).map(|number| reader.row(number)).collect())
                }
            };
            async move { page }.boxed()
        };
        let pages = Pages::new(16_u8, read_page, move || {
            async move { Ok(has_base) }.boxed()
        });
        (pages, counters)
    }

    #[tokio::test]
    async fn each_row_is_in_one_page_and_pages_are_not_kept() {
        for count in [0, 1, 15, 16, 17, 40] {
            let (pages, counters) = numbered(count, None);
            let mut pages = pages.begun().await.unwrap();
            assert_eq!(counters.reads(), 1, "{count}");
            let mut numbers = Vec::new();
            while let Some(page) = pages.next().await.unwrap() {
                numbers.extend(page.iter().map(|row| row.number));
            }
            assert_eq!(numbers, (0..count).collect::<Vec<_>>());
            assert!(pages.next().await.unwrap().is_none());
            assert!(counters.most_held() <= 16, "{count}");
        }
    }

    #[tokio::test]
    async fn a_first_page_that_cannot_be_read_is_told_at_once() {
        let (pages, counters) = numbered(16, Some(0));
        assert!(pages.begun().await.is_err());
        assert_eq!(counters.reads(), 1);
    }

    #[tokio::test]
    async fn a_base_that_was_deleted_has_no_last_page() {
        for (count, full) in [(16, 1), (17, 1), (32, 2), (40, 2)] {
            let (pages, _) = numbered_in(count, None, false);
            let mut pages = pages.begun().await.unwrap();
            for _ in 0..full {
                assert_eq!(pages.next().await.unwrap().unwrap().len(), 16);
            }
            let ended = pages.next().await;
            assert!(matches!(ended, Err(BaseError::NotFound(_))), "{count}");
        }
    }

    const QUICK: Retries = Retries {
        first_delay: Duration::from_millis(1),
        longest_delay: Duration::from_millis(4),
        total: Duration::from_millis(100),
    };

    #[tokio::test]
    async fn a_page_that_meets_a_short_outage_is_read_again() {
        let mut failures = 0;
        let failure = move |begin: i64| {
            let is_away = begin == 16 && failures < 2;
            failures += i32::from(is_away);
            is_away.then(|| StoreError::unavailable("it is away"))
        };
        let (pages, counters) = failing(40, failure, true);
        // As long as it takes, so that a slow machine does not end the retries.
        let patient = Retries {
            total: Duration::from_secs(600),
            ..QUICK
        };
        let mut pages = pages.begun_with(patient).await.unwrap();
        let mut numbers = Vec::new();
        while let Some(page) = pages.next().await.unwrap() {
            numbers.extend(page.iter().map(|row| row.number));
        }
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
        assert_eq!(counters.reads(), 3 + 2);
    }

    #[tokio::test]
    async fn an_outage_that_does_not_end_breaks_off() {
        let (pages, counters) = numbered(40, Some(16));
        let mut pages = pages.begun_with(QUICK).await.unwrap();
        pages.next().await.unwrap();
        let ended = pages.next().await.unwrap_err();
        assert!(matches!(ended, BaseError::Store(error) if error.is_unavailable()));
        let retries = counters.reads() - 2;
        assert!((1..=100).contains(&retries), "{retries}");
    }

    #[tokio::test]
    async fn a_failure_that_is_no_outage_breaks_off_at_once() {
        let failure = |begin: i64| (begin == 16).then(|| StoreError::malformed("it is no number"));
        let (pages, counters) = failing(40, failure, true);
        let mut pages = pages.begun_with(QUICK).await.unwrap();
        pages.next().await.unwrap();
        pages.next().await.unwrap_err();
        assert_eq!(counters.reads(), 2);
    }
}
