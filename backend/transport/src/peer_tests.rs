//! A client of the same library, in fake time, behind a network that loses, repeats and reorders.

use std::{cmp::Reverse, collections::BinaryHeap};

use colloquy_base::clock::{Clock as _, SystemClock};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use rtc::{
    ice::attributes::use_candidate::UseCandidateAttr,
    peer_connection::state::RTCIceConnectionState,
    stun::{
        attributes::{ATTR_FINGERPRINT, ATTR_MESSAGE_INTEGRITY},
        fingerprint::FINGERPRINT,
        integrity::MessageIntegrity,
        message::{BINDING_REQUEST, Message, Setter as _},
    },
};

use super::*;

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 3478);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5000);

/// One way.
const DELAY: Duration = Duration::from_millis(10);

/// How long a call may take to connect.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who begins the DTLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DtlsClient {
    Client,
    Server,
}

/// Which copies of a datagram arrive, and how late each of them is.
type Delivery<'a> = dyn FnMut(usize) -> Vec<Duration> + 'a;

/// A datagram on its way: when, its number, whether it goes to the server, its bytes.
type InFlight = Reverse<(Instant, usize, bool, Vec<u8>)>;

struct World {
    server: Peer,
    client: RTCPeerConnection,
    /// What the client does against losses. Without it, the library's own timer must do when it begins; when it waits, it
    /// may wait for ever, which no server can mend.
    client_handshake: Option<Handshake>,
    client_repeats: bool,
    /// Whether the client's stack takes anything but STUN.
    client_has_path: bool,
    begun: Instant,
    now: Instant,
    flying: BinaryHeap<InFlight>,
    sent: usize,
    /// The server's password, when the client nominates with every check.
    nominates: Option<String>,
    /// Where a client cuts its handshake messages that sends them in pieces.
    cuts: Option<StdRng>,
    server_up: Option<Duration>,
    client_up: Option<Duration>,
}

impl World {
    fn new(dtls_client: DtlsClient) -> Self {
        let now = SystemClock.instant();
        let mut media_engine = MediaEngine::default();
        let opus = RTCRtpCodec {
            mime_type: MIME_TYPE_OPUS.to_owned(),
            clock_rate: 48_000,
            channels: 2,
            sdp_fmtp_line: "minptime=10;useinbandfec=1".to_owned(),
            rtcp_feedback: vec![],
        };
        let parameters = RTCRtpCodecParameters {
            rtp_codec: opus.clone(),
            payload_type: 111,
        };
        media_engine
            .register_codec(parameters, RtpCodecKind::Audio)
            .unwrap();
        let mut client = RTCPeerConnectionBuilder::new()
            .with_setting_engine(
                SettingEngineBuilder::new()
                    .with_ice_connection_attempts(Some(Duration::from_millis(20)), Some(250))
                    .build(),
            )
            .with_media_engine(media_engine)
            .with_interceptor_registry(configure_rtcp_reports(Registry::new()))
            .build(now)
            .unwrap();
        let track = MediaStreamTrack::new(
            "visitor".to_owned(),
            "microphone".to_owned(),
            "microphone".to_owned(),
            RtpCodecKind::Audio,
            vec![RTCRtpEncodingParameters {
                codec: opus,
                ..Default::default()
            }],
        );
        client.add_track(track).unwrap();
        let offer = client.create_offer(None).unwrap();
        client.set_local_description(now, offer).unwrap();
        client
            .add_local_candidate(host_candidate(CLIENT).unwrap())
            .unwrap();
        let mut sdp = client.local_description().unwrap().sdp;
        if dtls_client == DtlsClient::Server {
            sdp = sdp.replace("a=setup:actpass", "a=setup:passive");
        }
        let offer = Offer::parse(&sdp).unwrap();
        let identity = Identity::generate().unwrap();
        let mut server = Peer::new(&identity, [SERVER].into_iter(), &offer, 7, now).unwrap();
        let (answer, _) = server.accept(&offer, now).unwrap();
        let expected = match dtls_client {
            DtlsClient::Client => "a=setup:passive",
            DtlsClient::Server => "a=setup:active",
        };
        assert!(answer.contains(expected), "{answer}");
        assert!(answer.contains("10.0.0.1 3478 typ host"), "{answer}");
        assert!(!answer.contains("192.0.2.1"), "{answer}");
        let answer = RTCSessionDescription::answer(answer).unwrap();
        client.set_remote_description(now, answer).unwrap();
        Self {
            server,
            client,
            client_handshake: (dtls_client == DtlsClient::Server)
                .then(|| Handshake::new(Role::Server)),
            client_repeats: false,
            client_has_path: false,
            begun: now,
            now,
            flying: BinaryHeap::new(),
            sent: 0,
            nominates: None,
            cuts: None,
            server_up: None,
            client_up: None,
        }
    }

