//! Traces: what a collector gets of a request, of its fallback and of a job, and that nothing said is in it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use harness::{
    TestDatabase,
    app::send,
    elsewhere, eventually,
    process::Server,
    upstream::{Api, Fault, INPUT_TOKENS, Script, Upstream},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value as Attribute},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::text::CHAT;

/// What is said; a trace has none of it.
const SAID: &str = "zanzibar";
const ANSWERED: &str = "timbuktu";

/// A collector of traces that takes OTLP over HTTP.
#[derive(Clone, Default)]
struct Collector {
    bodies: Arc<Mutex<Vec<Bytes>>>,
}

impl Collector {
    /// Starts it, and gives its address.
    #[expect(
        clippy::disallowed_methods,
        reason = "it runs until the test ends, and has no server whose tasks these would be"
    )]
    async fn start() -> (Self, String) {
        let collector = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let take = async |State(collector): State<Self>, headers: HeaderMap, body: Bytes| {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            collector.bodies.lock().unwrap().push(body);
        };
        let router = Router::new().route("/v1/traces", post(take));
        let router = router.with_state(collector.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (collector, address)
    }

    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let requests = bodies
            .iter()
            .map(|body| ExportTraceServiceRequest::decode(body.as_ref()).unwrap());
        let resources = requests.flat_map(|request| request.resource_spans);
        let scopes = resources.flat_map(|resource| {
            let service = attributes(&resource.resource.unwrap().attributes);
            assert_eq!(service["service.name"], "colloquy");
            resource.scope_spans
        });
        scopes.flat_map(|scope| scope.spans).collect()
    }

    fn says(&self, word: &str) -> bool {
        let bodies = self.bodies.lock().unwrap();
        let mut windows = bodies.iter().flat_map(|body| body.windows(word.len()));
        windows.any(|window| window == word.as_bytes())
    }
}

