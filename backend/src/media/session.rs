//! The task of one call: it owns the WebRTC stack, the engine and the client's connection, and waits for whichever has
//! something next.

mod client;
mod missed;
mod words;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use colloquy_protocol::{ByeReason, CloseCode, RagDocument, ServerMessage, SessionState};
use colloquy_voice::{EndReason, Engine, EngineConfig, Input, Output, TurnSettings};
use opentelemetry::trace::SpanKind;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::JoinHandle,
};

use self::{
    missed::Missed,
    words::{server_message, stored_line, user_info},
};
use super::{
    asks::{ANSWERS, Answer, Asks},
    live::Attach,
    net::{Datagram, Place},
    peer::{Peer, PeerEvent},
    signalling::{Heard, Refusal, Wire},
};
use crate::{
    app::App,
    calls::{self, CallSetup, Outcome},
    generation::Speaker,
    observability::Span,
    speech::Voice,
};

/// Heartbeats that a client may miss before its connection counts as lost.
const MISSED_HEARTBEATS: u32 = 3;

/// How much longer than the providers' own time-out the engine waits.
const PROVIDER_GRACE: Duration = Duration::from_millis(500);

/// A running call.
pub(super) struct Session {
    app: App,
    id: String,
    time_limit: Duration,
    character: Option<String>,
    /// The start of the engine's time.
    epoch: Instant,
    engine: Engine,
    asks: Asks,
    peer: Option<Peer>,
    place: Place,
    ssrc: u32,
    wire: Option<Wire>,
    missed: Missed,
    last_heard: Instant,
    media: MediaPath,
    /// When the call ends unless the client comes back.
    give_up_at: Option<Instant>,
    /// When the path first came up.
    connected_at: Option<Instant>,
    /// The write of `ongoing`, which the end waits for.
    ongoing: Option<JoinHandle<()>>,
    end: Option<End>,
    /// Room on this node, given back when the session is dropped.
    _slot: OwnedSemaphorePermit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediaPath {
    /// Not up yet.
    New,
    Up,
    Down,
}

/// How a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    bye: ByeReason,
    /// The stable code of a failure; `None` when the call completed.
    error: Option<&'static str>,
}

impl End {
    fn completed(bye: ByeReason) -> Self {
        Self { bye, error: None }
    }

    fn failed(code: &'static str) -> Self {
        Self {
            bye: ByeReason::Error,
            error: Some(code),
        }
    }
}

/// What a session waits for.
enum Wake {
    Heard(Heard),
    Datagram(Datagram),
    Answer(Answer),
    Attach(Attach),
    Shutdown,
    Timer,
}

impl Session {
    /// Starts the session of a call that was taken for this node.
    pub(super) fn start(app: &App, setup: CallSetup, slot: OwnedSemaphorePermit, wire: Wire) {
        let id = setup.id.clone();
        let (answers, answers_in) = mpsc::channel(ANSWERS);
        app.providers.transcriber.warm();
        let (place, datagrams) = app.media.net.place();
        let (attach, attach_in) = mpsc::channel(1);
        match Self::new(app, setup, slot, answers, place) {
            Ok(mut session) => {
                let resume = app.media.live.insert(&id, attach);
                session.attach(wire, resume);
                let sources = Sources {
                    answers: answers_in,
                    datagrams,
                    attach: attach_in,
                };
                let trace = Span::begin(SpanKind::Internal, || "call".to_owned());
                trace.set("gen_ai.conversation.id", session.id.clone());
                let run = trace.around(session.run(sources));
                app.media.live.spawn(async move {
                    run.await;
                    drop(trace);
                });
            }
            Err(error) => {
                tracing::error!(call = %id, error = format!("{error:#}"), "a session could not start");
                wire.refuse(&Refusal {
                    code: "INTERNAL",
                    close: 1011,
                    message: "the server failed; try again later",
                });
                let app = app.clone();
                let spawner = app.clone();
                spawner.media.live.spawn(async move {
                    let outcome = Outcome {
                        error: Some("INTERNAL"),
                        call_time: Duration::ZERO,
                        server_time: Duration::ZERO,
                        transcript: Vec::new(),
                    };
                    if let Err(error) = calls::finish(&app, &id, outcome).await {
                        tracing::error!(call = %id, error = ?error.source, "a call could not be ended");
                    }
                });
            }
        }
    }

