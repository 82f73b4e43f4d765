//! The client's end of WebRTC: one Opus track each way, on one of two stacks.
//!
//! - [`datagrams`]: a socket that tells when datagrams came
//! - [`on_rtc`]: the sans-IO core `rtc`, which the server uses too, with this crate's own socket and the server's repeats of
//!   DTLS flights
//! - [`on_webrtc`]: the crate `webrtc`, with its own sockets, tasks and timers
//! - [`runtime`]: what `webrtc` runs on, with sockets on a network as bad as a test wants it

mod datagrams;
mod on_rtc;
mod on_webrtc;
mod runtime;

use std::{
    fmt,
    net::IpAddr,
    time::{Duration, Instant},
};

use bytes::Bytes;
use clap::ValueEnum;
use rtc::{
    media_stream::MediaStreamTrack,
    peer_connection::configuration::{
        media_engine::{MIME_TYPE_OPUS, MediaEngine},
        setting_engine::SettingEngineBuilder,
    },
    rtp,
    rtp_transceiver::rtp_sender::{
        RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
        RtpCodecKind,
    },
};
use serde::Serialize;

use super::{
    log::MediaState,
    network::{Conditions, Network},
    now,
};

/// The payload type that the client offers Opus with.
const OPUS: u8 = 111;

/// Samples of a frame of 20 ms at 48,000 Hz.
const FRAME_SAMPLES: u32 = 960;

/// How often the stack looks at its candidate pairs, and so how soon it nominates one that works. Its default of 200 ms
/// would be most of the time that a connection takes; browsers are faster than that, but not as fast as RFC 8445 allows
/// (5 ms, section 14.2).
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// How many checks a pair gets, so that losses do not end it. A browser goes on for as long.
const CHECKS: u16 = 250;

/// The WebRTC stack of a client, by the name of its crate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// The core that the server is built on, with the server's repeats of DTLS flights. It is cheap: nothing runs but the
    /// client's task.
    #[default]
    Rtc,
    /// The asynchronous layer above that core as applications use it: its own sockets, tasks, timers and tracks, the
    /// core's own ICE agent and the core's own timers of DTLS, none of which the server has. Encryption, SDP and the
    /// messages of STUN and DTLS are the core's on both ends. An ICE restart always takes another port.
    Webrtc,
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rtc => "rtc",
            Self::Webrtc => "webrtc",
        })
    }
}

/// What the stack has to say.
#[derive(Debug)]
pub(super) enum PeerEvent {
    Media(MediaState),
    /// A packet, and when it came.
    Packet(rtp::Packet, Instant),
    /// A candidate to trickle after the last offer; `None` after the last one.
    Candidate(Option<String>),
}

/// The stack, with its sockets and the network that they are on.
pub(super) enum Peer {
    Rtc(Box<on_rtc::Peer>),
    Webrtc(on_webrtc::Peer),
}

impl Peer {
    pub(super) async fn new(stack: Stack, ip: IpAddr, network: Network) -> anyhow::Result<Self> {
        Ok(match stack {
            Stack::Rtc => Self::Rtc(Box::new(on_rtc::Peer::new(ip, network).await?)),
            Stack::Webrtc => Self::Webrtc(on_webrtc::Peer::new(ip, network).await?),
        })
    }

    /// Makes an offer; its candidates are the next events.
    pub(super) async fn offer(
        &mut self,
        ice_restart: bool,
        rebind: bool,
    ) -> anyhow::Result<String> {
        match self {
            Self::Rtc(peer) => peer.offer(ice_restart, rebind).await,
            Self::Webrtc(peer) => peer.offer(ice_restart).await,
        }
    }

    /// Takes the answer, without the candidates that cannot be reached from the client's socket.
    pub(super) async fn answer(&mut self, sdp: &str) -> anyhow::Result<()> {
        match self {
            Self::Rtc(peer) => peer.answer(sdp),
            Self::Webrtc(peer) => peer.answer(sdp).await,
        }
    }