    /// Runs until both are up, or patience is over.
    fn run(&mut self, delivery: &mut Delivery<'_>) {
        while self.server_up.is_none() || self.client_up.is_none() {
            self.step(delivery);
            if self.now > self.begun + PATIENCE {
                return;
            }
        }
    }

    /// Runs until something happens next.
    fn step(&mut self, delivery: &mut Delivery<'_>) {
        self.advance(delivery);
        let due = [
            self.flying.peek().map(|Reverse((at, ..))| *at),
            self.server.next_tick(),
            self.client.poll_timeout(),
            self.client_handshake
                .as_ref()
                .and_then(Handshake::next_tick),
        ];
        self.now = due.into_iter().flatten().min().unwrap().max(self.now);
        while let Some(Reverse((at, _, to_server, bytes))) = self.flying.peek().cloned() {
            if at > self.now {
                break;
            }
            self.flying.pop();
            self.deliver(to_server, &bytes);
        }
        if self.server.next_tick().is_some_and(|at| at <= self.now) {
            self.server.tick(self.now);
        }
        if self.client.poll_timeout().is_some_and(|at| at <= self.now) {
            let _ = self.client.handle_timeout(self.now);
        }
    }

    fn advance(&mut self, delivery: &mut Delivery<'_>) {
        let elapsed = self.now.duration_since(self.begun);
        while let Some(event) = self.server.poll() {
            if event == PeerEvent::Connected {
                self.server_up.get_or_insert(elapsed);
            }
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                RTCPeerConnectionEvent::OnConnectionStateChangeEvent(
                    RTCPeerConnectionState::Connected,
                ) => {
                    self.client_up.get_or_insert(elapsed);
                    if let Some(handshake) = &mut self.client_handshake {
                        handshake.completed();
                    }
                }
                // The library gives out its first flight when it is next told the time.
                RTCPeerConnectionEvent::OnIceConnectionStateChangeEvent(state) => {
                    self.client_has_path |= state == RTCIceConnectionState::Connected;
                    let _ = self.client.handle_timeout(self.now);
                }
                _ => {}
            }
        }
        let mut out = Vec::new();
        while let Some((addresses, bytes)) = self.server.poll_datagram() {
            assert_eq!((addresses.local, addresses.remote), (SERVER, CLIENT));
            out.push((false, bytes.to_vec()));
        }
        let mut dtls = Vec::new();
        while let Some(datagram) = self.client.poll_write() {
            assert_eq!(datagram.transport.peer_addr, SERVER);
            if self.client_handshake.is_some() && Kind::of(&datagram.message[0]) == Kind::Dtls {
                dtls.push(datagram.message);
            } else {
                let bytes = self.nominating(datagram.message.to_vec());
                out.extend(self.cut(bytes).into_iter().map(|bytes| (true, bytes)));
            }
        }
        if let Some(handshake) = &mut self.client_handshake {
            let mut flight = handshake.outgoing(dtls, self.now);
            if handshake.tick(self.now) || std::mem::take(&mut self.client_repeats) {
                flight.extend_from_slice(handshake.repeat(self.now));
            }
            out.extend(flight.into_iter().map(|bytes| (true, bytes.to_vec())));
        }
        for (to_server, bytes) in out {
            for late in delivery(self.sent) {
                let flying = (self.now + late, self.sent, to_server, bytes.clone());
                self.flying.push(Reverse(flying));
            }
            self.sent += 1;
        }
    }

    /// The datagrams that a client sends that cuts its handshake messages, each time at another place.
    fn cut(&mut self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let is_dtls = Kind::of(&bytes[0]) == Kind::Dtls;
        let Some(cuts) = self.cuts.as_mut().filter(|_| is_dtls) else {
            return vec![bytes];
        };
        let (mut datagrams, mut rest) = (Vec::new(), bytes.as_slice());
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes([rest[11], rest[12]]));
            let (record, others) = rest.split_at(13 + length);
            rest = others;
            let is_plain = record[3..5] == [0, 0];
            let number = u16::from_be_bytes([record[9], record[10]]);
            if record[0] != 22 || !is_plain || length < 40 {
                let mut whole = record.to_vec();
                if is_plain {
                    whole[9..11].copy_from_slice(&(2 * number).to_be_bytes());
                }
                datagrams.push(whole);
                continue;
            }
            let (message, body) = (&record[13..25], &record[25..]);
            assert_eq!(message[1..4], message[9..12], "one message, which is whole");
            let middle = cuts.random_range(1..body.len());
            for (half, range) in [0..middle, middle..body.len()].into_iter().enumerate() {
                let three =
                    |number: usize| u32::try_from(number).unwrap().to_be_bytes()[1..].to_vec();
                let mut fragment = record[..13].to_vec();
                // Each needs a number of its own.
                let number = 2 * number + u16::try_from(half).unwrap();
                fragment[9..11].copy_from_slice(&number.to_be_bytes());
                fragment[11..13]
                    .copy_from_slice(&u16::try_from(12 + range.len()).unwrap().to_be_bytes());
                fragment.extend(&message[..6]);
                fragment.extend(three(range.start));
                fragment.extend(three(range.len()));
                fragment.extend(&body[range]);
                datagrams.push(fragment);
            }
        }
        datagrams
    }

    /// A check with the wish to use its path, when the client is of that kind (RFC 5245 section 8.1.1.2).
    fn nominating(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(password) = &self.nominates else {
            return bytes;
        };
        let mut message = Message {
            raw: bytes.clone(),
            ..Message::default()
        };
        if message.decode().is_err() || message.typ != BINDING_REQUEST {
            return bytes;
        }
        let signed = [ATTR_MESSAGE_INTEGRITY, ATTR_FINGERPRINT];
        message
            .attributes
            .0
            .retain(|attribute| !signed.contains(&attribute.typ));
        message.encode();
        UseCandidateAttr.add_to(&mut message).unwrap();
        let provider = crypto::default_provider().unwrap();
        MessageIntegrity::new_short_term_integrity_with_provider(
            password.clone(),
            provider.crypto(),
        )
        .add_to(&mut message)
        .unwrap();
        FINGERPRINT.add_to(&mut message).unwrap();
        message.raw
    }

    fn deliver(&mut self, to_server: bool, bytes: &[u8]) {
        if to_server {
            let datagram = Datagram {
                bytes: BytesMut::from(bytes),
                addresses: Addresses {
                    local: SERVER,
                    remote: CLIENT,
                },
            };
            self.server.receive(datagram, self.now);
        } else {
            let transport = TransportContext {
                local_addr: CLIENT,
                peer_addr: SERVER,
                transport_protocol: TransportProtocol::UDP,
                ecn: None,
            };
            let mut message = BytesMut::from(bytes);
            if let Some(handshake) = &mut self.client_handshake
                && self.client_has_path
                && Kind::of(&bytes[0]) == Kind::Dtls
            {
                self.client_repeats |= handshake.incoming(&mut message, self.now);
            }
            let _ = self.client.handle_read(TaggedBytesMut {
                now: self.now,
                transport,
                message,
            });
        }
    }

    /// How long it took until both were up.
    fn took(&self) -> Option<Duration> {
        Some(self.server_up?.max(self.client_up?))
    }
}

