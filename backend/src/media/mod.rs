//! The driver of live calls: it moves bytes between UDP sockets, WebRTC, the signalling WebSocket and the conversation
//! engine, and provider results back into the engine.
//!
//! One task runs one call: it owns the call's WebRTC stack and its engine, so no lock and no queue stands between a
//! packet and the reply to it. What is said and when belongs to `colloquy-voice`; who may join a call and what is stored
//! about it belongs to [`calls`](crate::calls).
//!
//! - [`net`]: the one UDP port of all calls
//! - [`peer`]: WebRTC of one call, on the sans-IO core `rtc`
//! - [`signalling`]: the WebSocket: admission, framing, limits
//! - [`session`]: the task of a call
//! - [`asks`]: what the engine asks of providers
//! - [`live`]: the sessions of this node
//! - [`check`]: the check before a call: a path without a call

mod asks;
pub(crate) mod check;
mod live;
mod net;
mod peer;
mod session;
mod signalling;

use std::sync::Arc;

pub use self::signalling::session_socket;
use crate::{app::App, config::Config};

/// The media side of this node.
#[derive(Debug)]
pub struct Media {
    net: Arc<net::Net>,
    identity: peer::Identity,
    ice_servers: Vec<colloquy_protocol::IceServer>,
    live: live::LiveSessions,
    checks: Arc<tokio::sync::Semaphore>,
}

impl Media {
    /// Takes the UDP port, from which [`start`] reads.
    ///
    /// # Errors
    /// When the port is taken, or a setting is malformed.
    pub(crate) async fn open(config: &Config) -> anyhow::Result<Self> {
        let media = &config.media;
        Ok(Self {
            net: Arc::new(net::Net::open(media, config.http.listen).await?),
            identity: peer::Identity::generate()?,
            ice_servers: parse_ice_servers(media.ice_servers.as_deref())?,
            live: live::LiveSessions::default(),
            checks: check::room(),
        })
    }
}

/// Reads from the UDP port until the server has drained.
pub fn start(app: &App) {
    Arc::clone(&app.media.net).start(app);
}

/// Returns when no call of this node is left. They go on until `app.drain_over`.
pub async fn drained(app: &App) {
    app.media.live.drained().await;
}

/// Reads `COLLOQUY_MEDIA_ICE_SERVERS`: a JSON array, or URLs separated by commas.
fn parse_ice_servers(text: Option<&str>) -> anyhow::Result<Vec<colloquy_protocol::IceServer>> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    if text.starts_with('[') {
        return serde_json::from_str(text).map_err(|error| {
            anyhow::anyhow!("media.ice_servers: not an array of ICE servers: {error}")
        });
    }
    text.split(',')
        .map(str::trim)
        .map(|url| {
            let known = ["stun:", "stuns:", "turn:", "turns:"]
                .iter()
                .any(|scheme| url.starts_with(scheme));
            anyhow::ensure!(known, "media.ice_servers: {url} is no stun: or turn: URL");
            Ok(colloquy_protocol::IceServer {
                urls: vec![url.to_owned()],
                username: None,
                credential: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::parse_ice_servers;

    #[test]
    fn ice_servers_are_urls_or_json() {
        assert!(parse_ice_servers(None).unwrap().is_empty());
        let plain = parse_ice_servers(Some("stun:a:3478, turn:b:3478")).unwrap();
        assert_eq!(plain.len(), 2);
        let json = parse_ice_servers(Some(
            r#"[{"urls":["turn:b"],"username":"u","credential":"c"}]"#,
        ))
        .unwrap();
        assert_eq!(json[0].username.as_deref(), Some("u"));
        assert!(parse_ice_servers(Some("http://a")).is_err());
        assert!(parse_ice_servers(Some("[{]")).is_err());
    }
}