fn attributes(given: &[KeyValue]) -> HashMap<String, Value> {
    let plain = |value: &Attribute| match value {
        Attribute::StringValue(text) => json!(text),
        Attribute::IntValue(number) => json!(number),
        Attribute::DoubleValue(number) => json!(number),
        Attribute::ArrayValue(values) => json!(values.values.len()),
        other => panic!("{other:?}"),
    };
    let attribute = |attribute: &KeyValue| {
        let value = attribute.value.as_ref().unwrap().value.as_ref().unwrap();
        (attribute.key.clone(), plain(value))
    };
    given.iter().map(attribute).collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_learns_of_requests_models_and_jobs_and_nothing_of_what_was_said() {
    let (collector, address) = Collector::start().await;
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Chat, Script::text(ANSWERED));
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| {
        upstream.offer(config);
        config.chat.model = Some("scripted-chat".to_owned());
        config.traces.endpoint = Some(address.parse().unwrap());
    });
    let server = server.await;
    let acme = server.partner("acme").await;
    let quota = server
        .quota(&acme, &json!({"name": "q", "kinds": ["text"]}))
        .await;

    let trace = "0af7651916cd43dd8448eb211c80319c";
    let ask = |body: Value| {
        let request = server.request(&quota.key, Method::POST, CHAT).json(&body);
        request.header("traceparent", format!("00-{trace}-b7ad6b7169203331-01"))
    };
    let messages = json!([{"role": "user", "content": SAID}]);
    let streamed = json!({"model": "scripted-chat", "messages": messages, "stream": true, "temperature": 0.5, "max_tokens": 50});
    let answer = send(ask(streamed)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text.contains(ANSWERED));
    upstream.set_default(Api::Responses, Script::text(ANSWERED));
    let streamed = json!({"model": "scripted-responses", "messages": messages, "stream": true});
    let answer = send(ask(streamed)).await;
    assert!(answer.text.contains(ANSWERED));
    upstream.script(Api::Responses, Script::fault(Fault::Status(500)));
    let falling = json!({"model": "scripted-responses", "fallback_model": "scripted-chat", "messages": messages});
    send(ask(falling)).await.expect(200);

    // A client that goes away before there is an answer.
    upstream.script(Api::Chat, Script::fault(Fault::Stall { after: 0 }));
    let silent = json!({"model": "scripted-chat", "messages": messages, "stream": true});
    let asked = upstream.requests(Api::Chat).len();
    tokio::select! {
        answer = ask(silent).send() => panic!("{answer:?}"),
        () = eventually("the model is asked", async || upstream.requests(Api::Chat).len() > asked) => {}
    }

    let written = json!({"id": "m1", "type": "text", "text": SAID, "is_processed": false});
    let input = json!({"messages": [written], "character": {"personality": "You are Ada."}, "generate_audio": false});
    let question = server.request(&acme.key, Method::POST, "/v2/completions");
    let made = send(question.json(&json!({"input": input})))
        .await
        .expect(200);
    let path = made["id"].as_str().unwrap();
    elsewhere::eventually("it is answered", || async {
        server.get(&acme.key, path).await["state"] == "completed"
    })
    .await;
    server.terminate();
    assert!(server.ended().await.success());

    // The upstream was told of the trace.
    let told = &upstream.requests(Api::Chat)[0].traceparent;
    let told = told.as_ref().unwrap();
    assert!(told.starts_with(&format!("00-{trace}-")), "{told}");

    let spans = collector.spans();
    let status = "http.response.status_code";
    let (requests, left): (Vec<_>, Vec<_>) = named(&spans, &format!("POST {CHAT}"))
        .into_iter()
        .partition(|span| attributes(&span.attributes).contains_key(status));
    assert_eq!((requests.len(), left.len()), (3, 1));
    for request in &requests {
        assert_eq!(request.kind, SpanKind::Server as i32);
        assert_eq!(hex(&request.trace_id), trace);
        assert_eq!(hex(&request.parent_span_id), "b7ad6b7169203331");
        let known = attributes(&request.attributes);
        assert_eq!(known["http.route"], CHAT);
        assert_eq!(known[status], 200);
    }
    let chats = named(&spans, "chat scripted-chat");
    assert_eq!(chats.len(), 4);
    let notes = |span: &Span| {
        span.events
            .iter()
            .map(|event| event.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        chats
            .iter()
            .filter(|span| notes(span) == ["given up"])
            .count(),
        1
    );
    let of_stream = chats
        .iter()
        .find(|span| span.parent_span_id == requests[0].span_id);
    let of_stream = of_stream.unwrap();
    assert_eq!(of_stream.kind, SpanKind::Client as i32);
    assert!(of_stream.end_time_unix_nano <= requests[0].end_time_unix_nano);
    assert_eq!(of_stream.events[0].name, "first event");
    let known = attributes(&of_stream.attributes);
    assert_eq!(known["gen_ai.operation.name"], "chat");
    assert_eq!(known["gen_ai.request.model"], "scripted-chat");
    assert_eq!(known["gen_ai.request.temperature"], 0.5);
    assert_eq!(known["gen_ai.request.max_tokens"], 50);
    assert_eq!(known["gen_ai.usage.input_tokens"], INPUT_TOKENS);
    assert_eq!(known["gen_ai.response.finish_reasons"], 1);
    assert_eq!(known["server.address"], "127.0.0.1");

    let others = named(&spans, "chat scripted-responses");
    assert_eq!(others.len(), 2);
    let of_request = |request: &Span| {
        let mut spans = others.iter();
        let span = spans.find(|span| span.parent_span_id == request.span_id);
        *span.unwrap()
    };
    let known = attributes(&of_request(requests[1]).attributes);
    assert_eq!(known["gen_ai.usage.input_tokens"], INPUT_TOKENS);
    assert_eq!(known["gen_ai.response.finish_reasons"], 1);
    let failed = of_request(requests[2]);
    assert_eq!(attributes(&failed.attributes)["error.type"], "failed");
    assert_eq!(
        failed.status.as_ref().unwrap().code,
        StatusCode::Error as i32
    );

    let jobs = named(&spans, "job messaging.complete");
    assert_eq!(jobs.len(), 1);
    assert!(
        chats
            .iter()
            .any(|span| span.parent_span_id == jobs[0].span_id)
    );
    for word in [SAID, ANSWERED, "Ada", quota.key.as_str(), acme.key.as_str()] {
        assert!(!collector.says(word), "{word}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
