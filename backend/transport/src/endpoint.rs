//! A socket of the media port.
//!
//! It is bound to one address of the machine. Where clients are told an address that the machine does not have, since a router
//! or a load balancer in front of it has that, it is bound to all addresses of that family, and the system tells with each datagram
//! which of them it was sent to (`IP_PKTINFO`, RFC 3542 section 6): answers have to leave from there, and the system would choose
//! the first address of the interface.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use anyhow::Context as _;
use bytes::BytesMut;
use colloquy_config::MediaConfig;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rtc::shared::ifaces::ifaces;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::{io::Interest, net::UdpSocket};

use super::{ice::Addresses, net::Datagram};

/// The largest datagram that WebRTC sends.
pub(crate) const MAX_DATAGRAM_BYTES: usize = 2048;

/// Datagrams that a buffer of the port has room for, before another is allocated.
const BUFFER: usize = 64;

/// The most bytes that the system hands over in one read of a socket of all addresses, where it joins datagrams of one sender.
const MAX_READ_BYTES: usize = 65_535;

/// What a socket of the port is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bind {
    /// An address of the machine, which clients are told.
    Address(IpAddr),
    /// All addresses of one family, for clients that are told this address.
    All { announced: IpAddr },
}

/// A socket of the port.
#[derive(Debug)]
pub(crate) struct Endpoint {
    socket: UdpSocket,
    candidate: SocketAddr,
    /// Reads and sets the address of the machine, where the socket is bound to all of them.
    info: Option<UdpSocketState>,
}