    fn new(
        app: &App,
        setup: CallSetup,
        slot: OwnedSemaphorePermit,
        answers: mpsc::Sender<Answer>,
        place: Place,
    ) -> anyhow::Result<Self> {
        let epoch = app.clock.instant();
        let settings = &app.config.calls;
        let rendered = setup.character.render(&setup.character_params)?;
        let engine = Engine::new(EngineConfig {
            turns: TurnSettings {
                start_ms: settings.turn_start_ms,
                stop_ms: settings.turn_stop_ms,
                min_speech_ms: settings.min_speech_ms,
                interim_ms: Some(settings.interim_ms).filter(|interim| *interim > 0),
                ..TurnSettings::default()
            },
            greetings: rendered.greetings.clone(),
            interruption_message: rendered.interruption_message.clone(),
            apology: settings.apology.clone(),
            time_limit: setup.time_limit,
            // The providers' own time-out comes first and says what happened; this one is for what they miss.
            provider_timeout: Duration::from_millis(settings.provider_timeout_ms.into())
                + PROVIDER_GRACE,
            bitrate_bps: app.config.media.bitrate_bps,
            seed: rand::random(),
        })
        .context("starting the conversation engine")?;
        let character = setup.character.display_name().map(str::to_owned);
        let speaker = Speaker::new(&setup.character, &rendered);
        let voice = Voice::of(&setup.character.parameters);
        let asks = Asks::new(app, speaker, voice, answers);
        Ok(Self {
            app: app.clone(),
            id: setup.id,
            time_limit: setup.time_limit,
            character,
            epoch,
            engine,
            asks,
            peer: None,
            place,
            ssrc: rand::random(),
            wire: None,
            missed: Missed::default(),
            last_heard: epoch,
            media: MediaPath::New,
            give_up_at: Some(epoch + Duration::from_secs(settings.media_connect_seconds.into())),
            connected_at: None,
            ongoing: None,
            end: None,
            _slot: slot,
        })
    }

    #[tracing::instrument(name = "call", skip_all, fields(call = %self.id))]
    async fn run(mut self, mut sources: Sources) {
        tracing::info!("session started");
        metrics::gauge!("colloquy_calls_active").increment(1.0);
        while self.end.is_none() {
            let wake = self.wait(&mut sources).await;
            let now = self.app.clock.instant();
            self.wake(wake, now);
            // Whatever else is there already is taken in the same round, so that the stack is flushed once for all.
            while let Ok(datagram) = sources.datagrams.try_recv() {
                self.wake(Wake::Datagram(datagram), now);
            }
            while let Ok(answer) = sources.answers.try_recv() {
                self.wake(Wake::Answer(answer), now);
            }
            // What is due is done in every round: a flood of packets may not starve the clock.
            self.timer(now);
            self.advance(now);
        }
        self.finish().await;
        metrics::gauge!("colloquy_calls_active").decrement(1.0);
    }