fn arrives(_: usize) -> Vec<Duration> {
    vec![DELAY]
}

/// Runs a set-up of which these datagrams are lost.
fn without(dtls_client: DtlsClient, lost: &[usize]) -> Option<Duration> {
    let mut world = World::new(dtls_client);
    world.run(&mut |number| {
        if lost.contains(&number) {
            vec![]
        } else {
            arrives(number)
        }
    });
    world.took()
}

#[test]
fn whichever_datagram_is_lost_the_call_connects() {
    for dtls_client in [DtlsClient::Client, DtlsClient::Server] {
        let mut whole = World::new(dtls_client);
        whole.run(&mut arrives);
        let took = whole.took().unwrap();
        assert!(
            took <= Duration::from_millis(250),
            "{dtls_client:?}: {took:?}"
        );
        for lost in 0..whole.sent {
            let took =
                without(dtls_client, &[lost]).unwrap_or_else(|| panic!("{dtls_client:?} {lost}"));
            // The client repeats itself after a second.
            assert!(
                took < Duration::from_millis(1_500),
                "{dtls_client:?} {lost}: {took:?}"
            );
        }
    }
}

#[test]
fn whichever_two_datagrams_are_lost_the_call_connects() {
    for dtls_client in [DtlsClient::Client, DtlsClient::Server] {
        let mut whole = World::new(dtls_client);
        whole.run(&mut arrives);
        for first in 0..whole.sent {
            for second in first + 1..whole.sent + 2 {
                let took = without(dtls_client, &[first, second])
                    .unwrap_or_else(|| panic!("{dtls_client:?} {first} {second}"));
                assert!(
                    took < Duration::from_secs(4),
                    "{dtls_client:?} {first} {second}: {took:?}"
                );
            }
        }
    }
}