    pub(super) async fn add_candidate(
        &mut self,
        candidate: String,
        sdp_mid: Option<String>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Rtc(peer) => peer.add_candidate(candidate, sdp_mid),
            Self::Webrtc(peer) => peer.add_candidate(candidate, sdp_mid).await,
        }
    }

    /// Sends the next 20 ms and says when; an empty payload is one that DTX leaves out.
    pub(super) async fn send(&mut self, payload: Bytes) -> anyhow::Result<Instant> {
        match self {
            Self::Rtc(peer) => peer.send(payload)?,
            Self::Webrtc(peer) => peer.send(payload).await?,
        }
        Ok(now())
    }

    /// Changes the network.
    pub(super) fn conditions(&mut self, conditions: Conditions) {
        match self {
            Self::Rtc(peer) => peer.conditions(conditions),
            Self::Webrtc(peer) => peer.conditions(conditions),
        }
    }

    /// Waits for the next event. Nothing is lost when it is dropped before.
    pub(super) async fn event(&mut self) -> anyhow::Result<PeerEvent> {
        match self {
            Self::Rtc(peer) => peer.event().await,
            Self::Webrtc(peer) => Ok(peer.event().await),
        }
    }

    pub(super) async fn close(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Rtc(peer) => peer.close(),
            Self::Webrtc(peer) => peer.close().await,
        }
    }
}

/// Numbers the packets of the microphone.
struct Microphone {
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    /// Whether the next packet begins a talk spurt.
    spurt: bool,
}

impl Microphone {
    fn new() -> Self {
        Self {
            ssrc: rand::random(),
            sequence: rand::random(),
            timestamp: rand::random(),
            spurt: true,
        }
    }

    /// The track to add to a connection.
    fn track(&self) -> MediaStreamTrack {
        let [stream, track, label] = ["visitor", "microphone", "microphone"].map(str::to_owned);
        let encoding = RTCRtpEncodingParameters {
            rtp_coding_parameters: RTCRtpCodingParameters {
                ssrc: Some(self.ssrc),
                ..Default::default()
            },
            codec: opus(),
            ..Default::default()
        };
        MediaStreamTrack::new(stream, track, label, RtpCodecKind::Audio, vec![encoding])
    }

    /// The packet of the next 20 ms, unless DTX leaves it out.
    fn packet(&mut self, payload: Bytes) -> Option<rtp::Packet> {
        let timestamp = self.timestamp;
        self.timestamp = timestamp.wrapping_add(FRAME_SAMPLES);
        if payload.is_empty() {
            self.spurt = true;
            return None;
        }
        let header = rtp::Header {
            version: 2,
            marker: std::mem::take(&mut self.spurt),
            payload_type: OPUS,
            sequence_number: self.sequence,
            timestamp,
            ssrc: self.ssrc,
            ..Default::default()
        };
        self.sequence = self.sequence.wrapping_add(1);
        Some(rtp::Packet { header, payload })
    }
}

fn opus() -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: MIME_TYPE_OPUS.to_owned(),
        clock_rate: 48_000,
        channels: 2,
        sdp_fmtp_line: "minptime=10;useinbandfec=1".to_owned(),
        rtcp_feedback: vec![],
    }
}

fn media_engine() -> anyhow::Result<MediaEngine> {
    let mut media_engine = MediaEngine::default();
    let parameters = RTCRtpCodecParameters {
        rtp_codec: opus(),
        payload_type: OPUS,
    };
    media_engine.register_codec(parameters, RtpCodecKind::Audio)?;
    Ok(media_engine)
}

fn settings() -> SettingEngineBuilder {
    SettingEngineBuilder::new()
        .with_include_loopback_candidate(true)
        .with_ice_connection_attempts(Some(CHECK_INTERVAL), Some(CHECKS))
}

/// A description without the candidates that cannot be reached from this address.
fn reachable(sdp: &str, from: IpAddr) -> String {
    let lines = sdp
        .lines()
        .filter(|line| candidate_ip(line).is_none_or(|ip| reaches(from, ip)));
    lines.flat_map(|line| [line, "\r\n"]).collect()
}

/// The address in a candidate line (RFC 8839 section 5.1), `None` for other lines.
pub(super) fn candidate_ip(line: &str) -> Option<IpAddr> {
    let line = line
        .trim()
        .trim_start_matches("a=")
        .strip_prefix("candidate:")?;
    line.split_whitespace().nth(4)?.parse().ok()
}

fn reaches(from: IpAddr, to: IpAddr) -> bool {
    from.is_ipv4() == to.is_ipv4() && from.is_loopback() == to.is_loopback()
}
