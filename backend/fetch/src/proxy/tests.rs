//! What the proxy lets through, and what it costs at most.

use std::{cell::Cell, pin::pin};

use colloquy_config::FetchConfig;
use futures_util::FutureExt as _;

use super::*;

const BOUNDS: ProxyBounds = ProxyBounds {
    connections: 4,
    bytes: 100_000,
    idle: Duration::from_secs(60),
    time: Duration::from_secs(60),
};
/// What a test waits at most for an end that does not come.
const PATIENCE: Duration = Duration::from_secs(50);

async fn proxy(allow_private: bool, bounds: ProxyBounds) -> Proxy {
    let settings = FetchConfig {
        allow_private,
        ..FetchConfig::default()
    };
    let fetcher = Fetcher::new(&settings).unwrap();
    fetcher.proxy(bounds).await.unwrap()
}

/// The header that a program sends which was told the address.
fn credentials(proxy: &Proxy) -> String {
    let url = Url::parse(&proxy.url()).unwrap();
    let pair = format!("{}:{}", url.username(), url.password().unwrap());
    format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(pair))
}

/// Does something while a proxy serves.
async fn served<T>(proxy: &Proxy, does: impl Future<Output = T>) -> T {
    tokio::select! {
        done = does => done,
        never = proxy.serve() => match never {},
    }
}

async fn send(proxy: &Proxy, head: &str) -> TcpStream {
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    client.write_all(head.as_bytes()).await.unwrap();
    client
}

/// All that a connection answers to a head.
async fn answer(proxy: &Proxy, head: &str) -> String {
    let mut client = send(proxy, head).await;
    let mut answer = String::new();
    // A connection that is closed with something unread in it is reset.
    let _: io::Result<usize> = client.read_to_string(&mut answer).await;
    answer
}

/// What listens on a loopback port, and answers what it reads up to an empty line, twice.
async fn echo() -> (u16, TcpListener) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    (listener.local_addr().unwrap().port(), listener)
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_whatever_listens_there() {
    let (open, _listener) = echo().await;
    let closed = {
        let (closed, _listener) = echo().await;
        closed
    };
    let proxy = proxy(false, BOUNDS).await;
    let own = proxy.port();
    let credentials = credentials(&proxy);
    served(&proxy, async {
        let mut answers = Vec::new();
        for port in [open, closed, own, 80, 443, 22] {
            for host in [
                "127.0.0.1",
                "localhost",
                "[::1]",
                "[::ffff:127.0.0.1]",
                "169.254.169.254",
                "10.0.0.1",
                "2130706433",
                "0",
            ] {
                let tunnel = format!("CONNECT {host}:{port} HTTP/1.1\r\n{credentials}\r\n");
                let plain = format!("GET http://{host}:{port}/latest/meta-data/ HTTP/1.1\r\nHost: example.com\r\n{credentials}\r\n");
                for head in [tunnel, plain] {
                    answers.push(answer(&proxy, &head).await);
                }
            }
        }
        answers.dedup();
        assert_eq!(answers, [Refusal::NotAllowed.response()]);
        for port in [22, 25, 8_080] {
            let head = format!("CONNECT 1.1.1.1:{port} HTTP/1.1\r\n{credentials}\r\n");
            assert_eq!(answer(&proxy, &head).await, Refusal::NotAllowed.response());
        }
    })
    .await;
}

/// Where a head leads, as it is read and checked; nothing is connected.
async fn leads(proxy: &Proxy, head: &str) -> Result<Vec<SocketAddr>, Refusal> {
    proxy.allowed(&proxy.target(head.as_bytes())?).await
}

#[tokio::test]
async fn public_addresses_are_reached_at_the_ports_of_the_web_alone() {
    let proxy = proxy(false, BOUNDS).await;
    let credentials = credentials(&proxy);
    let tunnel = async |authority: &str| {
        let head = format!("CONNECT {authority} HTTP/1.1\r\n{credentials}\r\n");
        leads(&proxy, &head).await
    };
    let plain = async |authority: &str| {
        let head = format!("GET http://{authority}/ HTTP/1.1\r\n{credentials}\r\n");
        leads(&proxy, &head).await
    };
    for host in ["1.1.1.1", "[2606:4700:4700::1111]"] {
        for port in [80, 443] {
            let authority = format!("{host}:{port}");
            let expected: Vec<SocketAddr> = vec![authority.parse().unwrap()];
            assert_eq!(tunnel(&authority).await, Ok(expected.clone()));
            assert_eq!(plain(&authority).await, Ok(expected));
        }
        assert_eq!(plain(host).await.map(|led| led[0].port()), Ok(80));
        for port in [1, 22, 25, 53, 81, 442, 444, 3_128, 8_080, 8_443, 65_535] {
            let authority = format!("{host}:{port}");
            assert_eq!(tunnel(&authority).await, Err(Refusal::NotAllowed));
            assert_eq!(plain(&authority).await, Err(Refusal::NotAllowed));
        }
    }
    // A name is not even looked up for another port, and is followed to public addresses alone.
    for authority in ["no.such.host.invalid:22", "localhost:80", "localhost:443"] {
        assert_eq!(tunnel(authority).await, Err(Refusal::NotAllowed));
    }
}

