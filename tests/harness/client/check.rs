//! The check before a call, as a page makes it: an offer by HTTP, and a path that comes about or not.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{
    connect_patience,
    log::MediaState,
    network::{Conditions, Network},
    now,
    peer::{Peer, PeerEvent, Stack},
};

/// An offer that could be a call, and what it takes to see its path come about.
pub struct Check {
    peer: Peer,
    /// The offer.
    pub offer: String,
}

impl Check {
    /// Makes an offer from loopback.
    ///
    /// # Errors
    /// When there is no socket or the stack makes no offer.
    pub async fn new() -> anyhow::Result<Self> {
        let network = Network::new(Conditions::default(), 1);
        let mut peer = Peer::new(Stack::default(), Ipv4Addr::LOCALHOST.into(), network).await?;
        let offer = peer.offer(false, false).await?;
        Ok(Self { peer, offer })
    }

    /// Takes the body that the server answered with, and waits for the path; returns how long it took.
    ///
    /// # Errors
    /// When the answer has no session description, or no path comes about.
    pub async fn connect(mut self, answer: &Value) -> anyhow::Result<Duration> {
        let begun = now();
        let sdp = answer["data"]["sdp"].as_str().context("no answer")?;
        self.peer.answer(sdp).await?;
        let connected = async {
            loop {
                if let PeerEvent::Media(MediaState::Connected) = self.peer.event().await? {
                    return Ok(now().duration_since(begun));
                }
            }
        };
        match tokio::time::timeout(connect_patience(), connected).await {
            Ok(took) => took,
            Err(_) => bail!("no path came about"),
        }
    }
}
