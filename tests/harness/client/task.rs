//! The task of a client: it owns the UDP socket, the WebRTC stack, the signalling connection and the microphone's clock.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use colloquy_protocol::{ClientMessage, ServerMessage};
use opus::{Channels, Decoder};
use tokio::{
    net::UdpSocket,
    sync::{mpsc, oneshot},
};

use super::{
    log::{Heard, MediaState, Shared},
    network::{Conditions, Network},
    now,
    peer::{Peer, PeerEvent},
    socket::{FromServer, Socket},
    speech::{Pause, Speech, rms},
};

const FRAME: Duration = Duration::from_millis(20);

/// What is decoded is only measured, for which a narrow band will do.
const LISTENING_RATE_HZ: u32 = 8_000;

/// When speech was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken {
    /// The packet with the first voiced sample left.
    pub began: Instant,
    /// The packet whose last sample is the last voiced one left.
    pub ended: Instant,
}

/// What the user of the client wants.
pub(super) enum Command {
    Say(String),
    Speak(Speech, oneshot::Sender<Spoken>),
    Pause(Pause),
    Offer {
        ice_restart: bool,
        rebind: bool,
    },
    Conditions(Conditions),
    /// Drops the signalling connection without a word.
    DropSocket,
    Attach(Box<Socket>),
    /// Closes the WebRTC stack, as a page that is closed does.
    ClosePeer,
}

/// Speech that waits to be sent, or is being sent.
struct Speaking {
    speech: Speech,
    next: usize,
    began: Option<Instant>,
    done: Option<oneshot::Sender<Spoken>>,
}

pub(super) struct Task {
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) udp: UdpSocket,
    pub(super) local: SocketAddr,
    pub(super) peer: Peer,
    pub(super) socket: Option<Socket>,
    pub(super) network: Network,
    pub(super) pause: Pause,
    pub(super) heartbeat: Duration,
    voice: Voice,
    next_ping: Instant,
}

/// What the microphone gives.
struct Voice {
    /// When the next frame is due; `None` before media connects.
    next: Option<Instant>,
    paused: usize,
    speaking: VecDeque<Speaking>,
    listener: Decoder,
}

/// The parts of a task.
pub(super) struct Parts {
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) udp: UdpSocket,
    pub(super) local: SocketAddr,
    pub(super) socket: Socket,
    pub(super) network: Network,
    pub(super) pause: Pause,
    pub(super) heartbeat: Duration,
}

enum Wake {
    Command(Option<Command>),
    Datagram(std::io::Result<()>),
    Signal(FromServer),
    Timer,
}

impl Task {
    pub(super) fn new(parts: Parts) -> anyhow::Result<Self> {
        let voice = Voice {
            next: None,
            paused: rand::random_range(0..100),
            speaking: VecDeque::new(),
            listener: Decoder::new(LISTENING_RATE_HZ, Channels::Mono)?,
        };
        let Parts {
            shared,
            commands,
            udp,
            local,
            socket,
            network,
            pause,
            heartbeat,
        } = parts;
        let peer = Peer::new(local, now())?;
        let next_ping = now() + heartbeat;
        let socket = Some(socket);
        Ok(Self {
            shared,
            commands,
            udp,
            local,
            peer,
            socket,
            network,
            pause,
            heartbeat,
            voice,
            next_ping,
        })
    }

