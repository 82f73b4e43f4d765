//! The task of a client: it owns the WebRTC stack, the signalling connection and the microphone's clock.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use colloquy_protocol::{ClientMessage, ServerMessage};
use opus::{Channels, Decoder};
use tokio::sync::{mpsc, oneshot};

use super::{
    log::{MediaState, ReceivedAudio, Shared},
    network::Conditions,
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

/// A command, and who is told that it was done.
pub(super) type PendingCommand = (Command, oneshot::Sender<()>);

/// Speech that waits to be sent, or is being sent.
struct Speaking {
    speech: Speech,
    next: usize,
    began: Option<Instant>,
    done: Option<oneshot::Sender<Spoken>>,
}

pub(super) struct Task {
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::Receiver<PendingCommand>,
    pub(super) peer: Peer,
    pub(super) socket: Option<Socket>,
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
    pub(super) commands: mpsc::Receiver<PendingCommand>,
    pub(super) peer: Peer,
    pub(super) socket: Socket,
    pub(super) pause: Pause,
    pub(super) heartbeat: Duration,
}

enum ClientEvent {
    Command(Option<PendingCommand>),
    Peer(anyhow::Result<PeerEvent>),
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
            peer,
            socket,
            pause,
            heartbeat,
        } = parts;
        let next_ping = now() + heartbeat;
        let socket = Some(socket);
        Ok(Self {
            shared,
            commands,
            peer,
            socket,
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
        loop {
            match self.wait().await {
                ClientEvent::Command(None) => return Ok(()),
                ClientEvent::Command(Some((command, done))) => {
                    self.obey(command).await?;
                    let _ = done.send(());
                }
                ClientEvent::Signal(FromServer::Message(message)) => {
                    self.signalled(message).await?
                }
                ClientEvent::Signal(FromServer::Closed(code)) => {
                    self.socket = None;
                    self.shared.record(|log| log.closed.push((now(), code)));
                }
                ClientEvent::Peer(event) => self.happened(event?).await,
                ClientEvent::Timer => self.timer().await?,
            }
        }
    }

    async fn wait(&mut self) -> ClientEvent {
        let heartbeat = self.socket.is_some().then_some(self.next_ping);
        let due = [self.voice.next, heartbeat].into_iter().flatten().min();
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
            event = self.peer.event() => ClientEvent::Peer(event),
            () = timer => ClientEvent::Timer,
            signal = signal => ClientEvent::Signal(signal),
            command = self.commands.recv() => ClientEvent::Command(command),
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
            Command::Conditions(conditions) => self.peer.conditions(conditions),
            Command::DropSocket => self.socket = None,
            Command::Attach(socket) => {
                self.socket = Some(*socket);
                self.next_ping = now() + self.heartbeat;
            }
            Command::ClosePeer => {
                self.voice.next = None;
                self.peer.close().await?;
            }
        }
        Ok(())
    }

    async fn offer(&mut self, ice_restart: bool, rebind: bool) -> anyhow::Result<()> {
        let sdp = self.peer.offer(ice_restart, rebind).await?;
        if let Some(socket) = &mut self.socket {
            self.shared.record(|log| log.offers.push(now()));
            let _ = socket.say(&ClientMessage::Offer { sdp, ice_restart }).await;
        }
        Ok(())
    }

    async fn signalled(&mut self, message: ServerMessage) -> anyhow::Result<()> {
        let at = now();
        match &message {
            ServerMessage::Answer { sdp } => self.peer.answer(sdp).await?,
            ServerMessage::Candidate {
                candidate: Some(candidate),
                sdp_mid,
                ..
            } => {
                self.peer
                    .add_candidate(candidate.clone(), sdp_mid.clone())
                    .await?;
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

    async fn timer(&mut self) -> anyhow::Result<()> {
        let at = now();
        while self.voice.next.is_some_and(|next| next <= at) {
            self.send_frame().await?;
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
    async fn send_frame(&mut self) -> anyhow::Result<()> {
        self.voice.next = self.voice.next.map(|next| next + FRAME);
        let Some(speaking) = self.voice.speaking.front_mut() else {
            self.voice.paused = (self.voice.paused + 1) % self.pause.frames.len().max(1);
            let payload = self
                .pause
                .frames
                .get(self.voice.paused)
                .cloned()
                .unwrap_or_default();
            self.peer.send(payload).await?;
            return Ok(());
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
        let sent = self.peer.send(payload).await?;
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

    async fn happened(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Packet(packet, at) => {
                let mut pcm = [0; 960];
                let samples = self
                    .voice
                    .listener
                    .decode(&packet.payload, &mut pcm, false)
                    .unwrap_or(0);
                self.shared.hear(ReceivedAudio {
                    at,
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
            PeerEvent::Candidate(candidate) => {
                let sdp_mid = candidate.is_some().then(|| "0".to_owned());
                if let Some(socket) = &mut self.socket {
                    let message = ClientMessage::Candidate {
                        candidate,
                        sdp_mid,
                        sdp_m_line_index: None,
                    };
                    let _ = socket.say(&message).await;
                }
            }
        }
    }
}