impl Bind {
    fn address(self) -> IpAddr {
        match self {
            Self::Address(address) => address,
            Self::All { announced } if announced.is_ipv4() => Ipv4Addr::UNSPECIFIED.into(),
            Self::All { .. } => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    fn candidate(self) -> IpAddr {
        match self {
            Self::Address(address) => address,
            Self::All { announced } => announced,
        }
    }
}

impl Endpoint {
    /// Binds a socket; with port 0 the system chooses one.
    ///
    /// # Errors
    /// When the port is taken, or the machine does not have the address.
    pub(crate) fn bind(bind: Bind, port: u16) -> io::Result<Self> {
        let address = SocketAddr::new(bind.address(), port);
        let socket = new_socket(address)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        if let Bind::All { announced } = bind {
            speak_from_any_address(&socket, announced)?;
        }
        socket.bind(&address.into())?;
        // Only now that nobody else has it may the port be shared, with the sockets of its paths.
        SockRef::from(&socket).set_reuse_port(true)?;
        let socket = UdpSocket::from_std(socket.into())?;
        let info = match bind {
            Bind::Address(_) => None,
            Bind::All { .. } => Some(UdpSocketState::new((&socket).into())?),
        };
        let port = socket.local_addr()?.port();
        Ok(Self {
            socket,
            candidate: SocketAddr::new(bind.candidate(), port),
            info,
        })
    }

    /// The address that clients are told.
    pub(crate) fn candidate(&self) -> SocketAddr {
        self.candidate
    }

    /// Returns true if datagrams to this address of the machine come by this socket.
    pub(crate) fn has(&self, local: SocketAddr) -> bool {
        match self.info {
            None => local == self.candidate,
            Some(_) => local.is_ipv4() == self.candidate.is_ipv4(),
        }
    }

    /// Reads for ever.
    pub(crate) async fn read(&self, mut take: impl FnMut(Datagram)) {
        match &self.info {
            None => self.read_address(take).await,
            Some(info) => loop {
                if let Err(error) = self.read_all(info, &mut take).await {
                    tracing::debug!(%error, "reading from the media port");
                }
            },
        }
    }

    async fn read_address(&self, mut take: impl FnMut(Datagram)) {
        let mut buffer = BytesMut::with_capacity(BUFFER * MAX_DATAGRAM_BYTES);
        loop {
            buffer.reserve(MAX_DATAGRAM_BYTES);
            match self.socket.recv_buf_from(&mut buffer).await {
                Ok((_, from)) => take(Datagram {
                    bytes: buffer.split(),
                    addresses: Addresses {
                        local: self.candidate,
                        remote: from,
                    },
                }),
                // A peer that has gone answers with ICMP, which the system reports on the next read.
                Err(error) => tracing::debug!(%error, "reading from the media port"),
            }
        }
    }

    /// Reads until an error comes.
    async fn read_all(
        &self,
        info: &UdpSocketState,
        take: &mut impl FnMut(Datagram),
    ) -> io::Result<()> {
        let mut buffer = vec![0; MAX_READ_BYTES];
        loop {
            let mut meta = [RecvMeta::default()];
            let read = || {
                let buffers = &mut [IoSliceMut::new(&mut buffer)];
                info.recv((&self.socket).into(), buffers, &mut meta)
            };
            self.socket.async_io(Interest::READABLE, read).await?;
            let [meta] = meta;
            // Where the system does not tell, it also chooses the address that answers leave from.
            let local = meta.dst_ip.map(|ip| ip.to_canonical());
            let local = local.map_or(self.socket.local_addr(), |ip| {
                Ok(SocketAddr::new(ip, self.candidate.port()))
            })?;
            let read = buffer.get(..meta.len).unwrap_or_default();
            for datagram in read.chunks(meta.stride.max(1)) {
                let datagram = &datagram[..datagram.len().min(MAX_DATAGRAM_BYTES)];
                take(Datagram {
                    bytes: BytesMut::from(datagram),
                    addresses: Addresses {
                        local,
                        remote: meta.addr,
                    },
                });
            }
        }
    }

    /// Sends a datagram at once.
    ///
    /// # Errors
    /// When the system cannot take it now.
    pub(crate) fn send(
        &self,
        Addresses { local, remote }: Addresses,
        bytes: &[u8],
    ) -> io::Result<()> {
        let Some(info) = &self.info else {
            return self.socket.try_send_to(bytes, remote).map(drop);
        };
        let transmit = Transmit {
            destination: remote,
            ecn: None,
            contents: bytes,
            segment_size: None,
            src_ip: Some(local.ip()).filter(|ip| !ip.is_unspecified()),
        };
        let send = || info.try_send((&self.socket).into(), &transmit);
        self.socket.try_io(Interest::WRITABLE, send)
    }

    /// Opens another socket on the port, for what one client sends to one address.
    ///
    /// # Errors
    /// When the system has no more sockets, or no way to the client.
    pub(crate) fn connect(&self, Addresses { local, remote }: Addresses) -> io::Result<UdpSocket> {
        let mut address = self.socket.local_addr()?;
        if self.info.is_some() {
            address.set_ip(local.ip());
        }
        let socket = new_socket(address)?;
        if self.info.is_some() {
            speak_from_any_address(&socket, address.ip())?;
        }
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.connect(&remote.into())?;
        UdpSocket::from_std(socket.into())
    }
}

/// Permits a socket to send from an IPv6 address that the machine gets datagrams for and has on no interface, as behind a load balancer. An
/// IPv4 route is permission enough.
fn speak_from_any_address(socket: &Socket, address: IpAddr) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if address.is_ipv6() {
        socket.set_freebind_v6(true)?;
    }
    Ok(())
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Binds the port: on `media.public_ip` where the machine has it, on all addresses of its family where it does not, and without it
/// on those of all interfaces; on loopback only when nothing else is there or the HTTP server is local too.
///
/// # Errors
/// When the interfaces cannot be listed, or the port is taken on one of the addresses.
pub(crate) fn bind_all(
    config: &MediaConfig,
    http_listen: SocketAddr,
) -> anyhow::Result<Vec<Endpoint>> {
    let mut endpoints = Vec::new();
    let mut port = config.udp_port;
    for bind in binds(config.public_ip, http_listen, &machine_addresses()?) {
        let endpoint = match (Endpoint::bind(bind, port), bind) {
            // An IPv6 address that is still looked for in the network belongs to the machine, and cannot be bound yet.
            (Err(error), Bind::Address(announced))
                if error.kind() == io::ErrorKind::AddrNotAvailable
                    && config.public_ip.is_some() =>
            {
                Endpoint::bind(Bind::All { announced }, port)
            }
            (bound, _) => bound,
        };
        let endpoint = endpoint.with_context(|| {
            let address = bind.address();
            format!("media.udp_port: cannot bind {address} port {port}")
        })?;
        // With port 0 the first socket chooses and the others follow, so that one rule in a firewall will do.
        port = endpoint.candidate().port();
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

/// The addresses of all interfaces.
fn machine_addresses() -> anyhow::Result<Vec<IpAddr>> {
    let interfaces = ifaces().context("listing the network interfaces")?;
    let addresses = interfaces.into_iter();
    let mut addresses: Vec<IpAddr> = addresses
        .filter_map(|interface| interface.addr.map(|address| address.ip()))
        .collect();
    addresses.sort();
    addresses.dedup();
    Ok(addresses)
}

fn binds(public_ip: Option<IpAddr>, http_listen: SocketAddr, machine: &[IpAddr]) -> Vec<Bind> {
    if let Some(announced) = public_ip.map(|ip| ip.to_canonical()) {
        // All of 127.0.0.0/8 is here, and listed by its first address alone.
        let is_here = machine.contains(&announced) || announced.is_loopback();
        return vec![if is_here {
            Bind::Address(announced)
        } else {
            Bind::All { announced }
        }];
    }
    let mut addresses = machine.to_vec();
    addresses.retain(|ip| match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    });
    if addresses.is_empty() || http_listen.ip().is_loopback() {
        addresses.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    addresses.into_iter().map(Bind::Address).collect()
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