    /// Runs until the client is dropped.
    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        if let Err(error) = self.run_until_dropped().await {
            shared.record(|log| log.failure = Some(format!("{error:#}")));
        }
    }

    async fn run_until_dropped(&mut self) -> anyhow::Result<()> {
        let mut buffer = BytesMut::new();
        loop {
            match self.wait().await {
                Wake::Command(None) => return Ok(()),
                Wake::Command(Some(command)) => self.obey(command).await?,
                Wake::Signal(FromServer::Message(message)) => self.signalled(message).await?,
                Wake::Signal(FromServer::Closed(code)) => {
                    self.socket = None;
                    self.shared.record(|log| log.closed.push((now(), code)));
                }
                Wake::Datagram(readable) => {
                    readable.context("the UDP socket")?;
                    self.read(&mut buffer);
                }
                Wake::Timer => self.timer().await?,
            }
            self.advance();
        }
    }

    async fn wait(&mut self) -> Wake {
        let heartbeat = self.socket.is_some().then_some(self.next_ping);
        let due = [
            self.voice.next,
            self.peer.next_tick(),
            self.network.next_due(),
            heartbeat,
        ];
        let due = due.into_iter().flatten().min();
        let timer = async {
            match due {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let signal = async {
            match &mut self.socket {
                Some(socket) => socket.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            readable = self.udp.readable() => Wake::Datagram(readable),
            () = timer => Wake::Timer,
            signal = signal => Wake::Signal(signal),
            command = self.commands.recv() => Wake::Command(command),
        }
    }

    async fn obey(&mut self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::Say(text) => {
                if let Some(socket) = &mut self.socket {
                    // A server that has closed shows as such on the next read.
                    let _ = socket.say_text(text).await;
                }
            }
            Command::Speak(speech, done) => {
                self.voice.speaking.push_back(Speaking {
                    speech,
                    next: 0,
                    began: None,
                    done: Some(done),
                });
            }
            Command::Pause(pause) => self.pause = pause,
            Command::Offer {
                ice_restart,
                rebind,
            } => self.offer(ice_restart, rebind).await?,
            Command::Conditions(conditions) => self.network.set(conditions),
            Command::DropSocket => self.socket = None,
            Command::Attach(socket) => {
                self.socket = Some(*socket);
                self.next_ping = now() + self.heartbeat;
            }
            Command::ClosePeer => {
                self.voice.next = None;
                self.peer.close()?;
            }
        }
        Ok(())
    }

    async fn offer(&mut self, ice_restart: bool, rebind: bool) -> anyhow::Result<()> {
        if rebind {
            self.udp = UdpSocket::bind((self.local.ip(), 0)).await?;
            self.local = self.udp.local_addr()?;
            self.peer.move_to(self.local);
        }
        let (sdp, candidate) = self.peer.offer(ice_restart, now())?;
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        self.shared.record(|log| log.offers.push(now()));
        let _ = socket.say(&ClientMessage::Offer { sdp, ice_restart }).await;
        for candidate in [Some(candidate), None] {
            let sdp_mid = candidate.is_some().then(|| "0".to_owned());
            let _ = socket
                .say(&ClientMessage::Candidate {
                    candidate,
                    sdp_mid,
                    sdp_m_line_index: None,
                })
                .await;
        }
        Ok(())
    }

    async fn signalled(&mut self, message: ServerMessage) -> anyhow::Result<()> {
        let at = now();
        match &message {
            ServerMessage::Answer { sdp } => self.peer.answer(sdp, at)?,
            ServerMessage::Candidate {
                candidate: Some(candidate),
                sdp_mid,
                ..
            } => {
                self.peer
                    .add_candidate(candidate.clone(), sdp_mid.clone())?;
            }
            ServerMessage::Ping { t } => {
                if let Some(socket) = &mut self.socket {
                    let _ = socket.say(&ClientMessage::Pong { t: *t }).await;
                }
            }
            _ => {}
        }
        self.shared.record(|log| log.messages.push((at, message)));
        Ok(())
    }

    fn read(&mut self, buffer: &mut BytesMut) {
        loop {
            buffer.reserve(2_048);
            match self.udp.try_recv_buf_from(buffer) {
                Ok((_, from)) => {
                    let bytes = buffer.split();
                    if !self.network.loses(&bytes) {
                        self.peer.receive(bytes, from, now());
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                // The answer to a datagram that found nobody; the next read tells of the next one.
                Err(_) => {}
            }
        }
    }

    async fn timer(&mut self) -> anyhow::Result<()> {
        let at = now();
        if self.peer.next_tick().is_some_and(|tick| tick <= at) {
            self.peer.tick(at)?;
        }
        while let Some((to, bytes)) = self.network.due(at) {
            let _ = self.udp.try_send_to(&bytes, to);
        }
        while self.voice.next.is_some_and(|next| next <= at) {
            self.send_frame()?;
        }
        if self.next_ping <= at {
            self.next_ping = at + self.heartbeat;
            if let Some(socket) = &mut self.socket {
                let _ = socket.say(&ClientMessage::Ping { t: 0.0 }).await;
            }
        }
        Ok(())
    }

    /// Sends the frame whose time has come.
    fn send_frame(&mut self) -> anyhow::Result<()> {
        self.voice.next = self.voice.next.map(|next| next + FRAME);
        let Some(speaking) = self.voice.speaking.front_mut() else {
            self.voice.paused = (self.voice.paused + 1) % self.pause.frames.len().max(1);
            let payload = self
                .pause
                .frames
                .get(self.voice.paused)
                .cloned()
                .unwrap_or_default();
            return self.send(payload).map(|_| ());
        };
        let index = speaking.next;
        speaking.next += 1;
        let payload = speaking
            .speech
            .frames
            .get(index)
            .cloned()
            .unwrap_or_default();
        let voiced = speaking.speech.voiced.clone();
        let sent = self.send(payload)?;
        let Some(speaking) = self.voice.speaking.front_mut() else {
            return Ok(());
        };
        if index == voiced.start {
            speaking.began = Some(sent);
        }
        if index + 1 == voiced.end
            && let Some(done) = speaking.done.take()
        {
            let _ = done.send(Spoken {
                began: speaking.began.unwrap_or(sent),
                ended: sent,
            });
        }
        if speaking.next >= speaking.speech.frames.len() {
            self.voice.speaking.pop_front();
        }
        Ok(())
    }

    /// Sends a frame and says when it left.
    fn send(&mut self, payload: Bytes) -> anyhow::Result<Instant> {
        self.peer.send(payload, now())?;
        self.flush();
        Ok(now())
    }

    fn flush(&mut self) {
        while let Some(datagram) = self.peer.poll_datagram() {
            if self.network.lets_out(&datagram.bytes, datagram.to, now()) {
                let _ = self.udp.try_send_to(&datagram.bytes, datagram.to);
            }
        }
    }

    /// Takes what the stack has to give, then sends.
    fn advance(&mut self) {
        while let Some(event) = self.peer.poll() {
            match event {
                PeerEvent::Packet(packet) => {
                    let mut pcm = [0; 960];
                    let samples = self
                        .voice
                        .listener
                        .decode(&packet.payload, &mut pcm, false)
                        .unwrap_or(0);
                    self.shared.hear(Heard {
                        at: now(),
                        sequence: packet.header.sequence_number,
                        timestamp: packet.header.timestamp,
                        bytes: packet.payload.len(),
                        rms: rms(pcm.get(..samples).unwrap_or_default()),
                    });
                }
                PeerEvent::Media(state) => {
                    if state == MediaState::Connected {
                        self.voice.next.get_or_insert_with(now);
                    }
                    self.shared.record(|log| log.media.push((now(), state)));
                }
            }
        }
        self.flush();
    }
}
