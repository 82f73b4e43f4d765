//! A native client of a call: the WebSocket behind the signed URL, WebRTC on one of two [stacks](Stack), and a microphone
//! that plays recordings on the real-time clock.
//!
//! One task runs one client. It records every message and every media packet with its time; the user of the client says
//! what it does and waits for what the record shows. It is cheap, so that a benchmark can run many beside the server:
//! speech is encoded once for all clients, and packets that come are decoded at 8,000 Hz, only to tell voice from
//! silence.
//!
//! - [`bare`]: a connection without a call
//! - [`check`]: the check before a call
//! - [`log`]: what was seen and heard
//! - [`network`]: loss, jitter, a cut cable
//! - [`peer`]: the WebRTC stacks
//! - [`socket`]: the signalling WebSocket, also for tests that speak the protocol by hand
//! - [`speech`]: recordings as Opus frames
//! - [`task`]: the task of a client

mod bare;
mod check;
mod log;
mod network;
mod peer;
mod socket;
mod speech;
mod task;
#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use colloquy::clock::{Clock as _, SystemClock};
use colloquy_protocol::{ClientMessage, Originator, ServerMessage};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

pub use bare::connect_bare;
pub use check::Check;
pub use log::{AUDIBLE_RMS, Log, MediaState, ReceivedAudio};
pub use network::Conditions;
pub use peer::Stack;
pub use socket::{FromServer, Refused, Socket};
pub use speech::{SAMPLE_RATE_HZ, Speech, go_forward, rms, voiced_range};
pub use task::Spoken;

use log::Shared;
use network::Network;
use peer::Peer;
use speech::Pause;
use task::{Command, Parts, PendingCommand, Task};

use crate::patience;

/// How long media may take to connect on one machine, however busy and however bad the network: twenty seconds on one of ordinary speed.
fn connect_patience() -> Duration {
    patience(Duration::from_secs(20))
}

/// What a client sends while it says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Between {
    /// The noise of a quiet room, as a microphone hears it.
    #[default]
    RoomTone,
    /// Digital silence.
    Silence,
    /// A frame every 400 ms (discontinuous transmission).
    Dtx,
}

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The WebRTC stack.
    pub stack: Stack,
    /// The interface that media uses; on loopback the server has to listen on loopback too.
    pub bind: IpAddr,
    /// What is sent while nothing is said.
    pub between: Between,
    /// The network.
    pub conditions: Conditions,
    /// Decides which packets the network loses.
    pub seed: u64,
    /// Whether heartbeats are sent.
    pub heartbeats: bool,
    /// Whether it wants to be told what becomes known of the visitor.
    pub user_info: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            stack: Stack::default(),
            bind: Ipv4Addr::LOCALHOST.into(),
            between: Between::default(),
            conditions: Conditions::default(),
            seed: 1,
            heartbeats: true,
            user_info: false,
        }
    }
}

/// A client in a call. Dropping it drops its connections without a word.
#[derive(Debug)]
pub struct NativeClient {
    url: String,
    shared: Arc<Shared>,
    commands: mpsc::Sender<PendingCommand>,
    _task: AbortOnDropHandle<()>,
}

impl NativeClient {
    /// Joins a call and waits until media flows.
    ///
    /// # Errors
    /// [`Refused`] when the server refuses the session; another error when media does not connect.
    pub async fn connect(url: &str) -> anyhow::Result<Self> {
        Self::connect_with(url, ClientOptions::default()).await
    }

    /// Joins a call as the options say and waits until media flows.
    ///
    /// # Errors
    /// [`Refused`] when the server refuses the session; another error when media does not connect.
    pub async fn connect_with(url: &str, options: ClientOptions) -> anyhow::Result<Self> {
        let client = Self::join(url, options).await?;
        let before = now();
        client.offer().await?;
        client.connected(before).await?;
        Ok(client)
    }

    /// Opens the session up to `welcome`, without media.
    ///
    /// # Errors
    /// [`Refused`] when the server refuses the session.
    pub async fn join(url: &str, options: ClientOptions) -> anyhow::Result<Self> {
        let mut socket = Socket::open(url).await?;
        socket.begin(options.user_info).await?;
        let welcome = socket.welcome().await?;
        let heartbeat = match &welcome {
            ServerMessage::Welcome {
                heartbeat_seconds, ..
            } if options.heartbeats => (*heartbeat_seconds).max(1),
            _ => 24 * 60 * 60,
        };
        let network = Network::new(options.conditions, options.seed);
        let peer = Peer::new(options.stack, options.bind, network).await?;
        let shared = Arc::new(Shared::default());
        shared.record(|log| log.messages.push((now(), welcome)));
        let (commands, inbox) = mpsc::channel(64);
        let task = Task::new(Parts {
            shared: Arc::clone(&shared),
            commands: inbox,
            peer,
            socket,
            pause: pause(options.between)?,
            heartbeat: Duration::from_secs(heartbeat.into()),
        })?;
        let task = AbortOnDropHandle::new(TaskTracker::new().spawn(task.run()));
        Ok(Self {
            url: url.to_owned(),
            shared,
            commands,
            _task: task,
        })
    }

