//! The client's end on the crate `webrtc`, which brings its own sockets, tasks and timers.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use anyhow::Context as _;
use bytes::Bytes;
use tokio::sync::mpsc;
use webrtc::{
    media_stream::{
        track_local::{TrackLocal, static_rtp::TrackLocalStaticRTP},
        track_remote::{TrackRemote, TrackRemoteEvent},
    },
    peer_connection::{
        PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCIceCandidateInit,
        RTCIceGatheringState, RTCPeerConnectionIceEvent, RTCPeerConnectionState,
        RTCSessionDescription, Registry, configure_rtcp_reports,
    },
    runtime::Runtime as _,
};

use super::{
    super::{
        log::MediaState,
        network::{Conditions, Network},
        now,
    },
    Microphone, PeerEvent, candidate_ip, media_engine, reachable, reaches,
    runtime::Runtime,
    settings,
};

/// The stack. Dropping it stops its tasks, as a page that is closed does.
pub(crate) struct Peer {
    connection: Box<dyn PeerConnection>,
    runtime: Arc<Runtime>,
    ip: IpAddr,
    microphone: Microphone,
    track: Arc<TrackLocalStaticRTP>,
    events: mpsc::UnboundedReceiver<PeerEvent>,
}

impl Peer {
    pub(super) async fn new(ip: IpAddr, network: Network) -> anyhow::Result<Self> {
        let runtime = Arc::new(Runtime::new(network));
        let (sender, events) = mpsc::unbounded_channel();
        let handler = Handler {
            events: sender,
            runtime: Arc::clone(&runtime),
        };
        // The flag makes an ICE restart take new sockets.
        let settings = settings().with_discard_local_candidates_during_ice_restart(true);
        let connection = PeerConnectionBuilder::new()
            .with_setting_engine(settings.build())
            .with_media_engine(media_engine()?)
            .with_interceptor_registry(configure_rtcp_reports(Registry::new()))
            .with_handler(Arc::new(handler))
            .with_runtime(Arc::<Runtime>::clone(&runtime))
            .with_udp_addrs(vec![SocketAddr::new(ip, 0)])
            .build()
            .await?;
        let microphone = Microphone::new();
        let track = Arc::new(TrackLocalStaticRTP::new(microphone.track()));
        connection
            .add_track(Arc::<TrackLocalStaticRTP>::clone(&track))
            .await?;
        Ok(Self {
            connection: Box::new(connection),
            runtime,
            ip,
            microphone,
            track,
            events,
        })
    }

    pub(super) async fn offer(&mut self, ice_restart: bool) -> anyhow::Result<String> {
        if ice_restart {
            self.connection.restart_ice().await?;
        }
        let offer = self.connection.create_offer(None).await?;
        self.connection.set_local_description(offer).await?;
        let offer = self.connection.local_description().await;
        Ok(offer.context("the stack has no offer")?.sdp)
    }

    pub(super) async fn answer(&mut self, sdp: &str) -> anyhow::Result<()> {
        let answer = RTCSessionDescription::answer(reachable(sdp, self.ip))?;
        Ok(self.connection.set_remote_description(answer).await?)
    }

    pub(super) async fn add_candidate(
        &mut self,
        candidate: String,
        sdp_mid: Option<String>,
    ) -> anyhow::Result<()> {
        if candidate_ip(&candidate).is_some_and(|ip| reaches(self.ip, ip)) {
            let candidate = RTCIceCandidateInit {
                candidate,
                sdp_mid,
                ..RTCIceCandidateInit::default()
            };
            self.connection.add_ice_candidate(candidate).await?;
        }
        Ok(())
    }

    /// Gives a packet to the stack, whose task sends it.
    pub(super) async fn send(&mut self, payload: Bytes) -> anyhow::Result<()> {
        if let Some(packet) = self.microphone.packet(payload) {
            self.track.write_rtp(packet).await?;
        }
        Ok(())
    }

    pub(super) fn conditions(&mut self, conditions: Conditions) {
        self.runtime.conditions(conditions);
    }

    pub(super) async fn event(&mut self) -> PeerEvent {
        match self.events.recv().await {
            Some(event) => event,
            // The connection is closed.
            None => std::future::pending().await,
        }
    }

    pub(super) async fn close(&mut self) -> anyhow::Result<()> {
        Ok(self.connection.close().await?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.runtime.stop();
    }
}

/// Passes on what the stack says.
struct Handler {
    events: mpsc::UnboundedSender<PeerEvent>,
    runtime: Arc<Runtime>,
}

impl Handler {
    /// A client that is gone needs to know nothing.
    fn tell(&self, event: PeerEvent) {
        let _ = self.events.send(event);
    }
}

#[async_trait::async_trait]
impl PeerConnectionEventHandler for Handler {
    async fn on_ice_candidate(&self, event: RTCPeerConnectionIceEvent) {
        if let Ok(candidate) = event.candidate.to_json() {
            self.tell(PeerEvent::Candidate(Some(candidate.candidate)));
        }
    }

    async fn on_ice_gathering_state_change(&self, state: RTCIceGatheringState) {
        if state == RTCIceGatheringState::Complete {
            self.tell(PeerEvent::Candidate(None));
        }
    }

    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        if let Some(state) = MediaState::of(state) {
            self.tell(PeerEvent::Media(state));
        }
    }

    async fn on_track(&self, track: Arc<dyn TrackRemote>) {
        let events = self.events.clone();
        self.runtime.spawn(Box::pin(async move {
            while let Some(event) = track.poll().await {
                if let TrackRemoteEvent::OnRtpPacket(packet) = event {
                    let _ = events.send(PeerEvent::Packet(packet, now()));
                }
            }
        }));
    }
}
