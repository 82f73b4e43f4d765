//! A connection's bytes, as the HTTP server reads and writes them.
//!
//! It tells the [`Watch`] what happens, ends a write that makes no progress, and sees that a connection that ends with
//! something unread is not reset: the client would lose the answer that says why.

use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use colloquy_base::clock::runtime_now;
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::{admission::Slot, linger::Linger, watch::Watch};
use crate::intake::Intake;

/// The connection.
#[derive(Debug)]
pub(super) struct Io {
    /// Gone when it was dropped.
    stream: Option<TcpStream>,
    slot: Option<Slot>,
    watch: Arc<Watch>,
    intake: Intake,
    linger: Linger,
    /// Whether the client has closed its side, or the connection is broken.
    over: bool,
    write_stall: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Io {
    pub(super) fn new(
        stream: TcpStream,
        slot: Slot,
        watch: Arc<Watch>,
        intake: Intake,
        linger: Linger,
        write_stall: Duration,
    ) -> Self {
        Self {
            stream: Some(stream),
            slot: Some(slot),
            watch,
            intake,
            linger,
            over: false,
            write_stall,
            stalled: None,
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| ErrorKind::NotConnected.into())
    }

    /// What became of a write.
    fn wrote(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        first: &[u8],
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(_)) => {
                self.stalled = None;
                self.watch.wrote();
            }
            Poll::Ready(Err(_)) => self.over = true,
            Poll::Pending => {
                let wait = self.write_stall;
                let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(wait)));
                ready!(stalled.as_mut().poll(context));
                return self.insist(context, first);
            }
        }
        written
    }

    /// A write has waited for its time. The system says that there is room only when a large part of its buffer is free, so
    /// a client that reads slowly but steadily looks the same as one that does not read, until it is tried.
    fn insist(&mut self, context: &mut Context<'_>, first: &[u8]) -> Poll<io::Result<usize>> {
        let taken = match &self.stream {
            Some(stream) => SockRef::from(stream).send(first),
            None => Err(ErrorKind::NotConnected.into()),
        };
        match taken {
            Ok(taken) if taken > 0 => {
                if let Some(stalled) = &mut self.stalled {
                    stalled.as_mut().reset(runtime_now() + self.write_stall);
                    // It has to be polled to wake this task again.
                    let _ = stalled.as_mut().poll(context);
                }
                self.watch.wrote();
                Poll::Ready(Ok(taken))
            }
            _ => {
                self.over = true;
                metrics::counter!("colloquy_http_connections_cut_total", "reason" => "write")
                    .increment(1);
                Poll::Ready(Err(ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(self.stream()?.poll_read(context, buffer));
        let bytes = &buffer.filled()[before..];
        if read.is_err() || (bytes.is_empty() && buffer.remaining() > 0) {
            self.over = true;
        } else {
            self.watch.read();
            self.intake.took(bytes)?;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write(context, bytes);
        self.wrote(context, written, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write_vectored(context, pieces);
        let first = pieces.iter().find(|piece| !piece.is_empty());
        self.wrote(context, written, first.map_or(&[], |piece| piece))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(self.stream()?.poll_flush(context));
        self.watch.flushed();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        let quiet = self.over || self.watch.is_quiet();
        if let (false, Some(stream), Some(slot)) = (quiet, self.stream.take(), self.slot.take()) {
            self.linger.read_rest(stream, slot);
        }
    }
}