#[tokio::test]
async fn a_proxy_serves_the_run_that_it_was_opened_for_alone() {
    let (one, other) = (proxy(true, BOUNDS).await, proxy(true, BOUNDS).await);
    assert!(one.address.ip().is_loopback());
    assert_ne!(one.port(), other.port());
    let (port, _listener) = echo().await;
    let head = format!(
        "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n{}\r\n",
        credentials(&other)
    );
    let refused = served(&one, answer(&one, &head)).await;
    assert_eq!(refused, Refusal::NoCredentials.response());
    // What it was opened for knows them.
    assert!(leads(&other, &head).await.is_ok());
}

#[tokio::test]
async fn what_is_no_request_of_the_program_is_refused() {
    let proxy = proxy(true, BOUNDS).await;
    let known = credentials(&proxy);
    let (port, _listener) = echo().await;
    let long = "x".repeat(2 * MOST_HEAD);
    let many = "A: b\r\n".repeat(MOST_HEADERS + 1);
    served(&proxy, async {
        for (head, expected) in [
            (
                format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"),
                Refusal::NoCredentials,
            ),
            (
                format!(
                    "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nProxy-Authorization: Basic eA==\r\n\r\n"
                ),
                Refusal::NoCredentials,
            ),
            (
                format!("GET /x HTTP/1.1\r\n{known}\r\n"),
                Refusal::Malformed,
            ),
            (
                format!("GET https://127.0.0.1:{port}/ HTTP/1.1\r\n{known}\r\n"),
                Refusal::Malformed,
            ),
            (
                format!("GET ftp://127.0.0.1/ HTTP/1.1\r\n{known}\r\n"),
                Refusal::Malformed,
            ),
            (
                format!("GET http://a:b@127.0.0.1:{port}/ HTTP/1.1\r\n{known}\r\n"),
                Refusal::Malformed,
            ),
            (
                format!("CONNECT 127.0.0.1 HTTP/1.1\r\n{known}\r\n"),
                Refusal::Malformed,
            ),
            (
                format!("CONNECT 127.0.0.1:{port}/x HTTP/1.1\r\n{known}\r\n"),
                Refusal::Malformed,
            ),
            (
                format!("CONNECT a@127.0.0.1:{port} HTTP/1.1\r\n{known}\r\n"),
                Refusal::Malformed,
            ),
            ("\u{1}\u{2}\r\n\r\n".to_owned(), Refusal::Malformed),
            (
                format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n{many}{known}\r\n"),
                Refusal::TooLarge,
            ),
        ] {
            assert_eq!(answer(&proxy, &head).await, expected.response(), "{head}");
        }
        let mut client = send(&proxy, "GET http://a.example/ HTTP/1.1\r\nA: ").await;
        // It may be closed before all of it is sent.
        let _ = client.write_all(long.as_bytes()).await;
        let mut answer = vec![0; 12];
        if client.read_exact(&mut answer).await.is_ok() {
            assert_eq!(answer, b"HTTP/1.1 431");
        }
    })
    .await;
}

#[tokio::test]
async fn tunnels_carry_both_ways_and_end_with_the_bounds() {
    let little = ProxyBounds {
        bytes: 20,
        ..BOUNDS
    };
    let proxy = proxy(true, little).await;
    served(&proxy, async {
        let (mut client, mut origin) = tunnel(&proxy).await;
        client.write_all(b"hello").await.unwrap();
        let mut heard = [0; 5];
        origin.read_exact(&mut heard).await.unwrap();
        origin.write_all(&heard).await.unwrap();
        client.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
        // Ten bytes are left.
        origin.write_all(&[7; 11]).await.unwrap();
        let mut rest = Vec::new();
        let _: io::Result<usize> = client.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{rest:?}");
        // So it is for every other connection.
        assert!(proxy.charge(11).is_err());
    })
    .await;
}

