//! WebRTC of one call, on the sans-IO core `rtc`: an offer in, an answer out; datagrams and time in, Opus packets out.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use colloquy_voice::{OutgoingFrame, RtpPacket};
use rtc::{
    crypto::{self, SignatureScheme},
    interceptor::Registry,
    media_stream::MediaStreamTrack,
    peer_connection::{
        RTCPeerConnection, RTCPeerConnectionBuilder,
        certificate::{CertificateParams, RTCCertificate},
        configuration::{
            RTCConfigurationBuilder,
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

use super::net::{Datagram, Net};

/// The node's DTLS certificate, made at start: one key generation for all calls instead of one a call.
#[derive(Debug)]
pub(super) struct Identity {
    certificate: RTCCertificate,
}

impl Identity {
    /// Makes a certificate.
    ///
    /// # Errors
    /// When the crypto provider fails.
    pub(super) fn generate() -> anyhow::Result<Self> {
        let provider = crypto::default_provider().context("no crypto provider for DTLS")?;
        let parameters = CertificateParams::new(vec!["colloquy".to_owned()])?;
        let certificate = RTCCertificate::generate(
            provider.crypto(),
            SignatureScheme::EcdsaP256Sha256,
            parameters,
        )
        .context("making the DTLS certificate")?;
        Ok(Self { certificate })
    }
}

/// What the WebRTC stack tells the session.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PeerEvent {
    /// ICE and DTLS are up: media can flow.
    Connected,
    /// Nothing came for some seconds; it may come back.
    Disconnected,
    /// ICE gave up; a restart may bring it back.
    Failed,
    /// An Opus packet of the visitor.
    Packet(RtpPacket),
}

/// How often the stack checks a pair of candidates until one is selected (RFC 8445 section 14.3 allows 5 ms and more).
/// The stack's default of 200 ms is what a client waits for whenever its first check crosses the server's.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// How many checks a pair gets: five seconds of them, since a client may take that long to answer.
const CHECKS: u16 = 250;

/// The WebRTC stack of a call.
pub(super) struct Peer {
    connection: RTCPeerConnection,
    sender: RTCRtpSenderId,
    ssrc: u32,
    payload_type: u8,
    /// The fingerprint of the client's certificate. Another one means another connection, not a renegotiation.
    remote_fingerprint: Option<String>,
}

impl Peer {
    /// A stack with one audio track to send, reachable at these candidates.
    ///
    /// # Errors
    /// When the stack refuses the configuration.
    pub(super) fn new(
        identity: &Identity,
        candidates: impl Iterator<Item = SocketAddr>,
        ssrc: u32,
        now: Instant,
    ) -> anyhow::Result<Self> {
        let opus = RTCRtpCodec {
            mime_type: MIME_TYPE_OPUS.to_owned(),
            clock_rate: 48_000,
            channels: 2,
            // What the visitor's browser is asked to send: FEC for lost packets, no more than mono needs.
            sdp_fmtp_line: "minptime=10;useinbandfec=1;stereo=0;maxaveragebitrate=40000".to_owned(),
            rtcp_feedback: vec![],
        };
        let mut media_engine = MediaEngine::default();
        media_engine.register_codec(
            RTCRtpCodecParameters {
                rtp_codec: opus.clone(),
                payload_type: 111,
            },
            RtpCodecKind::Audio,
        )?;
        let mut connection = RTCPeerConnectionBuilder::new()
            .with_configuration(
                RTCConfigurationBuilder::new()
                    .with_certificates(vec![identity.certificate.clone()])
                    .build(),
            )
            .with_setting_engine(
                SettingEngineBuilder::new()
                    .with_include_loopback_candidate(true)
                    .with_ice_connection_attempts(Some(CHECK_INTERVAL), Some(CHECKS))
                    .build(),
            )
            .with_media_engine(media_engine)
            .with_interceptor_registry(configure_rtcp_reports(Registry::new()))
            .build(now)?;
        let track = MediaStreamTrack::new(
            "colloquy".to_owned(),
            "voice".to_owned(),
            "voice".to_owned(),
            RtpCodecKind::Audio,
            vec![RTCRtpEncodingParameters {
                rtp_coding_parameters: RTCRtpCodingParameters {
                    ssrc: Some(ssrc),
                    ..Default::default()
                },
                codec: opus,
                ..Default::default()
            }],
        );
        let sender = connection.add_track(track)?;
        for address in candidates {
            connection.add_local_candidate(host_candidate(address)?)?;
        }
        connection.add_local_candidate(RTCIceCandidateInit::default())?;
        Ok(Self {
            connection,
            sender,
            ssrc,
            payload_type: 111,
            remote_fingerprint: None,
        })
    }

    /// Whether this offer belongs to the connection, or to a new one of the client's.
    pub(super) fn continues(&self, offer: &str) -> bool {
        self.remote_fingerprint.is_none()
            || self.remote_fingerprint.as_deref() == sdp_value(offer, "fingerprint")
    }

    /// Answers an offer: the first one, a renegotiation or an ICE restart. Returns the answer's SDP, which holds all
    /// candidates, and the local ICE user name fragment.
    ///
    /// # Errors
    /// When the offer is malformed or has no audio that both sides can do.
    pub(super) fn accept(
        &mut self,
        offer: String,
        now: Instant,
    ) -> anyhow::Result<(String, String)> {
        self.remote_fingerprint = sdp_value(&offer, "fingerprint").map(str::to_owned);
        self.connection
            .set_remote_description(now, RTCSessionDescription::offer(offer)?)?;
        let answer = self.connection.create_answer(None)?;
        self.connection.set_local_description(now, answer)?;
        let answer = self
            .connection
            .local_description()
            .context("the stack has no answer")?
            .sdp;
        let fragment = sdp_value(&answer, "ice-ufrag")
            .context("the answer has no ice-ufrag")?
            .to_owned();
        let mut sender = self
            .connection
            .rtp_sender(self.sender)
            .context("the stack lost its sender")?;
        let codecs = &sender.get_parameters().rtp_parameters.codecs;
        let opus = codecs.iter().find(|codec| {
            codec
                .rtp_codec
                .mime_type
                .eq_ignore_ascii_case(MIME_TYPE_OPUS)
        });
        self.payload_type = opus.context("the offer has no Opus")?.payload_type;
        Ok((answer, fragment))
    }

    /// Adds a candidate of the client's. Names of multicast DNS are passed over: the client's own checks show its
    /// address.
    ///
    /// # Errors
    /// When the candidate is malformed.
    pub(super) fn add_candidate(
        &mut self,
        candidate: String,
        mid: Option<String>,
    ) -> anyhow::Result<()> {
        if candidate.is_empty() || candidate.contains(".local ") {
            return Ok(());
        }
        let candidate = RTCIceCandidateInit {
            candidate,
            sdp_mid: mid,
            ..RTCIceCandidateInit::default()
        };
        Ok(self.connection.add_remote_candidate(candidate)?)
    }

    /// Takes a datagram from the network.
    pub(super) fn receive(&mut self, datagram: Datagram, now: Instant) {
        let transport = TransportContext {
            local_addr: datagram.to,
            peer_addr: datagram.from,
            transport_protocol: TransportProtocol::UDP,
            ecn: None,
        };
        let read = self.connection.handle_read(TaggedBytesMut {
            now,
            transport,
            message: datagram.bytes,
        });
        if let Err(error) = read {
            // Anybody can send garbage to an open port.
            tracing::trace!(%error, "a datagram was refused");
        }
    }

    /// Takes the time.
    pub(super) fn tick(&mut self, now: Instant) {
        if let Err(error) = self.connection.handle_timeout(now) {
            tracing::debug!(%error, "WebRTC time-out");
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub(super) fn next_tick(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Queues a frame of the character's voice.
    pub(super) fn send(&mut self, frame: OutgoingFrame, now: Instant) {
        let packet = rtp::Packet {
            header: rtp::Header {
                version: 2,
                marker: frame.marker,
                payload_type: self.payload_type,
                sequence_number: frame.sequence,
                timestamp: frame.timestamp,
                ssrc: self.ssrc,
                ..Default::default()
            },
            payload: frame.payload,
        };
        let Some(mut sender) = self.connection.rtp_sender(self.sender) else {
            return;
        };
        if let Err(error) = sender.write_rtp(now, packet) {
            tracing::debug!(%error, "a frame could not be sent");
        }
    }

    /// Sends everything that waits to be sent.
    pub(super) fn flush(&mut self, net: &Net) {
        while let Some(datagram) = self.connection.poll_write() {
            net.send(
                datagram.transport.local_addr,
                datagram.transport.peer_addr,
                &datagram.message,
            );
        }
    }

    /// What happened; call until `None`.
    pub(super) fn poll(&mut self) -> Option<PeerEvent> {
        while let Some(event) = self.connection.poll_event() {
            if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                match state {
                    RTCPeerConnectionState::Connected => return Some(PeerEvent::Connected),
                    RTCPeerConnectionState::Disconnected => return Some(PeerEvent::Disconnected),
                    RTCPeerConnectionState::Failed => return Some(PeerEvent::Failed),
                    _ => {}
                }
            }
        }
        while let Some(TaggedRTCMessage { message, .. }) = self.connection.poll_read() {
            if let RTCMessage::RtpPacket(_, packet) = message {
                return Some(PeerEvent::Packet(RtpPacket {
                    sequence: packet.header.sequence_number,
                    timestamp: packet.header.timestamp,
                    payload: packet.payload,
                }));
            }
        }
        None
    }

    /// Says good-bye on the wire.
    pub(super) fn close(&mut self, net: &Net) {
        if let Err(error) = self.connection.close() {
            tracing::debug!(%error, "closing WebRTC");
        }
        self.flush(net);
    }
}

fn host_candidate(address: SocketAddr) -> anyhow::Result<RTCIceCandidateInit> {
    let candidate = CandidateHostConfig {
        base_config: CandidateConfig {
            network: "udp".to_owned(),
            address: address.ip().to_string(),
            port: address.port(),
            component: 1,
            ..Default::default()
        },
        ..Default::default()
    }
    .new_candidate_host()?;
    Ok(RTCIceCandidate::from(&candidate).to_json()?)
}

/// The value of the first `a=NAME:` line of a session description.
fn sdp_value<'sdp>(sdp: &'sdp str, name: &str) -> Option<&'sdp str> {
    sdp.lines()
        .find_map(|line| {
            line.strip_prefix("a=")?
                .strip_prefix(name)?
                .strip_prefix(':')
        })
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::sdp_value;

    #[test]
    fn attributes_are_read_from_a_description() {
        let sdp =
            "v=0\r\na=ice-options:trickle\r\na=ice-ufrag:Ab/3\r\na=fingerprint:sha-256 AA:BB\r\n";
        assert_eq!(sdp_value(sdp, "ice-ufrag"), Some("Ab/3"));
        assert_eq!(sdp_value(sdp, "fingerprint"), Some("sha-256 AA:BB"));
        assert_eq!(sdp_value(sdp, "ice-pwd"), None);
    }
}
