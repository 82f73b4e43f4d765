//! The task of one call: it owns the WebRTC stack, the engine and the client's connection, and waits for whichever has
//! something next.

mod client;
mod ending;
mod limits;
mod presence;
mod quality;
mod replay;
mod replies;
mod turns;
mod visitor;
mod words;

pub(super) use self::words::excerpt;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use colloquy_base::fair_queue::{Claim, Priority, Room};
use colloquy_calls::{
    CallSetup, LineLog, Outcome, ending::EndRequests, quality::QualityLog, room::CallSlot,
};
use colloquy_characters::{RenderedCharacter, rendered};
use colloquy_generation::ReplyContext;
use colloquy_observability::Span;
use colloquy_protocol::{ByeReason, CloseCode, ServerMessage, SessionState};
use colloquy_speech::Voice;
use colloquy_transport::{
    net::{Datagram, Inbox, Place},
    peer::{Peer, PeerEvent},
};
use colloquy_voice::{EndReason, Engine, EngineConfig, Event, Input, Output};
use opentelemetry::trace::SpanKind;
use serde_json::Map;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::task::AbortOnDropHandle;

use self::{
    ending::{End, Failure},
    limits::Limits,
    presence::Presence,
    quality::QualityMeter,
    replay::ReplayBuffer,
    replies::Replies,
    turns::{patience_after, patience_message, turn_settings},
    visitor::Visitor,
    words::{conversation, rag_info, server_message, stored_line},
};
use super::{
    live::Attach,
    provider_requests::{ANSWERS, Answer, ProviderRequests},
    signalling::{ClientInput, Refusal, Wire},
};
use crate::Media;

/// Heartbeats that a client may miss before its connection counts as lost.
const MISSED_HEARTBEATS: u32 = 3;

/// How much longer than the providers' own time-out the engine waits.
pub(super) const PROVIDER_GRACE: Duration = Duration::from_millis(500);

/// How long a client that is told of the call's end waits for it to be stored.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// Datagrams that are taken in one round, before the clock and the client's messages have their turn again.
const DATAGRAMS_A_ROUND: usize = 64;

/// A running call.
pub(super) struct Session {
    media: Media,
    id: String,
    time_limit: Duration,
    character: Option<String>,
    /// The start of the engine's time.
    epoch: Instant,
    engine: Engine,
    requests: ProviderRequests,
    visitor: Visitor,
    peer: Option<Peer>,
    place: Place,
    ssrc: u32,
    limits: Limits,
    wire: Option<Wire>,
    replay: ReplayBuffer,
    replies: Replies,
    presence: Presence,
    path: MediaPath,
    /// The write of `ongoing`, which the end makes needless.
    ongoing: Option<AbortOnDropHandle<()>>,
    end: Option<End>,
    end_requests: EndRequests,
    /// What followers of the call read until it is over.
    lines: LineLog,
    quality: QualityMeter,
    /// Room on this node, given back when the session is dropped.
    seat: CallSlot,
    /// Room where neural models compute.
    _room: Room,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediaPath {
    /// Not up yet.
    New,
    Up,
    Down,
}

/// What a session waits for.
enum SessionEvent {
    ClientInput(ClientInput),
    Datagram(Datagram),
    Answer(Answer),
    Attach(Attach),
    EndRequested,
    Shutdown,
    Timer,
}

impl Session {
    /// Starts the session of a call that was taken for this node.
    pub(super) async fn start(media: &Media, setup: CallSetup, seat: CallSlot, wire: Wire) {
        let id = setup.id.clone();
        let (answers, answers_in) = mpsc::channel(ANSWERS);
        media.providers.transcriber.warm();
        let (place, datagrams) = media.net.place();
        let (attach, attach_in) = mpsc::channel(1);
        let rendered = rendered(
            media,
            &setup.tenant,
            &setup.character,
            &setup.character_params,
        )
        .await
        .map_err(anyhow::Error::from);
        let (tenant, character) = (&setup.tenant, &setup.character);
        let voice = colloquy_speech::voice_of(&media.speech, tenant, character).await;
        let session = rendered
            .and_then(|rendered| Self::new(media, setup, &rendered, voice, seat, answers, place));
        match session {
            Ok(mut session) => {
                let resume = media.live.insert(&id, attach);
                session.attach(wire, resume);
                let sources = Sources {
                    answers: answers_in,
                    datagrams,
                    attach: attach_in,
                };
                let trace = Span::begin(SpanKind::Internal, || "call".to_owned());
                trace.set("gen_ai.conversation.id", session.id.clone());
                let run = trace.around(session.run(sources));
                media.live.spawn(async move {
                    run.await;
                    drop(trace);
                });
            }
            Err(error) => {
                tracing::error!(call = %id, error = format!("{error:#}"), "a session could not start");
                wire.refuse(Refusal::Internal);
                let outcome = Outcome {
                    error: Some(Failure::Internal.code().into()),
                    call_time: Duration::ZERO,
                    server_time: Duration::ZERO,
                    transcript: Vec::new(),
                    visitor: Map::new(),
                };
                colloquy_calls::end(media, &id, outcome);
            }
        }
    }

