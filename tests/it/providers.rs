//! The providers: adapters and time-outs against the scripted upstream, and the embedded defaults.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests too; what was said and how long it took is worth seeing"
)]

mod dialogues;
mod embedded;
mod kokoro_neural;
pub(crate) mod neural;
mod paths;

use std::time::Duration;

use colloquy::{
    Config,
    fair_queue::{Claim, Priority},
    providers::{
        self, ChatMessage, ChatRequest, ChatRole, Pcm, ProviderError, ProviderErrorKind, Providers,
        SpeechRequest, Utterance,
    },
};
use futures_util::{Stream, StreamExt as _};
use harness::{
    eventually, patience,
    upstream::{Api, End, Fault, Script, Upstream},
};
use tokio::time::Instant;

/// The patience of these tests; long against the pace of the upstream, short for whoever waits for the tests.
fn limit() -> Duration {
    patience(Duration::from_millis(1_000))
}

async fn upstream() -> (Upstream, Providers) {
    upstream_with(limit()).await
}

/// The patience with an upstream that has this fault. A debug build takes a while to write and to read what is huge, and
/// that is not the fault.
fn limit_with(fault: Option<&Fault>) -> Duration {
    match fault {
        Some(Fault::Huge { .. }) => limit() * 10,
        _ => limit(),
    }
}

async fn upstream_with(limit: Duration) -> (Upstream, Providers) {
    let upstream = Upstream::start().await;
    let mut config = Config::default();
    upstream.configure(&mut config);
    config.calls.provider_timeout_ms = limit.as_millis() as u32;
    (upstream, providers::from_config(&config).unwrap())
}

fn ask() -> ChatRequest {
    ChatRequest {
        system: "You are Max.".to_owned(),
        messages: vec![ChatMessage {
            role: ChatRole::User,
            content: "Hello".to_owned(),
        }],
        ..ChatRequest::default()
    }
}

fn say(text: &str) -> SpeechRequest {
    SpeechRequest {
        text: text.to_owned(),
        voice: None,
        language: None,
        speed: 1.0,
        claim: Claim::own(Priority::Call),
    }
}

fn utterance() -> Utterance {
    Utterance::new(
        [100_i16; 16_000],
        Some("en-US".to_owned()),
        Claim::own(Priority::Call),
    )
}

/// What came before the end, and how it ended.
async fn collect<T>(
    stream: Result<impl Stream<Item = Result<T, ProviderError>> + Unpin, ProviderError>,
) -> (Vec<T>, Option<ProviderErrorKind>) {
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error.kind)),
    };
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => pieces.push(piece),
            Err(error) => {
                assert!(stream.next().await.is_none(), "a failure ends the stream");
                return (pieces, Some(error.kind));
            }
        }
    }
    (pieces, None)
}

fn samples(pieces: &[Pcm]) -> usize {
    pieces.iter().map(|piece| piece.samples.len()).sum()
}

/// What a chat script gives: the text, the failure, and how often the upstream was asked.
async fn chat(script: Script) -> (String, Option<ProviderErrorKind>, usize) {
    let (upstream, providers) = upstream_with(limit_with(script.fault.as_ref())).await;
    upstream.set_default(Api::Chat, script);
    let (pieces, failure) = collect(providers.chat.text(&ask()).await).await;
    (pieces.concat(), failure, upstream.requests(Api::Chat).len())
}

