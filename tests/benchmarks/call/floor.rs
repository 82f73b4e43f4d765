//! What the machine itself takes while the calls run: the least that any server has to take, too.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use harness::client::now;
use tokio::{net::UdpSocket, time::sleep};

/// How often a packet is sent, as in a call.
const EVERY: Duration = Duration::from_millis(20);

/// The bytes of a packet, as of 20 ms of speech.
const PACKET_BYTES: usize = 160;

/// What it took.
#[derive(Debug, Default)]
pub(super) struct Floor {
    /// Packets to the far socket and back.
    pub(super) trips: Vec<Duration>,
    /// Connections of the two stacks alone.
    pub(super) connections: Vec<Duration>,
}

/// Two sockets on loopback, one of which sends back what the other one sends.
pub(super) struct Echo {
    near: UdpSocket,
    far: UdpSocket,
    far_address: SocketAddr,
}

impl Echo {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When there are none.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let far_address = far.local_addr()?;
        Ok(Self {
            near,
            far,
            far_address,
        })
    }

    /// Sends packets, and pushes how long each was under way to the far socket and back. It ends when it is dropped, or when
    /// a socket fails.
    pub(super) async fn measure(&self, trips: &mut Vec<Duration>) -> anyhow::Result<()> {
        let packet = [0; PACKET_BYTES];
        let answer = async {
            let mut buffer = [0; 2 * PACKET_BYTES];
            loop {
                let (length, from) = self.far.recv_from(&mut buffer).await?;
                self.far.send_to(&buffer[..length], from).await?;
            }
        };
        let ask = async {
            let mut buffer = [0; 2 * PACKET_BYTES];
            loop {
                sleep(EVERY).await;
                let sent = now();
                self.near.send_to(&packet, self.far_address).await?;
                self.near.recv_from(&mut buffer).await?;
                trips.push(now().duration_since(sent));
            }
        };
        tokio::select! {
            ended = answer => ended,
            ended = ask => ended,
        }
    }
}
