//! The address that clients are told, between two network namespaces: the machine's second, IPv6, and one that it does not have.

use std::net::{IpAddr, SocketAddr};

use harness::namespaces::OtherMachine;
use tokio::{runtime, sync::oneshot};

use super::*;

/// Both ends have an address of each family. The other machine has a second one of each, and gets what is sent to the networks of `.8.`
/// and `:8:`, as behind a load balancer that leaves destinations alone.
const CABLE: [&str; 13] = [
    "addr add 198.18.7.2/24 dev here",
    "addr add fd00:7::2/64 dev here nodad",
    "link set here up",
    "route add 198.18.8.0/24 via 198.18.7.1",
    "-n other addr add 198.18.7.1/24 dev there",
    "-n other addr add 198.18.7.9/24 dev there",
    "-n other addr add fd00:7::1/64 dev there nodad",
    "-n other addr add fd00:7::9/64 dev there nodad",
    "-n other link set lo up",
    "-n other link set there up",
    "-n other route add local 198.18.8.0/24 dev lo",
    "-n other -6 route add local fd00:8::/64 dev lo",
    "-6 route add fd00:8::/64 via fd00:7::1",
];

/// A call with a client here, and the server there.
async fn call(other: &OtherMachine, public_ip: &'static str, bind: &'static str) {
    let public_ip: IpAddr = public_ip.parse().unwrap();
    let bind: IpAddr = bind.parse().unwrap();
    let (tell, url) = oneshot::channel();
    let (over, is_over) = oneshot::channel::<()>();
    let server = other.spawn(move || {
        let mut runtime = runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build();
        runtime.unwrap().block_on(async move {
            let stage = Stage::with(|config| {
                let listen = if bind.is_ipv4() {
                    "198.18.7.1"
                } else {
                    "fd00:7::1"
                };
                config.http.listen = SocketAddr::new(listen.parse().unwrap(), 0);
                config.media.public_ip = Some(public_ip);
            })
            .await;
            let call = stage.call().await;
            tell.send(call.url.clone()).unwrap();
            is_over.await.unwrap();
            stage.reaches(&call, "completed").await;
        });
    });
    let options = ClientOptions {
        bind,
        ..ClientOptions::default()
    };
    let client = NativeClient::connect_with(&url.await.unwrap(), options)
        .await
        .unwrap();
    client.hang_up().await.unwrap();
    over.send(()).unwrap();
    server.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_connect_to_the_address_that_clients_are_told() {
    let test = "media::addresses::calls_connect_to_the_address_that_clients_are_told";
    let Some(other) = OtherMachine::set_up(test, &CABLE) else {
        return;
    };
    tokio::join!(
        call(&other, "198.18.7.9", "198.18.7.2"),
        call(&other, "198.18.8.1", "198.18.7.2"),
        call(&other, "fd00:7::9", "fd00:7::2"),
        call(&other, "fd00:8::1", "fd00:7::2"),
    );
}