#[test]
fn calls_connect_when_three_of_ten_datagrams_are_lost() {
    for dtls_client in [DtlsClient::Client, DtlsClient::Server] {
        for seed in 0..60 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut world = World::new(dtls_client);
            world.run(&mut |number| {
                if random.random_bool(0.3) {
                    vec![]
                } else {
                    arrives(number)
                }
            });
            assert!(world.took().is_some(), "{dtls_client:?} {seed}");
        }
    }
}

#[test]
fn calls_connect_when_three_of_ten_pieces_of_messages_are_lost() {
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::new(DtlsClient::Client);
        world.cuts = Some(StdRng::seed_from_u64(seed));
        world.run(&mut |number| {
            if random.random_bool(0.3) {
                vec![]
            } else {
                arrives(number)
            }
        });
        assert!(world.took().is_some(), "{seed}");
    }
}

#[test]
fn calls_connect_when_datagrams_come_twice_late_and_in_any_order() {
    for dtls_client in [DtlsClient::Client, DtlsClient::Server] {
        for seed in 0..40 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut world = World::new(dtls_client);
            world.run(&mut |_| {
                let copies = [0, 1, 1, 1, 1, 1, 1, 1, 2, 3][random.random_range(0..10)];
                (0..copies)
                    .map(|_| DELAY + Duration::from_millis(120).mul_f64(random.random()))
                    .collect()
            });
            assert!(world.took().is_some(), "{dtls_client:?} {seed}");
        }
    }
}

#[test]
fn a_client_that_nominates_with_every_check_connects_as_fast() {
    let mut world = World::new(DtlsClient::Client);
    world.nominates = Some(world.server.credentials.0.password.clone());
    world.run(&mut arrives);
    let took = world.took().unwrap();
    // Ten times the way, two of them until the path is there.
    assert!(took <= 10 * DELAY, "{took:?}");
}

#[test]
fn a_forged_handshake_makes_a_flight_be_sent_a_bounded_number_of_times() {
    let mut world = World::new(DtlsClient::Client);
    world.run(&mut arrives);
    let before = world.sent;
    let client_hello: Vec<u8> = [
        &[22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 14][..],
        &[1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 7, 7][..],
    ]
    .concat();
    for number in 0..2_000_u16 {
        world.now += Duration::from_millis(60);
        let mut bytes = client_hello.clone();
        bytes[9..11].copy_from_slice(&number.to_be_bytes());
        bytes[26] = number.to_be_bytes()[1];
        // What the client sends from its address meanwhile keeps the path.
        world.server.ice.heard(world.now);
        world.deliver(true, &bytes);
        world.server.tick(world.now);
        while let Some((_, bytes)) = world.server.poll_datagram() {
            world.sent += usize::from(Kind::of(&bytes[0]) == Kind::Dtls);
        }
    }
    let sent = world.sent - before;
    assert!(sent <= 16, "{sent}");
    assert!(world.server.is_up);
}

#[test]
fn a_client_reports_the_packets_that_it_gets() {
    let mut world = World::new(DtlsClient::Client);
    world.run(&mut arrives);
    assert!(world.took().is_some());
    let begun = world.now;
    let mut sequence = 0;
    let mut sent_at = begun;
    while world.now < begun + Duration::from_secs(6) {
        while sent_at <= world.now {
            let frame = OutgoingFrame {
                sequence,
                timestamp: u32::from(sequence) * 960,
                marker: sequence == 0,
                payload: vec![0; 20].into(),
            };
            world.server.send(frame, world.now);
            sequence += 1;
            sent_at += Duration::from_millis(20);
        }
        world.step(&mut arrives);
    }
    let reception = world.server.reception().unwrap();
    assert_eq!(reception.lost, 0);
    assert!(
        (150..=300).contains(&reception.last_sequence),
        "{reception:?}"
    );
}