    /// Sends an offer and the candidates after it.
    ///
    /// # Errors
    /// When the client has failed.
    pub async fn offer(&self) -> anyhow::Result<()> {
        self.command(Command::Offer {
            ice_restart: false,
            rebind: false,
        })
        .await
    }

    /// Waits until media has connected after a moment; returns when it did.
    ///
    /// # Errors
    /// When it does not within twenty seconds on a machine of ordinary speed.
    pub async fn connected(&self, after: Instant) -> anyhow::Result<Instant> {
        let connected = self.shared.wait(connect_patience(), |log| {
            let connected = |(at, state): &&(Instant, MediaState)| {
                *at >= after && *state == MediaState::Connected
            };
            match log.media.iter().find(connected) {
                Some((at, _)) => Some(Ok(*at)),
                None => log
                    .failure
                    .clone()
                    .map(|failure| Err(anyhow::anyhow!(failure))),
            }
        });
        connected.await.context("media did not connect")?
    }

    /// Waits for a packet of the server after a moment: it sends silence, too, so one comes soon where there is a path.
    ///
    /// # Errors
    /// When none comes within twenty seconds on a machine of ordinary speed.
    pub async fn packet(&self, after: Instant) -> anyhow::Result<()> {
        let came = self.shared.wait(connect_patience(), |log| {
            log.packets.last().filter(|last| last.at > after).map(drop)
        });
        came.await.context("no packet came")
    }

    /// How long the first connection took, from the offer to media being up.
    #[must_use]
    pub fn connect_time(&self) -> Option<Duration> {
        let log = self.log();
        let connected = log
            .media
            .iter()
            .find(|(_, state)| *state == MediaState::Connected)?;
        Some(connected.0.duration_since(*log.offers.first()?))
    }

    /// Says this, and returns once the last voiced sample has been sent.
    ///
    /// # Errors
    /// When the client has failed.
    pub async fn speak(&self, speech: &Speech) -> anyhow::Result<Spoken> {
        let (done, spoken) = oneshot::channel();
        self.command(Command::Speak(speech.clone(), done)).await?;
        spoken.await.context("the client ended while it spoke")
    }

    /// Sends something else from now on while nothing is said.
    ///
    /// # Errors
    /// When the client has failed.
    pub async fn between(&self, between: Between) -> anyhow::Result<()> {
        self.command(Command::Pause(pause(between)?)).await
    }

    /// Waits for the first audible packet after a moment; `None` when none comes in time.
    pub async fn reply_audio(&self, after: Instant, patience: Duration) -> Option<ReceivedAudio> {
        self.shared
            .wait(patience, |log| log.first_audible(after))
            .await
    }

    /// Waits until nothing audible has come for so long; returns the last audible packet before, if there was one.
    ///
    /// # Errors
    /// When it does not become quiet in time.
    pub async fn silence(
        &self,
        quiet_for: Duration,
        patience: Duration,
    ) -> anyhow::Result<Option<ReceivedAudio>> {
        let begun = now();
        let deadline = begun + patience;
        loop {
            let last = self.log().last_audible(now());
            let quiet_at = last.map_or(begun, |last| last.at.max(begun)) + quiet_for;
            if quiet_at <= now() {
                return Ok(last);
            }
            if quiet_at > deadline {
                bail!("the server did not fall silent");
            }
            tokio::time::sleep_until(quiet_at.into()).await;
        }
    }

    /// Waits for a message after a moment for which `find` returns something.
    ///
    /// # Errors
    /// When none comes in time; it lists what came instead.
    pub async fn message<T>(
        &self,
        after: Instant,
        patience: Duration,
        find: impl Fn(&ServerMessage) -> Option<T>,
    ) -> anyhow::Result<T> {
        let later = |log: &Log| {
            log.messages
                .iter()
                .filter(|(at, _)| *at >= after)
                .find_map(|(_, message)| find(message))
        };
        let found = self.shared.wait(patience, later).await;
        found.with_context(|| {
            format!(
                "the message did not come; what came: {:#?}",
                self.log().messages
            )
        })
    }

    /// Waits for a final line of the transcript that `matches`; returns its words.
    ///
    /// # Errors
    /// When none comes in time; it lists the transcript.
    pub async fn line(
        &self,
        originator: Originator,
        patience: Duration,
        matches: impl Fn(&str) -> bool,
    ) -> anyhow::Result<String> {
        let find = |log: &Log| {
            let lines = log.lines().into_iter();
            lines
                .filter(|(who, text, last)| *who == originator && *last && matches(text))
                .map(|line| line.1)
                .next()
        };
        let found = self.shared.wait(patience, find).await;
        found.with_context(|| {
            format!(
                "the line did not come; the transcript: {:#?}",
                self.log().lines()
            )
        })
    }

    /// What happened so far.
    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.shared.log()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the client has failed.
    pub async fn say(&self, message: &ClientMessage) -> anyhow::Result<()> {
        self.command(Command::Say(serde_json::to_string(message)?))
            .await
    }

