//! The client's end of WebRTC: one Opus track each way, on the sans-IO core `rtc`.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use rtc::{
    interceptor::Registry,
    media_stream::MediaStreamTrack,
    peer_connection::{
        RTCPeerConnection, RTCPeerConnectionBuilder,
        configuration::{
            interceptor_registry::configure_rtcp_reports,
            media_engine::{MIME_TYPE_OPUS, MediaEngine},
            setting_engine::SettingEngineBuilder,
        },
        event::RTCPeerConnectionEvent,
        message::{RTCMessage, TaggedRTCMessage},
        sdp::RTCSessionDescription,
        state::RTCPeerConnectionState,
        transport::{CandidateConfig, CandidateHostConfig, RTCIceCandidate, RTCIceCandidateInit},
    },
    rtp,
    rtp_transceiver::{
        RTCRtpSenderId,
        rtp_sender::{
            RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
            RtpCodecKind,
        },
    },
    sansio::Protocol as _,
    shared::{TaggedBytesMut, TransportContext, TransportProtocol},
};

use super::log::MediaState;

/// The payload type that the client offers Opus with.
const OPUS: u8 = 111;

/// How often the stack looks at its candidate pairs, and so how soon it nominates one that works. Its default of 200 ms
/// would be most of the time that a connection takes; browsers are faster than that, but not as fast as RFC 8445 allows
/// (5 ms, section 14.2).
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// What the stack has to say.
#[derive(Debug)]
pub(super) enum PeerEvent {
    Media(MediaState),
    Packet(rtp::Packet),
}

/// A datagram to send.
pub(super) struct Datagram {
    pub(super) to: SocketAddr,
    pub(super) bytes: BytesMut,
}

/// The stack.
pub(super) struct Peer {
    connection: RTCPeerConnection,
    sender: RTCRtpSenderId,
    local: SocketAddr,
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    /// Whether the next packet begins a talk spurt.
    spurt: bool,
}

impl Peer {
    pub(super) fn new(local: SocketAddr, now: Instant) -> anyhow::Result<Self> {
        let ssrc = rand::random();
        let opus = RTCRtpCodec {
            mime_type: MIME_TYPE_OPUS.to_owned(),
            clock_rate: 48_000,
            channels: 2,
            sdp_fmtp_line: "minptime=10;useinbandfec=1".to_owned(),
            rtcp_feedback: vec![],
        };
        let mut media_engine = MediaEngine::default();
        media_engine.register_codec(
            RTCRtpCodecParameters {
                rtp_codec: opus.clone(),
                payload_type: OPUS,
            },
            RtpCodecKind::Audio,
        )?;
        let mut connection = RTCPeerConnectionBuilder::new()
            .with_setting_engine(
                SettingEngineBuilder::new()
                    .with_include_loopback_candidate(true)
                    .with_ice_connection_attempts(Some(CHECK_INTERVAL), None)
                    .build(),
            )
            .with_media_engine(media_engine)
            .with_interceptor_registry(configure_rtcp_reports(Registry::new()))
            .build(now)?;
        let sender = connection.add_track(MediaStreamTrack::new(
            "visitor".to_owned(),
            "microphone".to_owned(),
            "microphone".to_owned(),
            RtpCodecKind::Audio,
            vec![RTCRtpEncodingParameters {
                rtp_coding_parameters: RTCRtpCodingParameters {
                    ssrc: Some(ssrc),
                    ..Default::default()
                },
                codec: opus,
                ..Default::default()
            }],
        ))?;
        Ok(Self {
            connection,
            sender,
            local,
            ssrc,
            sequence: rand::random(),
            timestamp: rand::random(),
            spurt: true,
        })
    }

    /// Makes an offer without candidates, and the candidate to trickle after it.
    pub(super) fn offer(
        &mut self,
        ice_restart: bool,
        now: Instant,
    ) -> anyhow::Result<(String, String)> {
        if ice_restart {
            self.connection.restart_ice();
        }
        let offer = self.connection.create_offer(None)?;
        self.connection.set_local_description(now, offer)?;
        let sdp = self
            .connection
            .local_description()
            .context("the stack has no offer")?
            .sdp;
        let candidate = self.candidate()?;
        self.connection.add_local_candidate(candidate.clone())?;
        self.connection
            .add_local_candidate(RTCIceCandidateInit::default())?;
        Ok((sdp, candidate.candidate))
    }

