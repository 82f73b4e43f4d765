//! Whole answers: one JSON object of the model becomes one of the client's API.

use serde_json::{Value, json};

use super::{
    super::{
        Ending, Head, ModelApi, ModelEvent, Object, Request, Tally, UpstreamFailure,
        VisibleRetrieval,
        event::{ApiEvent, ChatChunk},
        fields::entries,
        stop::{Stops, logprobs_of},
    },
    chat_to_responses,
    finish::Finish,
    message::{MessageText, finish_of},
    response_out::ResponseOut,
    responses_to_responses,
};

/// A whole answer for the client, translated when the APIs differ, with the items of retrieval in front where the client
/// speaks responses. `now` is in seconds since 1970.
///
/// # Errors
/// When the answer is an error, or no answer at all.
pub fn whole(
    request: &Request,
    head: &Head,
    retrieval: Option<&VisibleRetrieval>,
    answer: ModelEvent,
    now: i64,
) -> Result<(Value, Tally), Box<UpstreamFailure>> {
    let answer = match answer.into_failure() {
        Ok(failure) => return Err(failure),
        Err(answer) => answer,
    };
    let malformed = || Box::new(UpstreamFailure::coded("malformed_answer"));
    if !answer.is_answer() {
        return Err(malformed());
    }
    let mut tally = Tally::default();
    tally.observe(&answer);
    let usage = tally.usage_for(request.api);
    let (value, ending) = match (request.api, answer.0) {
        (ModelApi::Chat, ApiEvent::Chat(answer)) => completion(head, answer, usage),
        (ModelApi::Chat, ApiEvent::Response(answer)) => {
            let stops = Stops::of(&request.body).unwrap_or_default();
            completion_of_response(head, &answer.fields, usage, &stops)
        }
        (ModelApi::Responses, answer) => {
            let mut out = ResponseOut::quiet(request, head);
            if let Some(retrieval) = retrieval {
                out.retrieval(retrieval);
            }
            let ending = match answer {
                ApiEvent::Chat(answer) => {
                    let mut reader = chat_to_responses::Reader::default();
                    reader.event(&mut out, &answer);
                    reader.end(&mut out, usage, now)
                }
                ApiEvent::Response(answer) => {
                    let response = answer.fields;
                    Some(responses_to_responses::end(&mut out, response, usage, now))
                }
            };
            (out.into_response(), ending)
        }
    };
    tally.ending = ending;
    match ending {
        Some(_) => Ok((value, tally)),
        None => Err(malformed()),
    }
}

/// A chat completion passes; what strict clients need is filled in.
fn completion(head: &Head, answer: ChatChunk, usage: Option<Value>) -> (Value, Option<Ending>) {
    let mut ending = None;
    let mut choices = Vec::with_capacity(answer.choices.len());
    for choice in answer.choices {
        let finish = choice
            .finish_reason
            .as_deref()
            .map_or(Finish::Stop, Finish::read);
        if ending != Some(Ending::Incomplete) {
            ending = Some(finish.ending());
        }
        let mut message = choice.said;
        message.insert("role".to_owned(), json!("assistant"));
        for field in ["content", "refusal"] {
            message.entry(field).or_insert(Value::Null);
        }
        let index = choice.index.unwrap_or(choice.position);
        let mut told = choice.rest;
        told.entry("logprobs").or_insert(Value::Null);
        told.insert("index".to_owned(), json!(index));
        told.insert("finish_reason".to_owned(), json!(finish.as_str()));
        told.insert("message".to_owned(), Value::Object(message));
        choices.push(Value::Object(told));
    }
    let mut answer = answer.rest;
    answer.insert("choices".to_owned(), Value::Array(choices));
    put_head(&mut answer, head, usage);
    (Value::Object(answer), ending)
}

/// A response as a chat completion.
fn completion_of_response(
    head: &Head,
    response: &Object,
    usage: Option<Value>,
    stops: &Stops,
) -> (Value, Option<Ending>) {
    let mut said = MessageText::default();
    let output = entries(response, "output").iter();
    output
        .filter_map(Value::as_object)
        .for_each(|item| said.add(item));
    let mut finish = finish_of(response, !said.calls.is_empty());
    if let Some(end) = stops.find(&said.content) {
        said.content.truncate(end);
        logprobs_of(&said.content, &mut said.logprobs);
        said.calls.clear();
        finish = Finish::Stop;
    }
    let text = |text: String| (!text.is_empty()).then_some(text);
    let mut message = Object::new();
    message.insert("role".to_owned(), json!("assistant"));
    // A message that calls tools or refuses has no content; one that says nothing has an empty one.
    let silent = said.calls.is_empty() && said.refusal.is_empty();
    let content = text(said.content).or_else(|| silent.then(String::new));
    message.insert("content".to_owned(), json!(content));
    message.insert("refusal".to_owned(), json!(text(said.refusal)));
    if let Some(thinking) = text(said.thinking) {
        message.insert("reasoning_content".to_owned(), json!(thinking));
    }
    for (field, values) in [
        ("annotations", said.annotations),
        ("tool_calls", said.calls),
    ] {
        if !values.is_empty() {
            message.insert(field.to_owned(), Value::Array(values));
        }
    }
    let logprobs = match said.logprobs.is_empty() {
        true => Value::Null,
        false => json!({"content": said.logprobs, "refusal": null}),
    };
    let mut answer = Object::new();
    answer.insert(
        "choices".to_owned(),
        json!([{
            "index": 0,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": finish.as_str(),
        }]),
    );
    if let Some(tier) = response.get("service_tier").filter(|tier| tier.is_string()) {
        answer.insert("service_tier".to_owned(), tier.clone());
    }
    put_head(&mut answer, head, usage);
    (Value::Object(answer), Some(finish.ending()))
}

fn put_head(answer: &mut Object, head: &Head, usage: Option<Value>) {
    answer.insert("id".to_owned(), json!(head.id));
    answer.insert("object".to_owned(), json!("chat.completion"));
    answer.insert("created".to_owned(), json!(head.created_at));
    answer.insert("model".to_owned(), json!(head.model));
    if let Some(usage) = usage {
        answer.insert("usage".to_owned(), usage);
    }
}
