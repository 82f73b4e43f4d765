//! Whole answers: one JSON object of the model becomes one of the client's API.

use serde_json::{Value, json};

use super::{
    super::{
        Ending, Head, ModelApi, Object, Request, Tally, UpstreamFailure, VisibleRetrieval, failure,
        fields::{entries, text_of},
    },
    chat_to_responses,
    finish::Finish,
    message::{Said, finish_of},
    response_out::ResponseOut,
    responses_to_responses,
};

/// A whole answer for the client, translated when the APIs differ, with the items of retrieval in front where the client
/// speaks responses. `now` is in seconds since 1970.
///
/// # Errors
/// When the answer is an error, or no answer at all.
pub(crate) fn whole(
    request: &Request,
    upstream: ModelApi,
    head: &Head,
    retrieval: Option<&VisibleRetrieval>,
    answer: Value,
    now: i64,
) -> Result<(Value, Tally), UpstreamFailure> {
    if let Some(failure) = failure(upstream, &answer) {
        return Err(failure);
    }
    let field = match upstream {
        ModelApi::Chat => "choices",
        ModelApi::Responses => "output",
    };
    let answer = match answer {
        Value::Object(answer) if answer.get(field).is_some_and(Value::is_array) => answer,
        _ => return Err(UpstreamFailure::coded("malformed_answer")),
    };
    let mut tally = Tally::default();
    tally.observe(upstream, &answer);
    let usage = tally.usage_for(request.api);
    let (value, ending) = match (request.api, upstream) {
        (ModelApi::Chat, ModelApi::Chat) => completion(head, answer, usage),
        (ModelApi::Chat, ModelApi::Responses) => completion_of_response(head, &answer, usage),
        (ModelApi::Responses, _) => {
            let mut out = ResponseOut::quiet(request, head);
            if let Some(retrieval) = retrieval {
                out.retrieval(retrieval);
            }
            let ending = if upstream == ModelApi::Chat {
                let mut reader = chat_to_responses::Reader::default();
                reader.event(&mut out, &answer);
                reader.end(&mut out, usage, now)
            } else {
                Some(responses_to_responses::end(&mut out, answer, usage, now))
            };
            (out.into_response(), ending)
        }
    };
    tally.ending = ending;
    match ending {
        Some(_) => Ok((value, tally)),
        None => Err(UpstreamFailure::coded("malformed_answer")),
    }
}

/// A chat completion passes; what strict clients need is filled in.
fn completion(head: &Head, mut answer: Object, usage: Option<Value>) -> (Value, Option<Ending>) {
    let mut ending = None;
    let choices = answer.get_mut("choices").and_then(Value::as_array_mut);
    for (position, choice) in choices.into_iter().flatten().enumerate() {
        let Value::Object(choice) = choice else {
            continue;
        };
        let finish = text_of(choice, "finish_reason").map_or(Finish::Stop, Finish::read);
        choice.insert("finish_reason".to_owned(), json!(finish.as_str()));
        choice.entry("index").or_insert_with(|| json!(position));
        choice.entry("logprobs").or_insert(Value::Null);
        if !choice.get("message").is_some_and(Value::is_object) {
            choice.insert("message".to_owned(), json!({}));
        }
        if let Some(Value::Object(message)) = choice.get_mut("message") {
            message.insert("role".to_owned(), json!("assistant"));
            for field in ["content", "refusal"] {
                message.entry(field).or_insert(Value::Null);
            }
        }
        if ending != Some(Ending::Incomplete) {
            ending = Some(finish.ending());
        }
    }
    answer.remove("error");
    put_head(&mut answer, head, usage);
    (Value::Object(answer), ending)
}

/// A response as a chat completion.
fn completion_of_response(
    head: &Head,
    response: &Object,
    usage: Option<Value>,
) -> (Value, Option<Ending>) {
    let mut said = Said::default();
    let output = entries(response, "output").iter();
    output
        .filter_map(Value::as_object)
        .for_each(|item| said.add(item));
    let finish = finish_of(response, !said.calls.is_empty());
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
