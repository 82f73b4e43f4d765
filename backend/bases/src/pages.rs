//! Rows of the documents of a base, read a page at a time, so that the memory that they take does not grow with the base.

use futures_util::future::BoxFuture;

use colloquy_store::StoreError;

use super::store::DocumentPlace;

/// A row of a document, which stands somewhere in the order of these.
pub(crate) trait Placed {
    /// Its place.
    fn place(&self) -> DocumentPlace;
}

type ReadPage<R> =
    Box<dyn FnMut(DocumentPlace) -> BoxFuture<'static, Result<Vec<R>, StoreError>> + Send>;

/// The pages of rows of a base. Documents that are added or deleted meanwhile may be missing; each of the others is there once.
pub(crate) struct Pages<R> {
    /// A page that was read ahead.
    ready: Option<Vec<R>>,
    /// What the next page follows; `None` after the last one.
    after: Option<DocumentPlace>,
    /// The rows of a page that others follow.
    size: usize,
    read_page: ReadPage<R>,
}

impl<R: Placed> Pages<R> {
    /// Pages of so many rows, which `read_page` reads.
    pub(crate) fn new(
        size: impl Into<usize>,
        read_page: impl FnMut(DocumentPlace) -> BoxFuture<'static, Result<Vec<R>, StoreError>>
        + Send
        + 'static,
    ) -> Self {
        Self {
            ready: None,
            after: Some(DocumentPlace::first()),
            size: size.into(),
            read_page: Box::new(read_page),
        }
    }

    /// Reads the first page, which [`Self::next`] returns, so that an outage is known before an answer begins.
    ///
    /// # Errors
    /// The database's failure.
    pub(crate) async fn begun(mut self) -> Result<Self, StoreError> {
        self.ready = self.next().await?;
        Ok(self)
    }

    /// Returns the next page, or `None` after the last one.
    ///
    /// # Errors
    /// The database's failure.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<R>>, StoreError> {
        if let Some(page) = self.ready.take() {
            return Ok(Some(page));
        }
        let Some(after) = self.after.take() else {
            return Ok(None);
        };
        let page = (self.read_page)(after).await?;
        let is_full = page.len() >= self.size;
        self.after = page.last().filter(|_| is_full).map(Placed::place);
        Ok(Some(page))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures_util::FutureExt as _;

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
        let counters = Counters::default();
        let reader = counters.clone();
        let pages = Pages::new(16_u8, move |after| {
            reader.reads.fetch_add(1, Ordering::Relaxed);
            let begin = after.created_at.saturating_add(1).max(0);
            let page = match fails_at {
                Some(at) if at == begin => Err(StoreError::unavailable("it is away")),
                _ => {
                    let end = count.min(begin + 16);
                    Ok((begin..end).map(|number| reader.row(number)).collect())
                }
            };
            async move { page }.boxed()
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
        let (pages, _) = numbered(16, Some(0));
        assert!(pages.begun().await.is_err());
    }
}