    async fn wait(&mut self, sources: &mut Sources) -> Wake {
        let deadline = self.deadline();
        let timer = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let heard = async {
            match &mut self.wire {
                Some(wire) => wire.hear().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(datagram) = sources.datagrams.recv() => Wake::Datagram(datagram),
            Some(answer) = sources.answers.recv() => Wake::Answer(answer),
            heard = heard => Wake::Heard(heard),
            Some(attach) = sources.attach.recv() => Wake::Attach(attach),
            () = self.app.drain_over.cancelled() => Wake::Shutdown,
            () = timer => Wake::Timer,
        }
    }

    /// When something is due without anything coming in.
    fn deadline(&mut self) -> Option<Instant> {
        let engine = self.engine.next_timeout().map(|at| self.epoch + at);
        let peer = self.peer.as_mut().and_then(Peer::next_tick);
        let heartbeat = self
            .wire
            .is_some()
            .then(|| self.last_heard + self.heartbeat_patience());
        [engine, peer, heartbeat, self.give_up_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn heartbeat_patience(&self) -> Duration {
        Duration::from_secs((MISSED_HEARTBEATS * self.app.config.calls.heartbeat_seconds).into())
    }

    fn wake(&mut self, wake: Wake, now: Instant) {
        match wake {
            Wake::Heard(Heard::Message(message)) => {
                self.last_heard = now;
                self.missed.heard(now);
                self.heard(message, now);
            }
            Wake::Heard(Heard::Violation(what)) => self.violated(what),
            Wake::Heard(Heard::Lost) => self.lost_wire(now),
            Wake::Datagram(datagram) => {
                if let Some(peer) = &mut self.peer {
                    peer.receive(datagram, now);
                }
            }
            Wake::Answer(Answer::Engine(input)) => self.tell_engine(input, now),
            Wake::Answer(Answer::Retrieved(retrieval)) => {
                let documents: Vec<RagDocument> = retrieval
                    .documents
                    .into_iter()
                    .map(|document| RagDocument {
                        title: document.title,
                        fusion_score: document.fusion_score,
                        token_count: u32::try_from(document.token_count).unwrap_or(u32::MAX),
                    })
                    .collect();
                let count = u32::try_from(documents.len()).ok();
                let total_tokens = documents.iter().map(|document| document.token_count).sum();
                self.say(&ServerMessage::RagInfo {
                    documents,
                    count,
                    total_tokens,
                });
            }
            Wake::Attach(Attach { wire }) => self.replace_wire(wire, now),
            Wake::Shutdown => self.end_with(End::completed(ByeReason::Shutdown)),
            Wake::Timer => self.timer(now),
        }
    }

    fn timer(&mut self, now: Instant) {
        if let Some(peer) = &mut self.peer
            && peer.next_tick().is_some_and(|at| at <= now)
        {
            peer.tick(now);
        }
        if self
            .engine
            .next_timeout()
            .is_some_and(|at| self.epoch + at <= now)
        {
            self.tell_engine(Input::Timeout, now);
        }
        if self.wire.is_some() && self.last_heard + self.heartbeat_patience() <= now {
            tracing::info!("no heartbeat from the client");
            self.lost_wire(now);
        }
        if self.give_up_at.is_some_and(|at| at <= now) {
            // A client that never had media is a failure; one that went away has ended the call.
            let end = match self.media {
                MediaPath::New => End::failed("NOT_CONNECTED"),
                MediaPath::Up | MediaPath::Down => End::completed(ByeReason::HangUp),
            };
            self.end_with(end);
        }
    }

    /// Takes what the stack and the engine have to give until both are quiet, then sends.
    fn advance(&mut self, now: Instant) {
        while let Some(event) = self.peer.as_mut().and_then(Peer::poll) {
            match event {
                PeerEvent::Packet(packet) => self.tell_engine(Input::Packet(packet), now),
                PeerEvent::Connected => self.media_up(now),
                PeerEvent::Disconnected | PeerEvent::Failed => self.media_down(now),
            }
        }
        if let Some(peer) = &mut self.peer {
            peer.flush(&self.app.media.net);
        }
    }

    fn tell_engine(&mut self, input: Input, now: Instant) {
        let at = now.saturating_duration_since(self.epoch);
        self.engine.handle(at, input);
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Send(frame) => {
                    if let Some(peer) = &mut self.peer {
                        peer.send(frame, now);
                    }
                }
                Output::Transcribe {
                    utterance,
                    samples,
                    is_final,
                } => {
                    self.asks.transcribe(utterance, samples, is_final);
                }
                Output::CancelTranscription(utterance) => self.asks.cancel_transcription(utterance),
                Output::Reply(reply) => self.asks.reply(reply, self.engine.transcript().to_vec()),
                Output::CancelReply(reply) => self.asks.cancel_reply(reply),
                Output::Speak { sentence, text } => self.asks.speak(sentence, text),
                Output::CancelSpeech(sentence) => self.asks.cancel_speech(sentence),
                Output::Event(event) => {
                    let info = user_info(&event);
                    self.say(&server_message(event));
                    if let Some(info) = info {
                        self.say(&info);
                    }
                }
                Output::End(EndReason::TimeLimit) => {
                    self.end_with(End::completed(ByeReason::TimeLimit))
                }
                Output::End(EndReason::HangUp) => self.end_with(match self.media {
                    MediaPath::New => End {
                        bye: ByeReason::HangUp,
                        error: Some("NOT_CONNECTED"),
                    },
                    MediaPath::Up | MediaPath::Down => End::completed(ByeReason::HangUp),
                }),
                other => tracing::error!(
                    ?other,
                    "the engine gave an output that the session does not know"
                ),
            }
        }
    }

    fn media_up(&mut self, now: Instant) {
        let before = std::mem::replace(&mut self.media, MediaPath::Up);
        if before == MediaPath::New {
            self.connected_at = Some(now);
            self.give_up_at = None;
            tracing::info!(
                after_ms = now.duration_since(self.epoch).as_millis(),
                "media connected"
            );
            let app = self.app.clone();
            let id = self.id.clone();
            self.ongoing = Some(self.app.tasks.spawn(async move {
                if let Err(error) = calls::mark_ongoing(&app, &id).await {
                    tracing::error!(call = %id, error = ?error.source, "a call could not be marked ongoing");
                }
            }));
        }
        if before != MediaPath::Up {
            self.say(&ServerMessage::Status {
                state: SessionState::Ongoing,
            });
            self.tell_engine(Input::Connected, now);
        }
        self.reconsider_giving_up(now);
    }

    fn media_down(&mut self, now: Instant) {
        if self.media == MediaPath::Up {
            tracing::info!("media lost");
            self.media = MediaPath::Down;
            self.tell_engine(Input::Disconnected, now);
            self.say(&ServerMessage::Status {
                state: SessionState::Reconnecting,
            });
            self.reconsider_giving_up(now);
        }
    }

    fn state(&self) -> SessionState {
        match self.media {
            MediaPath::New => SessionState::Starting,
            MediaPath::Up => SessionState::Ongoing,
            MediaPath::Down => SessionState::Reconnecting,
        }
    }

    /// Either the connection or the media being away starts the wait; both being there ends it. Before media first
    /// connects, its own time limit stays.
    fn reconsider_giving_up(&mut self, now: Instant) {
        if self.media == MediaPath::New {
            return;
        }
        let away = self.wire.is_none() || self.media == MediaPath::Down;
        let patience = Duration::from_secs(self.app.config.calls.reconnect_seconds.into());
        self.give_up_at = away.then(|| self.give_up_at.unwrap_or(now + patience));
    }

    fn end_with(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    async fn finish(mut self) {
        let now = self.app.clock.instant();
        // The engine settles the transcript; after its own end this changes nothing.
        self.tell_engine(Input::HangUp, now);
        if let Some(mut peer) = self.peer.take() {
            peer.close(&self.app.media.net);
        }
        if let Some(ongoing) = self.ongoing.take() {
            let _ = ongoing.await;
        }
        let end = self
            .end
            .take()
            .unwrap_or_else(|| End::completed(ByeReason::HangUp));
        tracing::info!(?end, "session ended");
        let since = |start: Instant| now.saturating_duration_since(start);
        let outcome = Outcome {
            error: end.error,
            call_time: self.connected_at.map(since).unwrap_or_default(),
            server_time: since(self.epoch),
            transcript: self.engine.transcript().iter().map(stored_line).collect(),
        };
        let stored = calls::finish(&self.app, &self.id, outcome).await;
        if let Err(error) = &stored {
            tracing::error!(error = ?error.source, "a call could not be ended; it will be marked as failed");
        }
        self.app.media.live.remove(&self.id);
        if let Some(wire) = self.wire.take() {
            let state = if end.error.is_some() {
                SessionState::Error
            } else {
                SessionState::Completed
            };
            wire.say(&ServerMessage::Status { state });
            wire.say(&ServerMessage::Bye {
                reason: end.bye,
                code: end.error.map(str::to_owned),
            });
            let close = match end.error {
                Some("PROTOCOL") => CloseCode::Protocol,
                _ => CloseCode::Normal,
            };
            wire.close(close.number(), end.error.unwrap_or("BYE"));
        }
    }
}

/// Where a session's wake-ups come from.
struct Sources {
    answers: mpsc::Receiver<Answer>,
    datagrams: mpsc::Receiver<Datagram>,
    attach: mpsc::Receiver<Attach>,
}
