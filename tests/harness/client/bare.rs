//! A connection with nothing around it: the client's stack and the server's transport, without HTTP, signalling or a session.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use colloquy::config::MediaConfig;
use colloquy_transport::{
    net::{Inbox, Net, Place},
    offer::Offer,
    peer::{Identity, Peer as Server, PeerEvent as ServerEvent},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connect_patience,
    log::MediaState,
    network::{Conditions, Network},
    now,
    peer::{Peer, PeerEvent, Stack},
};

/// Connects one to the other over loopback, and returns how long it took from the client's offer until media was up there.
///
/// # Errors
/// When there are no sockets, or no path comes about.
pub async fn connect_bare(stack: Stack) -> anyhow::Result<Duration> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let over = CancellationToken::new();
    let _end = over.clone().drop_guard();
    let net = Net::open(&MediaConfig::default(), loopback, &TaskTracker::new())?;
    let net = Arc::new(net);
    Arc::clone(&net).start(&over);
    let identity = Identity::generate()?;
    let network = Network::new(Conditions::default(), 1);
    let mut client = Peer::new(stack, loopback.ip(), network).await?;

    let sdp = client.offer(false, false).await?;
    let begun = now();
    let offer = Offer::parse(&sdp).context("the client's offer")?;
    let mut server = Server::new(&identity, net.candidates(), &offer, rand::random(), begun)?;
    let (mut place, mut inbox) = net.place();
    let (answer, fragment) = server.accept(&offer, now())?;
    place.listen(&fragment);
    client.answer(&answer).await?;
    let connected = async {
        loop {
            if let PeerEvent::Media(MediaState::Connected) = client.event().await? {
                return Ok(now().duration_since(begun));
            }
        }
    };
    tokio::select! {
        took = connected => took,
        failed = serve(&mut server, &net, &mut place, &mut inbox) => {
            let Err(error) = failed;
            Err(error)
        }
        () = tokio::time::sleep(connect_patience()) => bail!("no path came about"),
    }
}

/// Moves the server's bytes and its time until it fails.
async fn serve(
    server: &mut Server,
    net: &Net,
    place: &mut Place,
    inbox: &mut Inbox,
) -> anyhow::Result<Infallible> {
    loop {
        if server.next_tick().is_some_and(|at| at <= now()) {
            server.tick(now());
        }
        while let Some(event) = server.poll() {
            if event == ServerEvent::Failed {
                bail!("the server's stack gave up");
            }
        }
        server.flush(net);
        let tick = server.next_tick();
        let timer = async {
            match tick {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            datagram = inbox.recv() => {
                let datagram = datagram.context("the media port is closed")?;
                let path = datagram.addresses;
                if server.receive(datagram, now()) {
                    place.bind(path, now());
                }
            }
            () = timer => {}
        }
    }
}
