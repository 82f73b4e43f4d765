//! WebRTC of one call, on the sans-IO core `rtc`: an offer in, an answer out; datagrams and time in, Opus packets out.
//!
//! Of `rtc` this uses DTLS, SRTP, RTCP and session descriptions. Which addresses are sent to, and when a path is lost, is
//! decided by [`ice`](crate::ice): to the stack, the client always is at one address, [`STAND_IN_V4`] or
//! [`STAND_IN_V6`], and its ICE is told at once that this is the path. Datagrams of the DTLS handshake pass through
//! [`handshake`](crate::handshake), which sends again what is lost.

use std::{
    collections::VecDeque,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::BytesMut;
use colloquy_voice::{OutgoingFrame, RtpPacket};
use rtc::{
    crypto::{self, RTCCryptoProvider, SignatureScheme},
    dtls::cipher_suite::CipherSuiteId,
    interceptor::{Registry, Slot},
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
        transport::{
            CandidateConfig, CandidateHostConfig, RTCDtlsRole, RTCIceCandidate, RTCIceCandidateInit,
        },
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

use super::{
    handshake::{Handshake, Role},
    ice::{Addresses, Agent, Credentials, Stun},
    net::{Datagram, Net},
    offer::{self, Offer, Setup},
    reports::{Delivered, Reception, report_of},
};

/// The node's DTLS certificate, made at start: one key generation for all calls instead of one a call.
pub struct Identity {
    certificate: RTCCertificate,
    crypto: Arc<dyn RTCCryptoProvider>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// Makes a certificate.
    ///
    /// # Errors
    /// When the crypto provider fails.
    pub fn generate() -> anyhow::Result<Self> {
        let provider = crypto::default_provider().context("no crypto provider for DTLS")?;
        let parameters = CertificateParams::new(vec!["colloquy".to_owned()])?;
        let certificate = RTCCertificate::generate(
            provider.crypto(),
            SignatureScheme::EcdsaP256Sha256,
            parameters,
        )
        .context("making the DTLS certificate")?;
        Ok(Self {
            certificate,
            crypto: provider,
        })
    }
}

/// What the WebRTC stack tells the session.
#[derive(Debug, Clone, PartialEq)]
pub enum PeerEvent {
    /// ICE and DTLS are up: media can flow.
    Connected,
    /// Nothing came for some seconds; it may come back.
    Disconnected,
    /// The stack gave up.
    Failed,
    /// An Opus packet of the visitor.
    Packet(RtpPacket),
}

/// Where the client is, as far as the stack knows: addresses for documentation, which nobody has (RFC 5737, RFC 3849).
const STAND_IN_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
const STAND_IN_V6: SocketAddr = SocketAddr::new(
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    9,
);

/// The stack's own ICE neither loses its path nor asks after it.
const NEVER: Option<Duration> = Some(Duration::ZERO);

/// The cipher suites of a server whose certificate is ECDSA: the stack would take one with RSA when the client names it
/// first.
const SERVER_SUITES: [CipherSuiteId; 3] = [
    CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_128_Gcm_Sha256,
    CipherSuiteId::Tls_Ecdhe_Ecdsa_With_ChaCha20_Poly1305_Sha256,
    CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_256_Cbc_Sha,
];

/// The WebRTC stack of a call.
pub struct Peer {
    connection: RTCPeerConnection,
    sender: RTCRtpSenderId,
    ssrc: u32,
    payload_type: u8,
    /// The fingerprint of the client's certificate. Another one means another connection, not a renegotiation.
    remote_fingerprint: Option<String>,
    ice: Agent,
    /// Both sides' credentials of the last answer.
    credentials: (Credentials, Credentials),
    handshake: Handshake,
    /// The path that the stack knows.
    stand_in: Addresses,
    /// What waits to be sent on the path of the time.
    out: VecDeque<BytesMut>,
    /// When something was last given to the stack.
    now: Instant,
    /// Whether the DTLS handshake is over.
    has_keys: bool,
    is_up: bool,
    reception: Option<Reception>,
}

impl Peer {
    /// A stack for an offer, with one audio track to send, reachable at these candidates.
    ///
    /// # Errors
    /// When the stack refuses the configuration.
    pub fn new(
        identity: &Identity,
        candidates: impl Iterator<Item = SocketAddr>,
        offer: &Offer,
        ssrc: u32,
        now: Instant,
    ) -> anyhow::Result<Self> {
        let (dtls_role, role, suites) = match offer.setup {
            Setup::Active => (RTCDtlsRole::Server, Role::Server, SERVER_SUITES.to_vec()),
            Setup::Passive => (RTCDtlsRole::Client, Role::Client, Vec::new()),
        };
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
                    .with_ice_timeouts(NEVER, NEVER, NEVER)
                    .with_answering_dtls_role(dtls_role)
                    .with_dtls_cipher_suites(suites)
                    .build(),
            )
            .with_media_engine(media_engine)
            .with_interceptor_registry(
                // The slot is that of a filter for video, behind those that read reports themselves.
                configure_rtcp_reports(Registry::new())
                    .with(Slot::IntervalPli, Delivered::default()),
            )
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
        let mut local = None;
        for address in candidates {
            local.get_or_insert(address);
            connection.add_local_candidate(host_candidate(address)?)?;
        }
        connection.add_local_candidate(RTCIceCandidateInit::default())?;
        let local = local.context("the media port has no address")?;
        let remote = if local.is_ipv4() {
            STAND_IN_V4
        } else {
            STAND_IN_V6
        };
        Ok(Self {
            connection,
            sender,
            ssrc,
            payload_type: 111,
            remote_fingerprint: None,
            ice: Agent::new(Arc::clone(&identity.crypto)),
            credentials: Default::default(),
            handshake: Handshake::new(role),
            stand_in: Addresses { local, remote },
            out: VecDeque::new(),
            now,
            has_keys: false,
            is_up: false,
            reception: None,
        })
    }

    /// Whether this offer belongs to the connection, or to a new one of the client's.
    pub fn continues(&self, offer: &Offer) -> bool {
        let ours = self.remote_fingerprint.as_deref();
        ours.is_none_or(|ours| ours == offer.fingerprint)
    }

    /// Answers an offer: the first one, a renegotiation or an ICE restart. Returns the answer's SDP, which holds all
    /// candidates, and the local ICE user name fragment.
    ///
    /// # Errors
    /// When the offer is malformed or has no audio that both sides can do.
    pub fn accept(&mut self, offer: &Offer, now: Instant) -> anyhow::Result<(String, String)> {
        self.now = now;
        self.remote_fingerprint = Some(offer.fingerprint.clone());
        self.connection
            .set_remote_description(now, RTCSessionDescription::offer(offer.sdp.clone())?)?;
        let answer = self.connection.create_answer(None)?;
        self.connection.set_local_description(now, answer)?;
        let answer = self
            .connection
            .local_description()
            .context("the stack has no answer")?
            .sdp;
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
        let local = offer::credentials(&answer).context("the answer has no credentials")?;
        let fragment = local.fragment.clone();
        let credentials = (local, offer.credentials.clone());
        if self.credentials != credentials {
            self.credentials = credentials.clone();
            self.ice.set_credentials(credentials.0, credentials.1);
            self.nominate();
        }
        Ok((answer, fragment))
    }

    /// Makes the stack's own ICE take the path that it knows. Its first look at a nomination makes it check the path, and
    /// only a path that has answered may be nominated.
    fn nominate(&mut self) {
        for _ in 0..2 {
            if let Some(check) = self.ice.nominating_check() {
                self.give(BytesMut::from(check.as_slice()));
                self.collect();
            }
        }
    }

    /// Takes a datagram from the network. Returns whether its source has shown that it is the client.
    pub fn receive(&mut self, datagram: Datagram, now: Instant) -> bool {
        self.now = now;
        let Datagram {
            mut bytes,
            addresses,
        } = datagram;
        match bytes.first().map(Kind::of) {
            Some(Kind::Stun) => return self.ice.receive(&bytes, addresses, now) == Stun::Authentic,
            Some(Kind::Dtls) if self.ice.admits(addresses, bytes.len()) => {
                if self.handshake.incoming(&mut bytes, now) {
                    self.repeat_flight();
                }
                if !bytes.is_empty() {
                    self.give(bytes);
                }
                self.collect();
            }
            Some(Kind::Media) if self.ice.admits(addresses, bytes.len()) => self.give(bytes),
            _ => {}
        }
        false
    }

    /// Gives a datagram to the stack.
    fn give(&mut self, message: BytesMut) {
        let transport = TransportContext {
            local_addr: self.stand_in.local,
            peer_addr: self.stand_in.remote,
            transport_protocol: TransportProtocol::UDP,
            ecn: None,
        };
        let read = self.connection.handle_read(TaggedBytesMut {
            now: self.now,
            transport,
            message,
        });
        if let Err(error) = read {
            // Anybody can send garbage to an open port.
            tracing::trace!(%error, "a datagram was refused");
        }
    }

    /// Takes what the stack wants to send after one event. Its own checks are answered here.
    fn collect(&mut self) {
        let mut dtls = Vec::new();
        while let Some(datagram) = self.connection.poll_write() {
            match datagram.message.first().map(Kind::of) {
                Some(Kind::Stun) => {
                    if let Some(answer) = self.ice.answer_to(&datagram.message, self.stand_in) {
                        self.give(BytesMut::from(answer.as_slice()));
                    }
                }
                Some(Kind::Dtls) => dtls.push(datagram.message),
                _ => self.out.push_back(datagram.message),
            }
        }
        if !dtls.is_empty() {
            self.out.extend(self.handshake.outgoing(dtls, self.now));
        }
    }

    fn repeat_flight(&mut self) {
        let flight = self.handshake.repeat(self.now);
        self.out.extend(flight.iter().cloned());
    }

    /// Takes the time.
    pub fn tick(&mut self, now: Instant) {
        self.now = now;
        if let Err(error) = self.connection.handle_timeout(now) {
            tracing::debug!(%error, "WebRTC time-out");
        }
        self.collect();
        self.ice.tick(now);
        if self.handshake.tick(now) {
            self.repeat_flight();
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub fn next_tick(&mut self) -> Option<Instant> {
        [
            self.connection.poll_timeout(),
            self.ice.next_tick(self.now),
            self.handshake.next_tick(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When something of the client's came last, media or a check.
    pub fn last_heard(&self) -> Option<Instant> {
        self.ice.last_heard()
    }

    /// Queues a frame of the character's voice.
    pub fn send(&mut self, frame: OutgoingFrame, now: Instant) {
        self.now = now;
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
    pub fn flush(&mut self, net: &Net) {
        while let Some((addresses, datagram)) = self.poll_datagram() {
            net.send(addresses, &datagram);
        }
    }

    /// The next datagram to send, and where. What has no path is lost.
    fn poll_datagram(&mut self) -> Option<(Addresses, BytesMut)> {
        if let Some((addresses, message)) = self.ice.poll() {
            return Some((addresses, BytesMut::from(message.as_slice())));
        }
        if self.out.is_empty() {
            self.collect();
        }
        while let Some(datagram) = self.out.pop_front() {
            if let Some(addresses) = self.ice.destination(datagram.len(), self.now) {
                return Some((addresses, datagram));
            }
        }
        None
    }

    /// What happened; call until `None`.
    pub fn poll(&mut self) -> Option<PeerEvent> {
        while let Some(event) = self.connection.poll_event() {
            if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                match state {
                    RTCPeerConnectionState::Connected => {
                        self.has_keys = true;
                        self.handshake.completed();
                    }
                    RTCPeerConnectionState::Failed => return Some(PeerEvent::Failed),
                    _ => {}
                }
            }
        }
        let is_up = self.has_keys && self.ice.is_connected(self.now);
        if is_up != self.is_up {
            self.is_up = is_up;
            return Some(if is_up {
                PeerEvent::Connected
            } else {
                PeerEvent::Disconnected
            });
        }
        while let Some(TaggedRTCMessage { message, .. }) = self.connection.poll_read() {
            if matches!(
                message,
                RTCMessage::RtpPacket(..) | RTCMessage::RtcpPacket(..)
            ) {
                self.ice.heard(self.now);
                self.handshake.confirmed();
            }
            match message {
                RTCMessage::RtpPacket(_, packet) => {
                    return Some(PeerEvent::Packet(RtpPacket {
                        sequence: packet.header.sequence_number,
                        timestamp: packet.header.timestamp,
                        payload: packet.payload,
                    }));
                }
                RTCMessage::RtcpPacket(_, packets) => {
                    if let Some(report) = report_of(&packets, self.ssrc) {
                        self.reception = Some(Reception::of(report, self.reception, self.now));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns what the client last reported of the character's voice; `None` until it did.
    pub fn reception(&self) -> Option<Reception> {
        self.reception
    }

    /// Says good-bye on the wire.
    pub fn close(&mut self, net: &Net) {
        if let Err(error) = self.connection.close() {
            tracing::debug!(%error, "closing WebRTC");
        }
        self.flush(net);
    }
}

/// What a datagram is, by its first byte (RFC 7983).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stun,
    Dtls,
    Media,
    Other,
}

impl Kind {
    fn of(first: &u8) -> Self {
        match first {
            0..=3 => Self::Stun,
            20..=63 => Self::Dtls,
            128..=191 => Self::Media,
            _ => Self::Other,
        }
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

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