/// A tunnel through a proxy: the program's end, and the origin's.
async fn tunnel(proxy: &Proxy) -> (TcpStream, TcpStream) {
    let (port, listener) = echo().await;
    let credentials = credentials(proxy);
    let head = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n{credentials}\r\n");
    let mut client = send(proxy, &head).await;
    let (origin, _) = listener.accept().await.unwrap();
    let mut established = [0; 39];
    client.read_exact(&mut established).await.unwrap();
    assert!(established.starts_with(b"HTTP/1.1 200 "));
    (client, origin)
}

#[tokio::test]
async fn a_tunnel_that_carries_nothing_or_lasts_too_long_is_closed_at_both_ends() {
    let short = Duration::from_millis(5);
    for bounds in [
        ProxyBounds {
            idle: short,
            ..BOUNDS
        },
        ProxyBounds {
            time: short,
            ..BOUNDS
        },
    ] {
        let proxy = proxy(true, bounds).await;
        served(&proxy, async {
            let (mut client, mut origin) = tunnel(&proxy).await;
            for end in [&mut client, &mut origin] {
                let closed = timeout(PATIENCE, end.read(&mut [0])).await;
                assert_eq!(closed.expect("it stays open").unwrap(), 0);
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_tunnel_whose_client_has_ended_is_closed_when_its_origin_says_nothing() {
    let bounds = ProxyBounds {
        idle: Duration::from_millis(5),
        ..BOUNDS
    };
    let proxy = proxy(true, bounds).await;
    served(&proxy, async {
        let (mut client, mut origin) = tunnel(&proxy).await;
        client.shutdown().await.unwrap();
        let closed = timeout(PATIENCE, client.read(&mut [0])).await;
        assert_eq!(closed.expect("it stays open").unwrap(), 0);
        assert_eq!(origin.read(&mut [0]).await.unwrap(), 0);
    })
    .await;
}

/// No time passes here: a pause is over when it is told to be.
#[tokio::test]
async fn a_tunnel_that_carries_one_way_stays_open() {
    let proxy = proxy(true, BOUNDS).await;
    let (moved, over) = (Notify::new(), Notify::new());
    let begun = Cell::new(0);
    let pause = || {
        begun.set(begun.get() + 1);
        over.notified()
    };
    let mut silence = pin!(silence(&moved, pause));
    let mut is_silent = || silence.as_mut().now_or_never().is_some();
    assert!(!is_silent());
    for _ in 0..3 {
        let before = begun.get();
        let carried = proxy.carry(&b"news"[..], tokio::io::sink(), &moved);
        carried.await.unwrap();
        assert!(!is_silent());
        assert!(begun.get() > before, "the pause goes on");
    }
    over.notify_one();
    assert!(is_silent());
}

#[tokio::test]
async fn a_plain_request_is_passed_on_without_what_is_the_proxys() {
    let proxy = proxy(true, BOUNDS).await;
    let (port, listener) = echo().await;
    let head = format!(
        "POST http://127.0.0.1:{port}/a%20b?c=d HTTP/1.1\r\nHost: elsewhere.example\r\n{}Proxy-Connection: keep-alive\r\n\
         Content-Length: 2\r\nX-Kind: one\r\n\r\nhi",
        credentials(&proxy)
    );
    served(&proxy, async {
        let mut client = send(&proxy, &head).await;
        let (mut origin, _) = listener.accept().await.unwrap();
        let expected = format!(
            "POST /a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: 2\r\nX-Kind: one\r\n\r\nhi"
        );
        let mut heard = vec![0; expected.len()];
        origin.read_exact(&mut heard).await.unwrap();
        assert_eq!(String::from_utf8(heard).unwrap(), expected);
        let response = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        origin.write_all(response).await.unwrap();
        drop(origin);
        client.shutdown().await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, response);
    })
    .await;
}

#[tokio::test]
async fn so_many_connections_are_served_at_once() {
    let one = ProxyBounds {
        connections: 1,
        ..BOUNDS
    };
    let proxy = proxy(false, one).await;
    let head = format!(
        "CONNECT 127.0.0.1:80 HTTP/1.1\r\n{}\r\n",
        credentials(&proxy)
    );
    served(&proxy, async {
        let first = send(&proxy, "CONNECT ").await;
        let second = answer(&proxy, &head);
        let mut second = std::pin::pin!(second);
        let early = timeout(Duration::from_millis(10), &mut second).await;
        assert!(early.is_err());
        drop(first);
        assert_eq!(second.await, Refusal::NotAllowed.response());
    })
    .await;
}
