//! Bounds of the memory of WebSockets. Every upgrade goes through [`bounded`].
//!
//! The library below allocates a frame as soon as its header has arrived, and answers pings out of sight of its user: a pong that the client
//! does not read waits in the write buffer. Its own limits are 16 MiB for a frame, 64 MiB for a message, and none for that buffer.

use axum::extract::ws::WebSocketUpgrade;

/// Bytes that may wait for a client that does not read, unless one message is larger.
const MAX_UNREAD_BYTES: usize = 512 * 1024;

/// The longest header of a frame that a server writes (RFC 6455, section 5.2).
const MAX_HEADER_BYTES: usize = 10;

/// The largest payload of a ping, a pong or a close frame (RFC 6455, section 5.5).
pub const MAX_CONTROL_BYTES: usize = 125;

/// Bounds of a WebSocket, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct SocketBounds {
    /// Bytes to read ahead. Their memory is taken at once, also for sockets that never say anything.
    pub read_ahead: usize,
    /// Bytes to collect before they are written.
    pub write_behind: usize,
    /// The largest message and the largest frame of the client, at least [`MAX_CONTROL_BYTES`]. A frame that announces more fails the socket
    /// before memory is taken for it.
    pub largest_in: usize,
    /// The largest message of the server.
    pub largest_out: usize,
}

/// Bounds the memory that a WebSocket takes. A message that finds the write buffer full of what the client has not read fails, as a write to a
/// client that is gone does; a pong that finds it full takes the place of the one that waits.
pub fn bounded(upgrade: WebSocketUpgrade, bounds: SocketBounds) -> WebSocketUpgrade {
    // The library panics unless this is more than `write_behind`.
    let one_message = bounds
        .write_behind
        .saturating_add(bounds.largest_out)
        .saturating_add(MAX_HEADER_BYTES);
    upgrade
        .read_buffer_size(bounds.read_ahead)
        .write_buffer_size(bounds.write_behind)
        .max_write_buffer_size(one_message.max(MAX_UNREAD_BYTES))
        .max_message_size(bounds.largest_in)
        .max_frame_size(bounds.largest_in)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{
        Router,
        extract::ws::{Message, WebSocket},
        routing::get,
    };
    use socket2::SockRef;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpSocket, TcpStream},
        sync::mpsc,
        time::timeout,
    };
    use tokio_util::task::TaskTracker;

    use super::*;

    const BOUNDS: SocketBounds = SocketBounds {
        read_ahead: 4_096,
        write_behind: 0,
        largest_in: 1_000,
        largest_out: 1_000,
    };
    const PATIENCE: Duration = Duration::from_secs(60);
    /// The smallest buffers that the system gives a connection, about.
    const SMALL_BYTES: u32 = 4_096;
    const PING: u8 = 0x89;
    const TEXT: u8 = 0x81;
    const TEXT_BEGINS: u8 = 0x01;
    const TEXT_ENDS: u8 = 0x80;

    /// Opens a socket with these bounds, for which the system buffers so many bytes of what the server sends. Returns the client's side, and
    /// the report of the server's.
    async fn open<T, F>(
        bounds: SocketBounds,
        system: Option<u32>,
        serve: impl Fn(WebSocket) -> F + Clone + Send + Sync + 'static,
    ) -> (TcpStream, mpsc::Receiver<T>)
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (report, reported) = mpsc::channel(1);
        let opened = get(move |upgrade: WebSocketUpgrade| {
            let (serve, report) = (serve.clone(), report.clone());
            async move {
                bounded(upgrade, bounds).on_upgrade(move |socket| async move {
                    let _ = report.send(serve(socket).await).await;
                })
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpSocket::new_v4().unwrap();
        if let Some(bytes) = system {
            client.set_recv_buffer_size(bytes).unwrap();
            // Accepted connections have it from the listener.
            let listener = SockRef::from(&listener);
            listener.set_send_buffer_size(bytes as usize).unwrap();
        }
        let router = Router::new().route("/", opened);
        TaskTracker::new().spawn(axum::serve(listener, router).into_future());

        let mut client = client.connect(address).await.unwrap();
        let head = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                    sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(client.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 101 "));
        (client, reported)
    }

    /// The header of a frame of so many bytes.
    fn header(kind: u8, length: u16) -> Vec<u8> {
        let mut header = vec![kind];
        match u8::try_from(length) {
            Ok(short) if short < 126 => header.push(0x80 | short),
            _ => {
                header.push(0x80 | 126);
                header.extend(length.to_be_bytes());
            }
        }
        header.extend([0; 4]);
        header
    }

    fn frame(kind: u8, length: u16) -> Vec<u8> {
        let payload = vec![b' '; length.into()];
        [header(kind, length), payload].concat()
    }

    #[tokio::test]
    async fn pongs_that_nobody_reads_are_bounded() {
        // Twice as much as may wait, of answers as long as what they answer.
        const PINGS: usize = 2 * MAX_UNREAD_BYTES / MAX_CONTROL_BYTES;
        let (mut client, mut reported) = open(
            BOUNDS,
            Some(SMALL_BYTES),
            |mut socket: WebSocket| async move {
                for _ in 0..PINGS {
                    let message = socket.recv().await;
                    assert!(matches!(message, Some(Ok(Message::Ping(_)))), "{message:?}");
                }
                let message = Message::text("x".repeat(BOUNDS.largest_out));
                timeout(PATIENCE / 2, socket.send(message)).await
            },
        )
        .await;
        let pings = frame(PING, 125).repeat(PINGS);
        client.write_all(&pings).await.unwrap();
        let sent = timeout(PATIENCE, reported.recv()).await.unwrap().unwrap();
        let error = sent.expect("the write waits").unwrap_err();
        assert_eq!(error.to_string(), "Write buffer is full");
    }

    #[tokio::test]
    async fn what_is_announced_too_large_fails_before_it_arrives() {
        let beyond = [
            header(TEXT, 1_001),
            [frame(TEXT_BEGINS, 1_000), frame(TEXT_ENDS, 1)].concat(),
        ];
        for bytes in beyond {
            let (mut client, mut reported) =
                open(BOUNDS, None, |mut socket: WebSocket| async move {
                    socket.recv().await
                })
                .await;
            client.write_all(&bytes).await.unwrap();
            let received = timeout(PATIENCE, reported.recv()).await.unwrap().unwrap();
            let error = received.unwrap().unwrap_err().to_string();
            assert!(error.starts_with("Space limit exceeded"), "{error}");
        }
        let (mut client, mut reported) = open(BOUNDS, None, |mut socket: WebSocket| async move {
            socket.recv().await
        })
        .await;
        client.write_all(&frame(TEXT, 1_000)).await.unwrap();
        let received = timeout(PATIENCE, reported.recv()).await.unwrap().unwrap();
        assert_eq!(received.unwrap().unwrap().into_data().len(), 1_000);
    }

    #[tokio::test]
    async fn a_message_of_the_largest_size_is_sent() {
        let bounds = SocketBounds {
            largest_out: 3 * MAX_UNREAD_BYTES,
            ..BOUNDS
        };
        let (mut client, mut reported) = open(bounds, None, |mut socket: WebSocket| async move {
            let message = Message::text("x".repeat(3 * MAX_UNREAD_BYTES));
            socket.send(message).await
        })
        .await;
        let mut came = vec![0; MAX_HEADER_BYTES + bounds.largest_out];
        let read = timeout(PATIENCE, client.read_exact(&mut came));
        read.await.unwrap().unwrap();
        let sent = timeout(PATIENCE, reported.recv()).await.unwrap().unwrap();
        sent.unwrap();
    }
}
