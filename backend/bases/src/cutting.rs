//! Cuts the text of a document into chunks, on a thread that may be blocked.
//!
//! A text of 32 megabytes takes seconds. The thread ends soon after nobody wants the chunks any more: when the server stops, the job's lease is
//! lost, the document is deleted, or somebody writes another content.

use std::time::Duration;

use colloquy_index::{
    chunking::{Chunk, ChunkOptions, CutLimits, NotCut, try_chunk},
    search::MAX_DOCUMENT_CHUNKS,
};
use tokio::{task::spawn_blocking, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{Bases, document::Document, store};

/// How often it is looked whether the document is still there.
const LOOK: Duration = Duration::from_secs(1);

/// Cuts the text of a document into chunks of this size at most, as `count` tells their tokens.
///
/// # Errors
/// The failure of the thread. The inner error says why there are no chunks; the job of a document that [changed](NotCut::Stopped) runs again.
pub(crate) async fn cut(
    bases: &Bases,
    document: &Document,
    text: String,
    options: ChunkOptions,
    count: impl Fn(&str) -> usize + Send + 'static,
) -> anyhow::Result<Result<Vec<Chunk>, NotCut>> {
    let title = document.name.clone();
    let stopped = bases.kernel.shutdown.child_token();
    tokio::select! {
        chunks = on_a_thread(stopped, text, title, options, count) => chunks,
        () = changed(bases, document) => Ok(Err(NotCut::Stopped)),
    }
}

/// Cuts a text on a thread that ends once the token is cancelled, or this future is dropped, as when the lease is lost.
async fn on_a_thread(
    stopped: CancellationToken,
    text: String,
    title: String,
    options: ChunkOptions,
    count: impl Fn(&str) -> usize + Send + 'static,
) -> anyhow::Result<Result<Vec<Chunk>, NotCut>> {
    let _dropped = stopped.clone().drop_guard();
    let cut = spawn_blocking(move || {
        let limits = CutLimits {
            max_chunks: MAX_DOCUMENT_CHUNKS,
            is_stopped: &|| stopped.is_cancelled(),
        };
        try_chunk(&text, &title, options, &count, &limits)
    });
    Ok(cut.await?)
}

/// Returns once the document is deleted or has another revision. While the database cannot tell, it counts as unchanged.
async fn changed(bases: &Bases, document: &Document) {
    loop {
        sleep(LOOK).await;
        match store::load_document(bases.store.db(), &document.id).await {
            Ok(Some(now)) if now.document.revision == document.revision => {}
            Err(_) => {}
            Ok(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    /// Begins to cut a text of a thousand paragraphs. The thread waits before it counts the tokens of a part, and reports each; what it reports to
    /// is closed once it has ended.
    fn begin(
        stopped: CancellationToken,
    ) -> (
        impl Future<Output = anyhow::Result<Result<Vec<Chunk>, NotCut>>>,
        mpsc::Receiver<usize>,
    ) {
        let (counted, reports) = mpsc::channel(1);
        let count = move |text: &str| {
            let _ = counted.blocking_send(text.len());
            text.len()
        };
        let text = "A paragraph that has a few words.\n\n".repeat(1_000);
        let options = ChunkOptions::of(40);
        let cut = on_a_thread(stopped, text, String::new(), options, count);
        (cut, reports)
    }

    #[tokio::test]
    async fn a_thread_ends_when_nobody_waits_for_it() {
        let (cut, mut reports) = begin(CancellationToken::new());
        tokio::select! {
            _ = cut => panic!("it waits for what it reports to"),
            first = reports.recv() => assert!(first.is_some()),
        }
        let mut rest = 0;
        while reports.recv().await.is_some() {
            rest += 1;
        }
        assert!(rest < 20, "{rest}");
    }

    #[tokio::test]
    async fn a_thread_ends_when_the_server_stops() {
        let stopped = CancellationToken::new();
        let (cut, mut reports) = begin(stopped.clone());
        let stop = async {
            reports.recv().await;
            stopped.cancel();
            while reports.recv().await.is_some() {}
        };
        let (cut, ()) = tokio::join!(cut, stop);
        assert_eq!(cut.unwrap(), Err(NotCut::Stopped));
    }
}