    fn new(
        media: &Media,
        setup: CallSetup,
        rendered: &RenderedCharacter,
        voice: Voice,
        seat: CallSlot,
        answers: mpsc::Sender<Answer>,
        place: Place,
    ) -> anyhow::Result<Self> {
        let (epoch, settings) = (media.clock.instant(), &media.config.calls);
        let lines = LineLog::start(media, &setup.id);
        let quality = QualityMeter::new(QualityLog::start(media, &setup.id));
        let detector = media.providers.turns.detector();
        let config = EngineConfig {
            turns: turn_settings(media, voice.language.as_deref()),
            greetings: rendered.greetings.clone(),
            interruption_message: rendered.interruption_message.clone(),
            apology: settings.apology.clone(),
            patience_message: patience_message(
                [&rendered.patience_message, &settings.patience_message],
                &voice,
            ),
            patience_after: patience_after(setup.character.parameters.patience_ms, settings),
            time_limit: setup.time_limit,
            // The providers' own time-out comes first and says what happened; this one is for what they miss.
            provider_timeout: Duration::from_millis(settings.provider_timeout_ms.into())
                + PROVIDER_GRACE,
            bitrate_bps: media.config.media.bitrate_bps,
            seed: rand::random(),
        };
        let engine =
            Engine::with_detector(config, detector).context("starting the conversation engine")?;
        let character = setup.character.display_name().map(str::to_owned);
        let speaker = ReplyContext::new(
            &media.generation,
            &setup.tenant,
            &setup.character,
            rendered,
            seat.documents(),
            Priority::Call,
        );
        let claim = Claim::new(Priority::Call, setup.tenant.partner().as_str()).of_call(&setup.id);
        let requests = ProviderRequests::new(media, speaker, voice, claim, answers);
        Ok(Self {
            media: media.clone(),
            id: setup.id,
            time_limit: setup.time_limit,
            character,
            epoch,
            engine,
            requests,
            visitor: Visitor::new(&setup.character, settings),
            peer: None,
            place,
            ssrc: rand::random(),
            limits: Limits::new(epoch),
            wire: None,
            replay: ReplayBuffer::default(),
            replies: Replies::default(),
            presence: Presence::new(epoch, Duration::from_secs(settings.visitor_seconds.into())),
            path: MediaPath::New,
            ongoing: None,
            end: None,
            end_requests: setup.end_requests,
            lines,
            quality,
            seat,
            _room: media.providers.inference.keep_room(),
        })
    }

    #[tracing::instrument(name = "call", skip_all, fields(call = %self.id))]
    async fn run(mut self, mut sources: Sources) {
        tracing::info!("session started");
        metrics::gauge!("colloquy_calls_active").increment(1.0);
        while self.end.is_none() {
            let wake = self.wait(&mut sources).await;
            let now = self.media.clock.instant();
            self.wake(wake, now);
            // What else is there already is taken in the same round, so that the stack is flushed once for all.
            for _ in 0..DATAGRAMS_A_ROUND {
                let Some(datagram) = sources.datagrams.try_recv() else {
                    break;
                };
                self.wake(SessionEvent::Datagram(datagram), now);
            }
            while let Ok(answer) = sources.answers.try_recv() {
                self.wake(SessionEvent::Answer(answer), now);
            }
            // What is due is done in every round: a flood of packets may not starve the clock.
            self.timer(now);
            self.advance(now);
        }
        self.finish(sources.attach).await;
        metrics::gauge!("colloquy_calls_active").decrement(1.0);
    }

    async fn wait(&mut self, sources: &mut Sources) -> SessionEvent {
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
            // Strangers can send datagrams without end, so they come last; everything before them is bounded. The timer is
            // looked at in every round, whatever woke the task.
            biased;
            () = self.media.kernel.drain_over.cancelled() => SessionEvent::Shutdown,
            () = self.end_requests.requested() => SessionEvent::EndRequested,
            Some(attach) = sources.attach.recv() => SessionEvent::Attach(attach),
            heard = heard => SessionEvent::ClientInput(heard),
            Some(answer) = sources.answers.recv() => SessionEvent::Answer(answer),
            Some(datagram) = sources.datagrams.recv() => SessionEvent::Datagram(datagram),
            () = timer => SessionEvent::Timer,
        }
    }