#[tokio::test]
async fn chat_faults() {
    use ProviderErrorKind::{Cut, Empty, Failed, Malformed, RateLimited, Rejected, Timeout};
    let all = "This is the scripted answer. It has two sentences.";
    let cases = [
        (
            Fault::RateLimited { retry_after: None },
            "",
            Some(RateLimited),
            2,
        ),
        (
            Fault::RateLimited {
                retry_after: Some(60),
            },
            "",
            Some(RateLimited),
            1,
        ),
        (Fault::Status(500), "", Some(Failed), 2),
        (Fault::Status(404), "", Some(Rejected), 1),
        (Fault::Status(307), "", Some(Rejected), 1),
        (Fault::ErrorFrame { after: 0 }, "", Some(Failed), 2),
        (Fault::ErrorFrame { after: 2 }, "This is ", Some(Failed), 1),
        (Fault::Stall { after: 0 }, "", Some(Timeout), 2),
        (Fault::Stall { after: 2 }, "This is ", Some(Timeout), 1),
        (Fault::Cut { after: 0 }, "", Some(Cut), 2),
        (Fault::Cut { after: 2 }, "This is ", Some(Cut), 1),
        (Fault::Unfinished { after: 2 }, "This is ", Some(Cut), 1),
        (Fault::Malformed { after: 0 }, "", Some(Malformed), 2),
        (
            Fault::Malformed { after: 2 },
            "This is ",
            Some(Malformed),
            1,
        ),
        (
            Fault::Huge {
                bytes: 5 * 1024 * 1024,
            },
            "",
            Some(Malformed),
            2,
        ),
        (Fault::Empty, "", Some(Empty), 2),
        (Fault::KeepAlives, all, None, 1),
        (Fault::Drip, all, None, 1),
    ];
    for (fault, text, failure, asked) in cases {
        let seen = chat(Script::fault(fault.clone())).await;
        assert_eq!(seen, (text.to_owned(), failure, asked), "{fault:?}");
    }
}

#[tokio::test]
async fn thoughts_alone_are_an_empty_answer() {
    let thoughts = Script::text("<think>Hm, who is it?</think>");
    let empty = (String::new(), Some(ProviderErrorKind::Empty), 2);
    assert_eq!(chat(thoughts).await, empty);
}

#[tokio::test]
async fn chat_text_arrives_whole() {
    let grown = "x".repeat(300 * 1024);
    let text = "Grüße, 你好, 🙂 and “more”.";
    assert_eq!(chat(Script::text(text)).await, (text.to_owned(), None, 1));
    let mut dripped = Script::fault(Fault::Drip);
    dripped.text = text.to_owned();
    assert_eq!(chat(dripped).await, (text.to_owned(), None, 1));
    let huge = Script::fault(Fault::Huge { bytes: grown.len() });
    assert_eq!(chat(huge).await, (grown, None, 1));
    // Each pause is within the patience, together they are beyond it.
    let counted = "one two three four five six";
    let slow = Script::text(counted).delayed(limit() / 5, limit() / 5);
    assert_eq!(chat(slow).await, (counted.to_owned(), None, 1));
    let too_slow = Script::text("one two").delayed(limit() * 2, Duration::ZERO);
    assert_eq!(chat(too_slow).await.1, Some(ProviderErrorKind::Timeout));
}

#[tokio::test]
async fn a_request_says_who_asks_what() {
    let (upstream, providers) = upstream().await;
    collect(providers.chat.text(&ask()).await).await;
    let request = &upstream.requests(Api::Chat)[0];
    assert_eq!(
        request.authorization.as_deref(),
        Some("Bearer upstream-key")
    );
    assert_eq!(request.body["model"], "scripted-chat");
    assert_eq!(request.body["stream"], true);
    assert_eq!(request.body["messages"][1]["content"], "Hello");
    providers.transcriber.transcribe(utterance()).await.unwrap();
    let request = &upstream.requests(Api::Transcription)[0];
    assert_eq!(request.body["file_begins"], "RIFF");
    assert_eq!(request.body["file_bytes"], 32_044);
    assert_eq!(request.body["language"], "en");
    assert_eq!(request.body["model"], "scripted-transcriber");
    collect(providers.synthesizer.speak(say("Hello.")).await).await;
    let request = &upstream.requests(Api::Speech)[0];
    assert_eq!(request.body["response_format"], "pcm");
    assert_eq!(request.body["input"], "Hello.");
    assert!(request.body.get("speed").is_none());
}

#[tokio::test]
async fn the_retry_helps() {
    let (upstream, providers) = upstream().await;
    upstream.script(Api::Chat, Script::fault(Fault::Cut { after: 0 }));
    upstream.script(Api::Transcription, Script::fault(Fault::Status(503)));
    upstream.script(
        Api::Speech,
        Script::fault(Fault::RateLimited {
            retry_after: Some(0),
        }),
    );
    upstream.set_default(Api::Transcription, Script::text("go forward"));
    let (text, failure) = collect(providers.chat.text(&ask()).await).await;
    assert!(failure.is_none() && text.concat().starts_with("This is"));
    let words = providers.transcriber.transcribe(utterance()).await.unwrap();
    assert_eq!(words, "go forward");
    let (speech, failure) = collect(providers.synthesizer.speak(say("Hello.")).await).await;
    assert!(failure.is_none() && samples(&speech) > 0);
    for api in [Api::Chat, Api::Transcription, Api::Speech] {
        assert_eq!(upstream.requests(api).len(), 2, "{api:?}");
    }
}

