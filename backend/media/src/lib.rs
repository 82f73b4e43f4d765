//! The driver of live calls: it moves bytes between UDP sockets, WebRTC, the signalling WebSocket and the conversation
//! engine, and provider results back into the engine.
//!
//! One task runs one call: it owns the call's WebRTC stack and its engine, and reads the sockets of the call's paths itself, so
//! between a packet and the reply to it stands nothing. Only what comes before a path has a socket of its own, or from
//! elsewhere, is put into the call's inbox by the reader of the port. What is said and when belongs to `colloquy-voice`; who
//! may join a call and what is stored about it belongs to `colloquy-calls`.
//!
//! What moves between the sockets and WebRTC of one call is the crate `colloquy-transport`.
//!
//! - [`signalling`]: the WebSocket: admission, framing, limits
//! - [`waiting`]: sockets that have said nothing yet
//! - [`session`]: the task of a call
//! - [`provider_requests`]: what the engine asks of providers
//! - [`detected_languages`]: the words of a call in which each utterance is heard in its own language
//! - [`live`]: the sessions of this node
//! - [`check`]: the check before a call: a path without a call

pub(crate) mod check;
mod detected_languages;
mod ice_servers;
mod live;
mod provider_requests;
mod session;
mod signalling;
mod upgrade;
mod waiting;

use std::sync::Arc;

use axum::{extract::FromRef, routing::get};
use colloquy_analyses::Analyses;
use colloquy_calls::Calls;
use colloquy_generation::Generation;
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State, router::DescribedRouter, routes};
use colloquy_protocol::IceServer;
use colloquy_providers::Providers;
use colloquy_speech::Speech;
use colloquy_transport::{net, peer};

use self::{check::CheckRoom, live::LiveSessions, signalling::session_socket, waiting::Waiting};

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Media(Arc<Parts>);

/// What [`Media`] holds, besides the [`Calls`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    calls: Calls,
    generation: Generation,
    speech: Speech,
    analyses: Analyses,
    providers: Providers,
    net: Arc<net::Net>,
    identity: peer::Identity,
    ice_servers: Vec<IceServer>,
    live: LiveSessions,
    checks: CheckRoom,
    waiting: Waiting,
}

impl Media {
    /// Takes the UDP port. Nothing is read from it yet.
    ///
    /// # Errors
    /// When the port is taken, or a setting is malformed.
    pub async fn open(
        calls: Calls,
        generation: Generation,
        speech: Speech,
        analyses: Analyses,
        providers: Providers,
    ) -> anyhow::Result<Self> {
        let config = &calls.config;
        let net = net::Net::open(&config.media, config.http.listen, &calls.kernel.tasks)?;
        Ok(Self(Arc::new(Parts {
            net: Arc::new(net),
            identity: peer::Identity::generate()?,
            ice_servers: ice_servers::parse(config.media.ice_servers.as_ref())?,
            live: LiveSessions::default(),
            checks: CheckRoom::default(),
            waiting: Waiting::default(),
            calls,
            generation,
            speech,
            analyses,
            providers,
        })))
    }
}

colloquy_kernel::state!(Media: Parts.calls: Calls);

/// The calls that run on this node, as a part of a server.
#[derive(Debug)]
pub struct MediaCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for MediaCapability
where
    Media: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "media"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        let routes = DescribedRouter::new()
            .routes(routes!(check::check_path))
            // WebSockets, which OpenAPI cannot describe; their contract is the crate `colloquy-protocol`.
            .route("/v2/calls/check/session", get(check::check_socket))
            .route("/v2/calls/{id}/session", get(session_socket));
        vec![(Interface::CALLS, routes)]
    }

    /// Reads from the UDP port until the server has drained.
    async fn start(&self, state: &S) -> anyhow::Result<()> {
        let media = Media::from_ref(state);
        let announced: Vec<_> = media.net.candidates().map(|address| address.ip()).collect();
        tracing::info!(
            udp_port = media.net.candidates().next().map(|address| address.port()),
            ?announced,
            "the media of calls comes to this port at these addresses, which clients have to reach"
        );
        Arc::clone(&media.net).start(&media.kernel.drain_over);
        Ok(())
    }

    async fn drained(&self, state: &S) {
        Media::from_ref(state).live.drained().await;
    }
}