    /// Sends from another address from now on; the next offer has to restart ICE.
    pub(super) fn move_to(&mut self, local: SocketAddr) {
        self.local = local;
    }

    fn candidate(&self) -> anyhow::Result<RTCIceCandidateInit> {
        let candidate = CandidateHostConfig {
            base_config: CandidateConfig {
                network: "udp".to_owned(),
                address: self.local.ip().to_string(),
                port: self.local.port(),
                component: 1,
                ..Default::default()
            },
            ..Default::default()
        }
        .new_candidate_host()?;
        Ok(RTCIceCandidate::from(&candidate).to_json()?)
    }

    /// Takes the answer, without the candidates that cannot be reached from the client's socket.
    pub(super) fn answer(&mut self, sdp: &str, now: Instant) -> anyhow::Result<()> {
        let local = self.local.ip();
        let lines = sdp
            .lines()
            .filter(|line| candidate_ip(line).is_none_or(|ip| reaches(local, ip)));
        let sdp: String = lines.flat_map(|line| [line, "\r\n"]).collect();
        Ok(self
            .connection
            .set_remote_description(now, RTCSessionDescription::answer(sdp)?)?)
    }

    pub(super) fn add_candidate(
        &mut self,
        candidate: String,
        sdp_mid: Option<String>,
    ) -> anyhow::Result<()> {
        if candidate_ip(&candidate).is_some_and(|ip| reaches(self.local.ip(), ip)) {
            let candidate = RTCIceCandidateInit {
                candidate,
                sdp_mid,
                ..RTCIceCandidateInit::default()
            };
            self.connection.add_remote_candidate(candidate)?;
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, message: BytesMut, peer_addr: SocketAddr, now: Instant) {
        let transport = TransportContext {
            local_addr: self.local,
            peer_addr,
            transport_protocol: TransportProtocol::UDP,
            ecn: None,
        };
        // Late datagrams of an earlier path are refused, which is what a browser does too.
        let _ = self.connection.handle_read(TaggedBytesMut {
            now,
            transport,
            message,
        });
    }

    pub(super) fn next_tick(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    pub(super) fn tick(&mut self, now: Instant) -> anyhow::Result<()> {
        Ok(self.connection.handle_timeout(now)?)
    }

    /// Queues the next 20 ms; an empty payload is one that DTX leaves out.
    pub(super) fn send(&mut self, payload: Bytes, now: Instant) -> anyhow::Result<()> {
        let timestamp = self.timestamp;
        self.timestamp = timestamp.wrapping_add(960);
        if payload.is_empty() {
            self.spurt = true;
            return Ok(());
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
        let mut sender = self
            .connection
            .rtp_sender(self.sender)
            .context("the stack lost its sender")?;
        Ok(sender.write_rtp(now, rtp::Packet { header, payload })?)
    }

    pub(super) fn poll_datagram(&mut self) -> Option<Datagram> {
        let datagram = self.connection.poll_write()?;
        Some(Datagram {
            to: datagram.transport.peer_addr,
            bytes: datagram.message,
        })
    }

    pub(super) fn poll(&mut self) -> Option<PeerEvent> {
        while let Some(event) = self.connection.poll_event() {
            let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event else {
                continue;
            };
            match state {
                RTCPeerConnectionState::Connected => {
                    return Some(PeerEvent::Media(MediaState::Connected));
                }
                RTCPeerConnectionState::Disconnected => {
                    return Some(PeerEvent::Media(MediaState::Disconnected));
                }
                RTCPeerConnectionState::Failed => {
                    return Some(PeerEvent::Media(MediaState::Failed));
                }
                _ => {}
            }
        }
        while let Some(TaggedRTCMessage { message, .. }) = self.connection.poll_read() {
            if let RTCMessage::RtpPacket(_, packet) = message {
                return Some(PeerEvent::Packet(packet));
            }
        }
        None
    }

    pub(super) fn close(&mut self) -> anyhow::Result<()> {
        Ok(self.connection.close()?)
    }
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