    /// Sends a text frame, whatever it holds.
    ///
    /// # Errors
    /// When the client has failed.
    pub async fn say_text(&self, text: impl Into<String>) -> anyhow::Result<()> {
        self.command(Command::Say(text.into())).await
    }

    /// Changes the network.
    ///
    /// # Errors
    /// When the client has failed.
    pub async fn conditions(&self, conditions: Conditions) -> anyhow::Result<()> {
        self.command(Command::Conditions(conditions)).await
    }

    /// Loses the signalling connection without a word; media goes on.
    ///
    /// # Errors
    /// When the client has failed.
    pub async fn drop_socket(&self) -> anyhow::Result<()> {
        self.command(Command::DropSocket).await
    }

    /// The resume token of the last `welcome`.
    ///
    /// # Errors
    /// When there was no `welcome`, which cannot be.
    pub fn resume_token(&self) -> anyhow::Result<String> {
        let log = self.log();
        let last = log
            .messages
            .iter()
            .rev()
            .find_map(|(_, message)| match message {
                ServerMessage::Welcome { resume, .. } => Some(resume.clone()),
                _ => None,
            });
        last.context("there was no welcome")
    }

    /// Opens the signalling connection again with the resume token.
    ///
    /// # Errors
    /// [`Refused`] when the server refuses it.
    pub async fn resume(&self) -> anyhow::Result<()> {
        let token = self.resume_token()?;
        let mut socket = Socket::open(&self.url).await?;
        socket.resume(&token).await?;
        let welcome = socket.welcome().await?;
        self.shared
            .record(|log| log.messages.push((now(), welcome)));
        self.command(Command::Attach(Box::new(socket))).await
    }

    /// Restarts ICE, from another port if `rebind`, and waits for the answer.
    ///
    /// # Errors
    /// When media does not connect.
    pub async fn restart_ice(&self, rebind: bool) -> anyhow::Result<()> {
        let before = now();
        self.command(Command::Offer {
            ice_restart: true,
            rebind,
        })
        .await?;
        self.message(before, connect_patience(), |message| {
            matches!(message, ServerMessage::Answer { .. }).then_some(())
        })
        .await
    }

    /// The address that the server's first answer offers for media.
    ///
    /// # Errors
    /// When there was no answer with a candidate on loopback.
    pub fn server_media_address(&self) -> anyhow::Result<SocketAddr> {
        let log = self.log();
        let answers = log
            .messages
            .iter()
            .filter_map(|(_, message)| match message {
                ServerMessage::Answer { sdp } => Some(sdp),
                _ => None,
            });
        let mut candidates = answers.flat_map(|sdp| sdp.lines()).filter_map(|line| {
            let ip = peer::candidate_ip(line).filter(IpAddr::is_loopback)?;
            let port = line.split_whitespace().nth(5)?.parse().ok()?;
            Some(SocketAddr::new(ip, port))
        });
        candidates
            .next()
            .context("the server offered no address on loopback")
    }

    /// Ends the call and waits until the server has closed the session.
    ///
    /// # Errors
    /// When it does not.
    pub async fn hang_up(self) -> anyhow::Result<ServerMessage> {
        let before = now();
        self.say(&ClientMessage::HangUp).await?;
        let bye = self.bye_after(Some(before), connect_patience()).await?;
        self.command(Command::ClosePeer).await?;
        Ok(bye)
    }

    /// Waits for `bye` and the end of the connection.
    ///
    /// # Errors
    /// When they do not come in time.
    pub async fn bye(&self, patience: Duration) -> anyhow::Result<ServerMessage> {
        self.bye_after(None, patience).await
    }

    async fn bye_after(
        &self,
        before: Option<Instant>,
        patience: Duration,
    ) -> anyhow::Result<ServerMessage> {
        let ended = self.shared.wait(patience, |log| {
            log.closed.last().filter(|(at, _)| Some(*at) >= before)?;
            log.messages
                .iter()
                .rev()
                .take_while(|(at, _)| Some(*at) >= before)
                .map(|(_, message)| message)
                .find(|message| matches!(message, ServerMessage::Bye { .. }))
                .cloned()
        });
        let ended = ended.await;
        ended.with_context(|| format!("no bye came; what came: {:#?}", self.log().messages))
    }

    /// Returns when it is done.
    async fn command(&self, command: Command) -> anyhow::Result<()> {
        let (done, is_done) = oneshot::channel();
        let sent = self.commands.send((command, done)).await;
        if sent.is_err() || is_done.await.is_err() {
            let failure = self.log().failure.clone();
            bail!("the client has failed: {}", failure.unwrap_or_default());
        }
        Ok(())
    }
}

/// The machine's clock.
#[must_use]
pub fn now() -> Instant {
    SystemClock.instant()
}

fn pause(between: Between) -> anyhow::Result<Pause> {
    match between {
        Between::RoomTone => Pause::room_tone(),
        Between::Silence => Pause::silence(),
        Between::Dtx => Pause::dtx(),
    }
}
