//! Connections that end while their client may still be sending.
//!
//! A socket that is closed with something unread is reset, and a reset takes away what the client has not read yet, such as
//! the answer that its body is too large. So this side is closed first, and what comes is read and thrown away until the
//! client has closed its side, for as long and as much as is reasonable. The connection counts as one meanwhile.

use std::{io::ErrorKind, net::Shutdown, time::Duration};

use socket2::SockRef;
use tokio::{net::TcpStream, runtime::Handle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The longest wait for something to come.
const BETWEEN: Duration = Duration::from_secs(5);

/// The longest time in all.
const IN_ALL: Duration = Duration::from_secs(30);

/// The most that is read.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The same for connections beyond the bound, which have asked nothing yet.
const BEYOND: Duration = Duration::from_secs(1);

/// How long such a connection has to ask.
const ASKING: Duration = Duration::from_millis(300);

/// Reads such connections to their end.
#[derive(Debug, Clone)]
pub(super) struct Linger {
    runtime: Handle,
    tasks: TaskTracker,
    cut: CancellationToken,
}

impl Default for Linger {
    fn default() -> Self {
        Self {
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
            cut: CancellationToken::new(),
        }
    }
}

impl Linger {
    /// Ends a connection; `kept` is given back when it is over.
    pub(super) fn read_rest(&self, stream: TcpStream, kept: impl Send + 'static) {
        let cut = self.cut.clone();
        let reading = async move {
            let rest = timeout(IN_ALL, discard(&stream));
            let _ = cut.run_until_cancelled(rest).await;
            drop((stream, kept));
        };
        self.tasks.spawn_on(reading, &self.runtime);
    }

    /// Says this to a connection and ends it.
    pub(super) fn refuse(
        &self,
        stream: TcpStream,
        answer: &'static [u8],
        kept: impl Send + 'static,
    ) {
        let cut = self.cut.clone();
        let telling = async move {
            let telling = async {
                // An answer that comes before its request is an error to clients, and not what it says. A new socket counts
                // as readable until it was tried.
                let _ = timeout(ASKING, stream.peek(&mut [0])).await;
                if stream.writable().await.is_ok() && stream.try_write(answer).is_ok() {
                    discard(&stream).await;
                }
            };
            let _ = cut.run_until_cancelled(timeout(BEYOND, telling)).await;
            drop((stream, kept));
        };
        self.tasks.spawn_on(telling, &self.runtime);
    }

    /// Waits until none is left.
    pub(super) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Closes those that are left.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }
}

/// Closes this side and reads until the client has closed its own.
async fn discard(stream: &TcpStream) {
    if SockRef::from(stream).shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut left = MOST_BYTES;
    while left > 0 && matches!(timeout(BETWEEN, stream.readable()).await, Ok(Ok(()))) {
        match throw_away(stream) {
            Some(bytes) => left = left.saturating_sub(bytes),
            None => return,
        }
    }
}

/// How much was there to read, `None` at the end. The buffer is here, so that no waiting task has one.
fn throw_away(stream: &TcpStream) -> Option<usize> {
    let mut buffer = [0; 16 * 1024];
    match stream.try_read(&mut buffer) {
        Ok(0) => None,
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(0),
        Err(_) => None,
    }
}
