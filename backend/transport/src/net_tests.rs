//! The port with datagrams that the tests make up.

use std::net::Ipv4Addr;

use super::*;
use colloquy_base::clock::{Clock as _, SystemClock};

async fn net() -> Arc<Net> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (config, tasks) = (MediaConfig::default(), TaskTracker::new());
    Arc::new(Net::open(&config, listen, &tasks).unwrap())
}

fn datagram(bytes: &[u8], port: u16) -> Datagram {
    Datagram {
        bytes: BytesMut::from(bytes),
        addresses: Addresses {
            local: SocketAddr::from(([127, 0, 0, 1], 1)),
            remote: SocketAddr::from(([127, 0, 0, 9], port)),
        },
    }
}

#[tokio::test]
async fn a_name_without_its_password_takes_no_address_from_a_call() {
    let (net, now) = (net().await, SystemClock.instant());
    let (mut first, mut firsts) = net.place();
    let (mut second, mut seconds) = net.place();
    first.listen("first");
    second.listen("second");
    let path = datagram(b"", 1).addresses;
    // Nothing is bound by what anybody can write.
    net.route(datagram(&binding_request("first:x"), 1));
    assert!(firsts.try_recv().is_some());
    net.route(datagram(&[128, 1], 1));
    assert!(firsts.try_recv().is_none());
    first.bind(path, now);
    net.route(datagram(&binding_request("second:x"), 1));
    assert!(seconds.try_recv().is_some());
    net.route(datagram(&[128, 1], 1));
    assert!(firsts.try_recv().is_some());
    // Nor by another call while the first one hears from there.
    second.bind(path, now + BOUND / 2);
    net.route(datagram(&[128, 1], 1));
    assert!(firsts.try_recv().is_some());
    second.bind(path, now + BOUND);
    net.route(datagram(&[128, 1], 1));
    assert!(seconds.try_recv().is_some());
    drop(first);
    net.route(datagram(&[128, 1], 1));
    assert!(
        seconds.try_recv().is_some(),
        "an address of another call was let go"
    );
    drop(second);
    let routes = net.routes();
    assert!(routes.by_path.is_empty() && routes.by_fragment.is_empty());
}

#[tokio::test]
async fn a_call_has_one_name_and_few_addresses() {
    let (net, now) = (net().await, SystemClock.instant());
    let (mut place, mut inbox) = net.place();
    for number in 0..1_000 {
        place.listen(&format!("name{number}"));
        place.bind(datagram(b"", number).addresses, now);
    }
    assert_eq!(place.sockets, MAX_SOCKETS);
    // It is still heard, by way of the port's own socket.
    net.route(datagram(&[128, 1], 999));
    assert!(inbox.try_recv().is_some());
    let routes = net.routes();
    assert_eq!(routes.by_fragment.len(), 1);
    assert_eq!(routes.by_path.len(), MAX_PATHS);
}

#[tokio::test]
async fn what_strangers_send_waits_behind_what_the_call_is_sent() {
    let (net, now) = (net().await, SystemClock.instant());
    let (mut place, mut inbox) = net.place();
    place.listen("name");
    place.bind(datagram(b"", 1).addresses, now);
    for _ in 0..10 * INBOX {
        net.route(datagram(&binding_request("name:stranger"), 2));
    }
    for byte in 0..100 {
        net.route(datagram(&[128, byte], 1));
    }
    net.route(datagram(&binding_request("name:client"), 1));
    for byte in 0..100 {
        assert_eq!(&inbox.recv().await.unwrap().bytes[..], [128, byte]);
    }
    let check = inbox.try_recv().unwrap();
    assert_eq!(&check.bytes[..], binding_request("name:client"));
    let strangers = std::iter::from_fn(|| inbox.try_recv()).count();
    assert_eq!(strangers, UNBOUND_INBOX);
}

#[tokio::test]
async fn a_flooded_port_loses_nothing_of_a_path_that_is_bound() {
    // Nobody reads the port's own socket, so it is full after a few hundred datagrams.
    let (net, now) = (net().await, SystemClock.instant());
    let (mut place, mut inbox) = net.place();
    let local = net.candidates().last().unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let remote = client.local_addr().unwrap();
    place.bind(Addresses { local, remote }, now);
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for _ in 0..5_000 {
        stranger.send_to(&[128, 0], local).await.unwrap();
    }
    for byte in 0..100 {
        client.send_to(&[128, byte], local).await.unwrap();
        let datagram =
            tokio::time::timeout(support::patience(Duration::from_secs(60)), inbox.recv());
        assert_eq!(&datagram.await.unwrap().unwrap().bytes[..], [128, byte]);
    }
    // The other way goes from the port that the client knows.
    net.send(Addresses { local, remote }, b"hello");
    let mut answer = [0; 8];
    let (length, from) = client.recv_from(&mut answer).await.unwrap();
    assert_eq!((&answer[..length], from), (&b"hello"[..], local));
}

#[tokio::test]
async fn a_port_that_is_taken_is_not_shared() {
    let net = net().await;
    let (mut place, _inbox) = net.place();
    let local = net.candidates().last().unwrap();
    let remote = SocketAddr::from(([127, 0, 0, 1], 9));
    place.bind(Addresses { local, remote }, SystemClock.instant());
    let config = MediaConfig {
        udp_port: local.port(),
        ..MediaConfig::default()
    };
    let second = Net::open(&config, local, &net.tasks);
    let error = second.unwrap_err().to_string();
    assert!(error.contains("media.udp_port: cannot bind"), "{error}");
}

pub(crate) fn binding_request(username: &str) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
    bytes.extend([7; 12]);
    bytes.extend([0x80, 0x22, 0, 3, b'a', b'b', b'c', 0]);
    bytes.extend([0, 6, 0, u8::try_from(username.len()).unwrap()]);
    bytes.extend(username.as_bytes());
    bytes.extend(vec![0; username.len().next_multiple_of(4) - username.len()]);
    bytes
}

#[test]
fn a_binding_request_names_its_call() {
    assert_eq!(
        stun_fragment(&binding_request("server:client")),
        Some(b"server".as_slice())
    );
}

#[test]
fn cut_and_foreign_datagrams_name_none() {
    let whole = binding_request("server:client");
    for length in 0..whole.len() - 3 {
        assert_eq!(stun_fragment(&whole[..length]), None, "{length}");
    }
    let mut response = whole;
    response[0] = 1;
    assert_eq!(stun_fragment(&response), None);
    assert_eq!(stun_fragment(&[0x80, 0x6f, 0, 1]), None);
}
