//! The check before a call, as a page makes it: an offer by HTTP, and a path that comes about or not.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use bytes::BytesMut;
use serde_json::Value;
use tokio::net::UdpSocket;

use super::{
    CONNECT_PATIENCE,
    log::MediaState,
    now,
    peer::{Peer, PeerEvent},
};

/// An offer that could be a call, and what it takes to see its path come about.
pub struct Check {
    peer: Peer,
    socket: UdpSocket,
    /// The offer.
    pub offer: String,
}

impl Check {
    /// Makes an offer from loopback.
    ///
    /// # Errors
    /// When there is no socket or the stack makes no offer.
    pub async fn new() -> anyhow::Result<Self> {
        let socket = UdpSocket::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).await?;
        let mut peer = Peer::new(socket.local_addr()?, now())?;
        let (offer, _) = peer.offer(false, now())?;
        Ok(Self {
            peer,
            socket,
            offer,
        })
    }

    /// Takes the body that the server answered with, and waits for the path; returns how long it took.
    ///
    /// # Errors
    /// When the answer has no session description, or no path comes about.
    pub async fn connect(mut self, answer: &Value) -> anyhow::Result<Duration> {
        let begun = now();
        let sdp = answer["data"]["sdp"].as_str().context("no answer")?;
        self.peer.answer(sdp, begun)?;
        let mut buffer = BytesMut::zeroed(2048);
        while now() < begun + CONNECT_PATIENCE {
            while let Some(datagram) = self.peer.poll_datagram() {
                self.socket.send_to(&datagram.bytes, datagram.to).await?;
            }
            while let Some(event) = self.peer.poll() {
                if matches!(event, PeerEvent::Media(MediaState::Connected)) {
                    return Ok(now().duration_since(begun));
                }
            }
            let tick: Instant = self
                .peer
                .next_tick()
                .unwrap_or(now() + Duration::from_millis(20));
            tokio::select! {
                read = self.socket.recv_from(&mut buffer) => {
                    let (length, from) = read?;
                    self.peer.receive(BytesMut::from(&buffer[..length]), from, now());
                }
                () = tokio::time::sleep_until(tick.into()) => self.peer.tick(now())?,
            }
        }
        bail!("no path came about")
    }
}