    /// When something is due without anything coming in.
    fn deadline(&mut self) -> Option<Instant> {
        let engine = self.engine.next_timeout().map(|at| self.epoch + at);
        let peer = self.peer.as_mut().and_then(Peer::next_tick);
        let heartbeat = self
            .wire
            .is_some()
            .then(|| self.presence.heard_at() + self.heartbeat_patience());
        let quality = self.quality.due_at();
        [engine, peer, heartbeat, quality, self.presence.give_up_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn heartbeat_patience(&self) -> Duration {
        Duration::from_secs((MISSED_HEARTBEATS * self.media.config.calls.heartbeat_seconds).into())
    }

    fn wake(&mut self, wake: SessionEvent, now: Instant) {
        match wake {
            SessionEvent::ClientInput(ClientInput::Message(message)) => {
                self.presence.hear(now);
                self.replay.heard(now);
                self.heard(message, now);
            }
            SessionEvent::ClientInput(ClientInput::Violation(what)) => self.violated(what),
            SessionEvent::ClientInput(ClientInput::Lost) => self.lost_wire(now),
            SessionEvent::Datagram(datagram) => {
                let path = datagram.addresses;
                if let Some(peer) = &mut self.peer
                    && peer.receive(datagram, now)
                {
                    self.place.bind(path, now);
                }
            }
            SessionEvent::Answer(Answer::Engine(input)) => self.tell_engine(input, now),
            SessionEvent::Answer(Answer::Retrieved(retrieval)) => {
                self.replies.retrieved(&retrieval);
                self.say(&rag_info(retrieval));
            }
            SessionEvent::Answer(Answer::Visitor(profile)) => {
                for info in self.visitor.found(profile) {
                    self.say(&ServerMessage::UserInfo { info });
                }
                self.ask_of_visitor();
            }
            SessionEvent::Attach(Attach { wire }) => self.replace_wire(wire, now),
            SessionEvent::EndRequested => self.end_with(self.hung_up(Failure::Cancelled)),
            SessionEvent::Shutdown => self.end_with(End::completed(ByeReason::Shutdown)),
            SessionEvent::Timer => self.timer(now),
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
        if self.quality.is_due(now) {
            self.measure_quality(now);
        }
        if self.wire.is_some() && self.presence.heard_at() + self.heartbeat_patience() <= now {
            tracing::info!("no heartbeat from the client");
            self.lost_wire(now);
        }
        if self.presence.is_given_up(now) {
            // A client that never had media is a failure; one that went away has ended the call.
            let end = match self.path {
                MediaPath::New => End::failed(Failure::NotConnected),
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
            peer.flush(&self.media.net);
        }
    }

    fn tell_engine(&mut self, input: Input, now: Instant) {
        let at = now.saturating_duration_since(self.epoch);
        self.replies.answered(&input, now);
        self.engine.handle(at, input);
        while let Some(output) = self.engine.poll() {
            self.replies.asked(&output, now);
            match output {
                Output::Send(frame) => {
                    if let Some(peer) = &mut self.peer {
                        peer.send(frame, now);
                    }
                }
                Output::Transcribe {
                    transcription,
                    samples,
                    stage,
                } => {
                    self.requests.transcribe(transcription, samples, stage);
                }
                Output::CancelTranscription(transcription) => {
                    self.requests.cancel_transcription(transcription)
                }
                Output::PredictEndOfTurn { pause, samples } => {
                    self.requests.predict_end_of_turn(pause, samples);
                }
                Output::CancelPrediction(pause) => self.requests.cancel_prediction(pause),
                Output::Reply(reply) => self
                    .requests
                    .reply(reply, conversation(self.engine.transcript())),
                Output::CancelReply(reply) => self.requests.cancel_reply(reply),
                Output::Speak { sentence, text } => self.requests.speak(sentence, text),
                Output::CancelSpeech(sentence) => self.requests.cancel_speech(sentence),
                Output::Event(event) => {
                    if let Event::Transcript {
                        line,
                        is_final: true,
                    } = &event
                    {
                        let reply = self.replies.of(line.id);
                        self.lines.said(line.id.0, stored_line(line, reply));
                    }
                    if self.visitor.heard(&event) {
                        self.requests.cancel_profile();
                    }
                    self.say(&server_message(event));
                    self.ask_of_visitor();
                }
                Output::End(EndReason::TimeLimit) => {
                    self.end_with(End::completed(ByeReason::TimeLimit))
                }
                Output::End(EndReason::HangUp) => {
                    self.end_with(self.hung_up(Failure::NotConnected));
                }
            }
        }
    }

    /// Finds out what the visitor tells of themselves, where it is time to.
    fn ask_of_visitor(&mut self) {
        if let Some(known) = self.visitor.ask() {
            let lines = conversation(self.engine.transcript());
            self.requests.profile(known, lines);
        }
    }

    fn media_up(&mut self, now: Instant) {
        let before = std::mem::replace(&mut self.path, MediaPath::Up);
        if before == MediaPath::New {
            self.presence.connect(now);
            self.quality.connect(now);
            self.seat.connected();
            tracing::info!(
                after_ms = now.duration_since(self.epoch).as_millis(),
                "media connected"
            );
            let ongoing = colloquy_calls::connected(self.media.calls.clone(), self.id.clone());
            self.ongoing = Some(AbortOnDropHandle::new(
                self.media.kernel.tasks.spawn(ongoing),
            ));
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
        if self.path == MediaPath::Up {
            tracing::info!("media lost");
            self.path = MediaPath::Down;
            self.tell_engine(Input::Disconnected, now);
            self.say(&ServerMessage::Status {
                state: SessionState::Reconnecting,
            });
            self.reconsider_giving_up(now);
        }
    }

    fn state(&self) -> SessionState {
        match self.path {
            MediaPath::New => SessionState::Starting,
            MediaPath::Up => SessionState::Ongoing,
            MediaPath::Down => SessionState::Reconnecting,
        }
    }

    /// The client has made its first offer: the visitor has been asked for the microphone, which took as long as it
    /// took, and from now on the media has to come up.
    fn expect_media(&mut self, now: Instant) {
        let patience = self.media.config.calls.media_connect_seconds;
        self.presence
            .expect_media(Duration::from_secs(patience.into()), now);
    }

    /// Either the connection or the media being away starts the wait; both being there ends it. Before media first
    /// connects, its own time limit stays.
    fn reconsider_giving_up(&mut self, now: Instant) {
        if self.path == MediaPath::New {
            return;
        }
        let away = self.wire.is_none() || self.path == MediaPath::Down;
        let patience = Duration::from_secs(self.media.config.calls.reconnect_seconds.into());
        self.presence.reconsider(away, patience, now);
    }

    /// The end of a call that either side hung up; a failure before media came up.
    fn hung_up(&self, before_media: Failure) -> End {
        End {
            bye: ByeReason::HangUp,
            failure: (self.path == MediaPath::New).then_some(before_media),
        }
    }

    fn end_with(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    /// Ends the call, and refuses clients that come back while it ends.
    async fn finish(mut self, mut attach: mpsc::Receiver<Attach>) {
        let now = self.media.clock.instant();
        self.finish_quality(now);
        // The engine settles the transcript; after its own end this changes nothing.
        self.tell_engine(Input::HangUp, now);
        let media_heard = self.peer.as_ref().and_then(Peer::last_heard);
        if let Some(mut peer) = self.peer.take() {
            peer.close(&self.media.net);
        }
        self.ongoing = None;
        let end = self
            .end
            .take()
            .unwrap_or_else(|| End::completed(ByeReason::HangUp));
        tracing::info!(?end, "session ended");
        let lines = self.engine.transcript().iter();
        let transcript = lines.map(|line| stored_line(line, self.replies.of(line.id)));
        let outcome = Outcome {
            error: end.failure.map(|failure| failure.code().into()),
            call_time: self.presence.call_time(media_heard, now),
            server_time: now.saturating_duration_since(self.epoch),
            transcript: transcript.collect(),
            visitor: self.visitor.facts(),
        };
        // A client that is told of the end finds it stored, unless the database is away.
        let stored = colloquy_calls::end(&self.media, &self.id, outcome);
        if timeout(STORE_PATIENCE, stored).await.is_err() {
            tracing::warn!("the end of the call is not stored yet");
        }
        self.media.live.remove(&self.id);
        attach.close();
        while let Some(Attach { wire }) = attach.recv().await {
            wire.refuse(CloseCode::CallNotFound.into());
        }
        if let Some(wire) = self.wire.take() {
            let (state, close) = match end.failure {
                Some(failure) => (SessionState::Error, failure.close()),
                None => (SessionState::Completed, CloseCode::Normal),
            };
            let code = end.failure.map(Failure::code);
            // The reason comes first: for a client, a final status is an end as well.
            wire.say(&ServerMessage::Bye {
                reason: end.bye,
                code: code.map(str::to_owned),
            });
            wire.say(&ServerMessage::Status { state });
            wire.close(close.number(), code.unwrap_or("BYE"));
        }
    }
}

/// Where a session's wake-ups come from.
struct Sources {
    answers: mpsc::Receiver<Answer>,
    datagrams: Inbox,
    attach: mpsc::Receiver<Attach>,
}
