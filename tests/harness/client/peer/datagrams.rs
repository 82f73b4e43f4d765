//! A UDP socket whose datagrams have the time at which the system took them in. The task of a client comes to them later, the more so the busier
//! the machine is, and on a visitor's machine it would be another one.

use std::{
    io::{self, IoSliceMut},
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::BytesMut;
use colloquy::clock::{Clock as _, SystemClock};
use quinn_udp::{RecvMeta, UdpSocketState};
use tokio::{io::Interest, net::UdpSocket};

/// The largest datagram, and so the most that the system puts together of several.
const MOST: usize = 65_535;

/// A datagram that came.
pub(super) struct Arrival {
    pub(super) from: SocketAddr,
    pub(super) at: Instant,
    pub(super) bytes: BytesMut,
}

pub(super) struct Datagrams {
    udp: UdpSocket,
    state: UdpSocketState,
    buffer: Box<[u8]>,
}

impl Datagrams {
    pub(super) async fn bind(to: SocketAddr) -> anyhow::Result<Self> {
        let udp = UdpSocket::bind(to)
            .await
            .context("binding the client's media socket")?;
        let state = UdpSocketState::new((&udp).into())?;
        let buffer = vec![0; MOST].into();
        Ok(Self { udp, state, buffer })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Waits until there may be something to receive.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.udp.readable().await
    }

    /// Sends a datagram; one for which there is no room is lost, as on any network.
    pub(super) fn send(&self, bytes: &[u8], to: SocketAddr) {
        let _ = self.udp.try_send_to(bytes, to);
    }

    /// What has come: one datagram, or several of one sender at once; nothing when there is no more.
    pub(super) fn receive(&mut self) -> Vec<Arrival> {
        let mut meta = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut self.buffer)];
        let (udp, state) = (&self.udp, &self.state);
        loop {
            let received = udp.try_io(Interest::READABLE, || {
                state.recv(udp.into(), &mut buffers, &mut meta)
            });
            match received {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Vec::new(),
                // The answer to a datagram that found nobody; the next read tells of the next one.
                Err(_) => {}
            }
        }
        let [meta] = meta;
        let at = arrived(meta.timestamp);
        let bytes = self.buffer.get(..meta.len).unwrap_or_default();
        let arrivals = bytes.chunks(meta.stride.max(1)).map(|bytes| Arrival {
            from: meta.addr,
            at,
            bytes: bytes.into(),
        });
        arrivals.collect()
    }
}

/// The moment that the system's clock showed as this, or now if it showed none.
fn arrived(timestamp: Option<Duration>) -> Instant {
    let now = SystemClock.instant();
    let waited = timestamp.and_then(|timestamp| {
        let shown = Duration::try_from(
            SystemClock
                .now()
                .duration_since(jiff::Timestamp::UNIX_EPOCH),
        );
        shown.ok()?.checked_sub(timestamp)
    });
    now.checked_sub(waited.unwrap_or_default()).unwrap_or(now)
}
