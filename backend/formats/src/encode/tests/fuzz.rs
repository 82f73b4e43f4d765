//! The bytes of a model's stream, from the connection to the client.

use colloquy_fuzz::fuzz;
use serde_json::{Value, json};

use super::{
    Encoder, ModelApi, NOW, head,
    properties::{check_end, check_numbers},
    request, rich_chunks, rich_events,
};
use crate::{ErrorBody, ModelEvent, sse::Parser};

fn seeds() -> Vec<Vec<u8>> {
    let chunks = rich_chunks();
    let events = rich_events();
    let lines = |events: &[Value]| {
        let lines = events.iter().map(|event| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        });
        lines.collect::<String>()
    };
    let mut seeds = vec![
        format!(
            "\u{feff}: ping\r\n\r\n{}",
            lines(&chunks[..3]).replace('\n', "\r\n")
        ),
        "data: {\"error\": {\"message\": \"no\", \"code\": \"overloaded\"}}\n\n".to_owned(),
        "event: error\ndata: {\"type\": \"error\", \"code\": null, \"message\": \"no\"}\n\n"
            .to_owned(),
    ];
    // A change at the front of a long stream rarely shows, and takes long to read; short ones have its parts.
    let done = "data: [DONE]\n\n";
    seeds.extend(chunks.chunks(3).map(|chunks| lines(chunks) + done));
    seeds.extend(events.chunks(2).map(lines));
    seeds.into_iter().map(String::into_bytes).collect()
}

/// The events of these bytes as the server reads them, and whether the stream ended well. The pieces are as long as
/// the bytes themselves say.
fn events_of(upstream: ModelApi, bytes: &[u8]) -> (Vec<ModelEvent>, bool) {
    let mut parser = Parser::default();
    let mut events = Vec::new();
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let (piece, after) = rest.split_at((usize::from(*first) + 1).min(rest.len()));
        rest = after;
        for event in parser.push(piece).unwrap() {
            if event.data.trim() == "[DONE]" {
                return (events, true);
            }
            let value = serde_json::from_str::<Value>(&event.data).ok();
            match value.map(|value| ModelEvent::read(upstream, value)) {
                Some(Ok(event)) => events.push(event),
                Some(Err(_)) | None => return (events, false),
            }
        }
    }
    (events, false)
}

/// What holds for every stream. Which events the client got, in few words.
fn check(client: ModelApi, upstream: ModelApi, bytes: &[u8]) -> String {
    let (events, ended) = events_of(upstream, bytes);
    let request = request(client, &json!({}));
    let mut encoder = Encoder::new(&request, upstream, &head(client));
    let mut frames = encoder.begin();
    for event in events {
        frames.extend(encoder.event(NOW, event));
    }
    frames.extend(match ended {
        true => encoder.end(NOW),
        false => encoder.fail(&ErrorBody::server("upstream_cut", "cut")),
    });
    assert!(encoder.finished());
    match client {
        ModelApi::Responses => check_numbers(&frames),
        ModelApi::Chat => check_end(&frames),
    }
    let mut names = frames
        .iter()
        .map(|frame| {
            frame
                .event
                .as_deref()
                .unwrap_or(&frame.data[..frame.data.len().min(1)])
        })
        .collect::<Vec<_>>();
    names.dedup();
    names.join(" ")
}

#[test]
fn changed_streams_have_one_end_and_numbers_without_a_gap() {
    fuzz(&seeds(), |bytes| {
        let apis = [ModelApi::Chat, ModelApi::Responses];
        let pairs = apis
            .into_iter()
            .flat_map(|client| apis.map(|upstream| (client, upstream)));
        let outcomes = pairs.map(|(client, upstream)| check(client, upstream, bytes));
        outcomes.collect::<Vec<_>>().join(" | ")
    });
}
