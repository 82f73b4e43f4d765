//! The client's end on the sans-IO core `rtc`, with a socket of this crate.

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    time::Instant,
};

use super::{
    super::{
        log::MediaState,
        network::{Conditions, Network},
        now,
    },
    Microphone, PeerEvent, candidate_ip,
    datagrams::{Arrival, Datagrams},
    media_engine, reachable, reaches, settings,
};
use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use colloquy_transport::handshake::{Handshake, Role};
use rtc::{
    interceptor::Registry,
    peer_connection::{
        RTCPeerConnection, RTCPeerConnectionBuilder,
        configuration::interceptor_registry::configure_rtcp_reports,
        event::RTCPeerConnectionEvent,
        message::{RTCMessage, TaggedRTCMessage},
        sdp::RTCSessionDescription,
        state::{RTCIceConnectionState, RTCPeerConnectionState},
        transport::{CandidateConfig, CandidateHostConfig, RTCIceCandidate, RTCIceCandidateInit},
    },
    rtp_transceiver::RTCRtpSenderId,
    sansio::Protocol as _,
    shared::{TaggedBytesMut, TransportContext, TransportProtocol},
};

/// A datagram to send.
struct Datagram {
    to: SocketAddr,
    bytes: BytesMut,
}

/// The stack.
pub(crate) struct Peer {
    connection: RTCPeerConnection,
    sender: RTCRtpSenderId,
    udp: Datagrams,
    local: SocketAddr,
    network: Network,
    microphone: Microphone,
    /// Repeats flights of DTLS sooner than the stack does, as browsers do.
    handshake: Handshake,
    /// Where DTLS goes, once the stack has a path and takes it.
    path: Option<SocketAddr>,
    has_path: bool,
    candidates: VecDeque<Option<String>>,
    out: VecDeque<Datagram>,
    /// What has come and was not given to the stack yet.
    arrivals: VecDeque<Arrival>,
    /// When the last of what was given to the stack came.
    arrived: Instant,
}

impl Peer {
    pub(super) async fn new(ip: IpAddr, network: Network) -> anyhow::Result<Self> {
        let udp = Datagrams::bind((ip, 0).into()).await?;
        let local = udp.local_addr()?;
        let mut connection = RTCPeerConnectionBuilder::new()
            .with_setting_engine(settings().build())
            .with_media_engine(media_engine()?)
            .with_interceptor_registry(configure_rtcp_reports(Registry::new()))
            .build(now())?;
        let microphone = Microphone::new();
        let sender = connection.add_track(microphone.track())?;
        Ok(Self {
            connection,
            sender,
            udp,
            local,
            network,
            microphone,
            handshake: Handshake::new(Role::Client),
            path: None,
            has_path: false,
            candidates: VecDeque::new(),
            out: VecDeque::new(),
            arrivals: VecDeque::new(),
            arrived: now(),
        })
    }

