//! The addresses of the port, on loopback: the system has all of 127.0.0.0/8, and answers from 127.0.0.1 unless it is told otherwise.

use std::{sync::Arc, time::Duration};

use colloquy_base::clock::{Clock as _, SystemClock};
use support::patience;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::*;
use crate::net::{Net, tests::binding_request};

/// More than a datagram takes on loopback.
fn soon() -> Duration {
    patience(Duration::from_secs(60))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_announced_address_is_bound_where_the_machine_has_it() {
    let machine = [
        "10.0.0.1",
        "10.0.0.2",
        "2001:db8::1",
        "fe80::1",
        "127.0.0.1",
    ]
    .map(ip);
    let open = SocketAddr::from(([0, 0, 0, 0], 0));
    let announcing = |address: &str| binds(Some(ip(address)), open, &machine);
    for own in ["10.0.0.2", "2001:db8::1", "127.0.0.2", "::1"] {
        assert_eq!(announcing(own), [Bind::Address(ip(own))]);
    }
    assert_eq!(
        announcing("::ffff:10.0.0.2"),
        [Bind::Address(ip("10.0.0.2"))]
    );
    for (other, all) in [("203.0.113.1", "0.0.0.0"), ("2001:db8::2", "::")] {
        let announced = ip(other);
        assert_eq!(announcing(other), [Bind::All { announced }]);
        assert_eq!(announcing(other)[0].address(), ip(all));
    }
    let bound = |listen: &str| binds(None, SocketAddr::new(ip(listen), 0), &machine);
    let own = ["10.0.0.1", "10.0.0.2", "2001:db8::1"].map(|own| Bind::Address(ip(own)));
    assert_eq!(bound("0.0.0.0"), own);
    let local = Bind::Address(ip("127.0.0.1"));
    assert_eq!(bound("127.0.0.1"), [&own[..], &[local]].concat());
}

/// A call on a port for `media.public_ip`, and a client that knows one of the machine's addresses.
async fn both_ways(public_ip: &str, reached_at: &str) {
    let config = MediaConfig {
        public_ip: Some(ip(public_ip)),
        ..MediaConfig::default()
    };
    let tasks = TaskTracker::new();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let net = Arc::new(Net::open(&config, listen, &tasks).unwrap());
    let candidates: Vec<_> = net.candidates().collect();
    assert_eq!(candidates.len(), 1);
    assert_eq!(candidates[0].ip(), ip(public_ip));
    let over = CancellationToken::new();
    let _end = over.clone().drop_guard();
    Arc::clone(&net).start(&over);
    let (mut place, mut inbox) = net.place();
    place.listen("name");

    let server = SocketAddr::new(ip(reached_at), candidates[0].port());
    let client = UdpSocket::bind(SocketAddr::new(server.ip(), 0))
        .await
        .unwrap();
    let client_address = client.local_addr().unwrap();
    // By the port's own socket, and then by that of the path.
    let mut path = None;
    for round in 0..3 {
        let sent = match path {
            None => binding_request("name:client"),
            Some(_) => vec![128, round],
        };
        client.send_to(&sent, server).await.unwrap();
        let datagram = timeout(soon(), inbox.recv()).await.unwrap().unwrap();
        assert_eq!(&datagram.bytes[..], sent);
        let addresses = datagram.addresses;
        assert_eq!(
            (addresses.local, addresses.remote),
            (server, client_address)
        );
        net.send(addresses, b"answer");
        let mut answer = [0; 8];
        let (length, from) = timeout(soon(), client.recv_from(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((&answer[..length], from), (&b"answer"[..], server));
        place.bind(addresses, SystemClock.instant());
        path = Some(addresses);
    }
}

#[tokio::test]
async fn answers_leave_from_the_address_that_was_asked() {
    // Addresses for documentation, which no machine has (RFC 5737, RFC 3849).
    both_ways("192.0.2.1", "127.0.0.2").await;
    both_ways("2001:db8::1", "::1").await;
    both_ways("127.0.0.2", "127.0.0.2").await;
    both_ways("::1", "::1").await;
}

#[tokio::test]
async fn a_path_of_all_addresses_has_a_socket_of_its_own_address() {
    let announced = ip("192.0.2.1");
    let endpoint = Endpoint::bind(Bind::All { announced }, 0).unwrap();
    let port = endpoint.candidate().port();
    let client = UdpSocket::bind("127.0.0.3:0").await.unwrap();
    let local = SocketAddr::new(ip("127.0.0.2"), port);
    let path = Addresses {
        local,
        remote: client.local_addr().unwrap(),
    };
    let own = endpoint.connect(path).unwrap();
    assert_eq!(own.local_addr().unwrap(), local);
    // What the client sends comes there, and not where strangers do.
    client.send_to(b"media", local).await.unwrap();
    let mut bytes = [0; 8];
    let length = timeout(soon(), own.recv(&mut bytes))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&bytes[..length], b"media");
}