#[tokio::test]
async fn the_retry_waits_as_asked_and_within_the_patience() {
    let (upstream, providers) = upstream().await;
    upstream.set_default(
        Api::Chat,
        Script::fault(Fault::RateLimited {
            retry_after: Some(30),
        }),
    );
    let began = Instant::now();
    let Err(error) = providers.chat.text(&ask()).await else {
        panic!("an answer");
    };
    assert_eq!(error.retry_after, Some(Duration::from_secs(30)));
    assert!(
        began.elapsed() < limit() / 2,
        "nobody waits for what comes too late"
    );
    // A slow first failure leaves the retry only the rest of the patience.
    let late = Script::fault(Fault::Status(500)).delayed(limit() * 2 / 3, Duration::ZERO);
    upstream.set_default(Api::Chat, late);
    let began = Instant::now();
    let kind = providers
        .chat
        .text(&ask())
        .await
        .err()
        .map(|error| error.kind);
    assert_eq!(kind, Some(ProviderErrorKind::Timeout));
    assert!(began.elapsed() < limit() * 3 / 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_stalled_request_is_overtaken_by_a_second_one() {
    let (upstream, providers) = upstream().await;
    for api in [Api::Chat, Api::Transcription, Api::Speech] {
        upstream.script(api, Script::fault(Fault::Stall { after: 0 }));
    }
    upstream.set_default(Api::Transcription, Script::text("go forward"));
    let began = Instant::now();
    let ask = ask();
    let (chat, words, speech) = tokio::join!(
        providers.chat.text(&ask),
        providers.transcriber.transcribe(utterance()),
        providers.synthesizer.speak(say("Hello.")),
    );
    let took = began.elapsed();
    assert!((limit() / 2..limit()).contains(&took), "{took:?}");
    assert_eq!(words.unwrap(), "go forward");
    let (text, failure) = collect(chat).await;
    assert!(failure.is_none() && text.concat().starts_with("This is"));
    let (speech, failure) = collect(speech).await;
    assert!(failure.is_none() && samples(&speech) > 0);
    for api in [Api::Chat, Api::Transcription, Api::Speech] {
        assert_eq!(upstream.requests(api).len(), 2, "{api:?}");
        let (end, _) = upstream.ended(api, 0, limit()).await.unwrap();
        assert_eq!(
            end,
            End::Disconnected,
            "{api:?}: the one that was overtaken"
        );
    }
}

#[tokio::test]
async fn a_slow_answer_counts_though_a_second_one_was_asked_for() {
    let (upstream, providers) = upstream().await;
    let slow = Script::text("one two").delayed(limit() * 3 / 4, Duration::ZERO);
    upstream.script(Api::Chat, slow);
    upstream.set_default(Api::Chat, Script::fault(Fault::Status(500)));
    let (text, failure) = collect(providers.chat.text(&ask()).await).await;
    assert_eq!((text.concat().as_str(), failure), ("one two", None));
    assert_eq!(upstream.requests(Api::Chat).len(), 2);
}

#[tokio::test]
async fn transcription_faults() {
    use ProviderErrorKind::{Cut, Failed, Malformed, RateLimited, Rejected, Timeout};
    let cases = [
        (
            Fault::RateLimited { retry_after: None },
            Err(RateLimited),
            2,
        ),
        (Fault::Status(500), Err(Failed), 2),
        (Fault::Status(400), Err(Rejected), 1),
        (Fault::ErrorFrame { after: 0 }, Err(Malformed), 2),
        (Fault::Malformed { after: 0 }, Err(Malformed), 2),
        (
            Fault::Huge {
                bytes: 2 * 1024 * 1024,
            },
            Err(Malformed),
            2,
        ),
        (Fault::Stall { after: 0 }, Err(Timeout), 2),
        (Fault::Stall { after: 1 }, Err(Timeout), 2),
        (Fault::Cut { after: 1 }, Err(Cut), 2),
        (Fault::Empty, Ok(""), 1),
        (Fault::Drip, Ok("zehn Grüße"), 1),
    ];
    for (fault, expected, asked) in cases {
        let (upstream, providers) = upstream_with(limit_with(Some(&fault))).await;
        let mut script = Script::fault(fault.clone());
        script.text = "zehn Grüße".to_owned();
        upstream.set_default(Api::Transcription, script);
        let seen = providers.transcriber.transcribe(utterance()).await;
        let seen = seen.map_err(|error| error.kind);
        assert_eq!(seen, expected.map(str::to_owned), "{fault:?}");
        assert_eq!(
            upstream.requests(Api::Transcription).len(),
            asked,
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn speech_faults() {
    use ProviderErrorKind::{Cut, Empty, Failed, Malformed, RateLimited, Timeout};
    let tenth = 2_400;
    // Ten characters: six tenths of a second.
    let cases = [
        (Script::default(), 6 * tenth, None, 1),
        (Script::default().with_wav(), 6 * tenth, None, 1),
        (Script::fault(Fault::Drip), 6 * tenth, None, 1),
        (
            Script::fault(Fault::RateLimited { retry_after: None }),
            0,
            Some(RateLimited),
            2,
        ),
        (Script::fault(Fault::Status(502)), 0, Some(Failed), 2),
        (
            Script::fault(Fault::Malformed { after: 0 }),
            0,
            Some(Malformed),
            2,
        ),
        (Script::fault(Fault::Empty), 0, Some(Empty), 2),
        (
            Script::fault(Fault::Stall { after: 0 }),
            0,
            Some(Timeout),
            2,
        ),
        (
            Script::fault(Fault::Stall { after: 2 }),
            2 * tenth + 1,
            Some(Timeout),
            1,
        ),
        (
            Script::fault(Fault::Cut { after: 2 }),
            2 * tenth + 1,
            Some(Cut),
            1,
        ),
    ];
    for (script, count, failure, asked) in cases {
        let (upstream, providers) = upstream().await;
        upstream.set_default(Api::Speech, script.clone());
        let (pieces, seen) = collect(providers.synthesizer.speak(say("Ten signs.")).await).await;
        assert_eq!((samples(&pieces), seen), (count, failure), "{script:?}");
        assert!(pieces.iter().all(|piece| piece.sample_rate_hz == 24_000));
        assert_eq!(upstream.requests(Api::Speech).len(), asked, "{script:?}");
    }
}

#[tokio::test]
async fn what_is_dropped_is_cancelled_at_once() {
    // No piece comes that it could be noticed by.
    let begun = || Script::fault(Fault::Stall { after: 2 });
    let (upstream, providers) = upstream().await;
    upstream.set_default(Api::Chat, begun());
    upstream.set_default(Api::Speech, begun());
    upstream.set_default(Api::Transcription, Script::fault(Fault::Stall { after: 0 }));

    let mut text = providers.chat.text(&ask()).await.unwrap();
    text.next().await.unwrap().unwrap();
    let speech = providers
        .synthesizer
        .speak(say("A longer sentence to speak."))
        .await
        .unwrap();
    tokio::select! {
        heard = providers.transcriber.transcribe(utterance()) => panic!("{heard:?}"),
        () = eventually("it is asked", async || !upstream.requests(Api::Transcription).is_empty()) => {}
    }
    let dropped = Instant::now();
    drop((text, speech));
    for api in [Api::Chat, Api::Speech, Api::Transcription] {
        let (end, at) = upstream.ended(api, 0, limit()).await.unwrap();
        assert_eq!(end, End::Disconnected, "{api:?}");
        assert!(at < dropped + limit() / 2, "{api:?}");
    }
}

#[tokio::test]
async fn nobody_there() {
    let (upstream, providers) = upstream().await;
    providers.chat.check().await.unwrap();
    providers.transcriber.check().await.unwrap();
    providers.synthesizer.check().await.unwrap();
    drop(upstream);
    let kind = |error: ProviderError| error.kind;
    let absent = Err(ProviderErrorKind::Connect);
    eventually("the upstream is gone", async || {
        providers.chat.check().await.map_err(kind) == absent
    })
    .await;
    assert_eq!(
        providers
            .transcriber
            .transcribe(utterance())
            .await
            .map_err(kind),
        absent.map(|()| String::new())
    );
    let (_, failure) = collect(providers.synthesizer.speak(say("Hello.")).await).await;
    assert_eq!(failure, Some(ProviderErrorKind::Connect));
}