    /// Makes an offer without candidates, for one that is trickled. With `rebind`, from another port from now on.
    pub(super) async fn offer(
        &mut self,
        ice_restart: bool,
        rebind: bool,
    ) -> anyhow::Result<String> {
        if rebind {
            self.udp = Datagrams::bind((self.local.ip(), 0).into()).await?;
            self.local = self.udp.local_addr()?;
        }
        if ice_restart {
            self.connection.restart_ice();
        }
        let offer = self.connection.create_offer(None)?;
        self.connection.set_local_description(now(), offer)?;
        let sdp = self
            .connection
            .local_description()
            .context("the stack has no offer")?
            .sdp;
        let candidate = self.candidate()?;
        self.connection.add_local_candidate(candidate.clone())?;
        self.connection
            .add_local_candidate(RTCIceCandidateInit::default())?;
        self.candidates.extend([Some(candidate.candidate), None]);
        Ok(sdp)
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

    pub(super) fn answer(&mut self, sdp: &str) -> anyhow::Result<()> {
        let answer = RTCSessionDescription::answer(reachable(sdp, self.local.ip()))?;
        Ok(self.connection.set_remote_description(now(), answer)?)
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

    pub(super) fn send(&mut self, payload: Bytes) -> anyhow::Result<()> {
        let Some(packet) = self.microphone.packet(payload) else {
            return Ok(());
        };
        let mut sender = self
            .connection
            .rtp_sender(self.sender)
            .context("the stack lost its sender")?;
        sender.write_rtp(now(), packet)?;
        self.flush();
        Ok(())
    }

    pub(super) fn conditions(&mut self, conditions: Conditions) {
        self.network.set(conditions);
    }

    /// Moves bytes and the time until something has happened.
    pub(super) async fn event(&mut self) -> anyhow::Result<PeerEvent> {
        loop {
            let event = self.poll();
            self.flush();
            if let Some(event) = event {
                return Ok(event);
            }
            let ticks = [
                self.connection.poll_timeout(),
                self.handshake.next_tick(),
                self.network.next_due(),
            ];
            let due = ticks.into_iter().flatten().min();
            let timer = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let waiting = !self.arrivals.is_empty();
            let readable = async {
                match waiting {
                    true => Ok(()),
                    false => self.udp.readable().await,
                }
            };
            tokio::select! {
                biased;
                readable = readable => {
                    readable.context("the UDP socket")?;
                    self.read();
                }
                () = timer => self.tick()?,
            }
        }
    }

    /// Gives the next datagram to the stack, so that what comes of it has its time.
    fn read(&mut self) {
        if self.arrivals.is_empty() {
            self.arrivals.extend(self.udp.receive());
        }
        if let Some(Arrival { from, at, bytes }) = self.arrivals.pop_front()
            && !self.network.loses(&bytes)
        {
            self.arrived = at;
            self.receive(bytes, from, now());
        }
    }

    fn receive(&mut self, mut message: BytesMut, peer_addr: SocketAddr, now: Instant) {
        if self.has_path && is_dtls(&message) && self.handshake.incoming(&mut message, now) {
            self.repeat_flight(now);
        }
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

    fn tick(&mut self) -> anyhow::Result<()> {
        let at = now();
        if self.handshake.tick(at) {
            self.repeat_flight(at);
        }
        if self.connection.poll_timeout().is_some_and(|due| due <= at) {
            self.connection.handle_timeout(at)?;
        }
        while let Some((to, bytes)) = self.network.due(at) {
            self.udp.send(&bytes, to);
        }
        Ok(())
    }

    fn repeat_flight(&mut self, now: Instant) {
        let Some(to) = self.path else {
            return;
        };
        for bytes in self.handshake.repeat(now) {
            let bytes = bytes.clone();
            self.out.push_back(Datagram { to, bytes });
        }
    }

    fn flush(&mut self) {
        while let Some(datagram) = self.poll_datagram() {
            if self.network.lets_out(&datagram.bytes, datagram.to, now()) {
                self.udp.send(&datagram.bytes, datagram.to);
            }
        }
    }

    fn poll_datagram(&mut self) -> Option<Datagram> {
        let mut flight = Vec::new();
        while let Some(datagram) = self.connection.poll_write() {
            let (to, bytes) = (datagram.transport.peer_addr, datagram.message);
            if is_dtls(&bytes) {
                self.path = Some(to);
                flight.push(bytes);
            } else {
                self.out.push_back(Datagram { to, bytes });
            }
        }
        if let Some(to) = self.path.filter(|_| !flight.is_empty()) {
            let flight = self.handshake.outgoing(flight, now()).into_iter();
            self.out.extend(flight.map(|bytes| Datagram { to, bytes }));
        }
        self.out.pop_front()
    }

    fn poll(&mut self) -> Option<PeerEvent> {
        if let Some(candidate) = self.candidates.pop_front() {
            return Some(PeerEvent::Candidate(candidate));
        }
        while let Some(event) = self.connection.poll_event() {
            let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event else {
                // The stack gives out the first flight of DTLS when it is next told the time, 200 ms later or now.
                if let RTCPeerConnectionEvent::OnIceConnectionStateChangeEvent(state) = event {
                    self.has_path |= state == RTCIceConnectionState::Connected;
                    let _ = self.connection.handle_timeout(now());
                }
                continue;
            };
            if state == RTCPeerConnectionState::Connected {
                self.handshake.completed();
            }
            if let Some(state) = MediaState::of(state) {
                return Some(PeerEvent::Media(state));
            }
        }
        while let Some(TaggedRTCMessage { message, .. }) = self.connection.poll_read() {
            if let RTCMessage::RtpPacket(_, packet) = message {
                return Some(PeerEvent::Packet(packet, self.arrived));
            }
        }
        None
    }

    pub(super) fn close(&mut self) -> anyhow::Result<()> {
        self.connection.close()?;
        self.flush();
        Ok(())
    }
}

/// Whether a datagram is of DTLS (RFC 7983).
fn is_dtls(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| (20..64).contains(first))
}
