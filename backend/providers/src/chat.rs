//! Models that answer conversations: what they are asked and what they answer, in the words of the public APIs.
//!
//! Requests and answers are the JSON of [`ModelApi`], so that whatever a client of the text interfaces sends reaches the
//! model, and the other way round. Calls want plain text: [`ChatModel::text`] makes it of the same answers.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use async_trait::async_trait;
use colloquy_formats::{
    ChatMessage, ChatRole, ModelApi, ModelEvent, ThoughtFilter, without_thought,
};
use colloquy_knowledge::Passage;
use futures_util::{
    StreamExt as _, future,
    stream::{self, BoxStream},
};
use serde_json::{Map, Value, json};

use super::{ProviderError, ProviderErrorKind};

/// A service that answers a conversation with text.
#[async_trait]
pub trait ChatModel: Send + Sync + 'static {
    /// The model's public name.
    fn name(&self) -> &str;

    /// Which requests it takes, and whose events it gives.
    fn api(&self) -> ModelApi;

    /// Whether it answers with plain text alone: it calls no tools, writes no JSON on demand, and reads texts only.
    fn is_plain_text(&self) -> bool {
        false
    }

    /// The most memory of this process that an answer to a request of so many bytes takes, besides the request; none for a model
    /// elsewhere.
    fn working_bytes(&self, _request_bytes: u64) -> u64 {
        0
    }

    /// Returns true if the model can tell which passages a reply rests on, by [`passages_of`](Self::passages_of).
    fn tells_passages(&self) -> bool {
        false
    }

    /// The numbers of the passages that the reply to a request rests on, where the model can tell.
    fn passages_of(&self, _request: &ChatRequest) -> Option<Vec<usize>> {
        None
    }

    /// The count of answers that begin within a thought. By default nothing is remembered.
    fn unopened_thoughts(&self) -> UnopenedThoughts {
        UnopenedThoughts::default()
    }

    /// Sends a request. It returns with the head of the answer; a stream ends with the answer, and an answer that was
    /// cut off ends with an error.
    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ProviderError>;

    /// Whether the service answers; for the deep health check.
    async fn check(&self) -> Result<(), ProviderError>;

    /// Starts a reply in plain text; the stream ends with the reply.
    async fn text(&self, request: &ChatRequest) -> Result<TextStream, ProviderError> {
        let api = self.api();
        let answer = self.ask(&request.for_model(api)).await?;
        let unopened = self.unopened_thoughts();
        Ok(text_of(self.name().to_owned(), answer, unopened))
    }
}

/// The latest answers of a model in a row that ended a thought without having begun it, as those of templates do that keep the beginning to
/// themselves.
///
/// The next answer of such a model waits for the end of its thought. It takes [`Self::USUAL`] answers in a row to be one, so that a visitor who
/// makes a model write such an end does not delay the answers of others.
#[derive(Debug, Clone, Default)]
pub struct UnopenedThoughts(Arc<AtomicU8>);

impl UnopenedThoughts {
    const USUAL: u8 = 3;

    fn are_usual(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::USUAL
    }

    /// Counts an answer that is complete.
    fn count(&self, ended_unopened: bool) {
        let counted = match ended_unopened {
            true => self.0.load(Ordering::Relaxed).saturating_add(1),
            false => 0,
        };
        self.0.store(counted, Ordering::Relaxed);
    }
}

/// Pieces of a reply. An empty one, which is never the first, retracts all that came before it: that was a thought.
pub type TextStream = BoxStream<'static, Result<String, ProviderError>>;

/// The events of an answer, as the model's API has them.
pub type EventStream = BoxStream<'static, Result<ModelEvent, ProviderError>>;

/// A request in the words of a model's API.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The body, with the model's own name; `stream` says whether events are wanted.
    pub body: Map<String, Value>,
    /// What the embedded model answers from.
    pub grounding: Option<Arc<Grounding>>,
    /// Whether it is for the model's own compaction of conversations. Only models that have responses get such.
    pub compacts: bool,
}

impl ModelRequest {
    /// Whether events are wanted.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.body.get("stream").and_then(Value::as_bool) == Some(true)
    }
}

/// An answer in the words of a model's API.
pub enum ModelAnswer {
    /// All of it. A model may give it although events were wanted.
    Whole(ModelEvent),
    /// One event after the other. Dropping the stream cancels the model.
    Events(EventStream),
}

/// What is known about a conversation besides its words. Models elsewhere find it in the system prompt; the embedded one
/// reads no prompts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grounding {
    /// The character's name.
    pub name: Option<String>,
    /// The character's personality.
    pub personality: String,
    /// The titles of what can be looked up, where they are known without a search.
    pub topics: Vec<String>,
    /// Passages that the reply may rest on.
    pub passages: Vec<Passage>,
    /// The language of the reply, as a BCP 47 tag, when the character names one.
    pub language: Option<String>,
}

/// A conversation that wants a reply in plain text.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: String,
    /// The turns so far, oldest first.
    pub messages: Vec<ChatMessage>,
    /// What else is known about it.
    pub grounding: Arc<Grounding>,
}

impl ChatRequest {
    /// The request for a model of this API, streamed.
    #[must_use]
    pub fn for_model(&self, api: ModelApi) -> ModelRequest {
        let (system, turns) = self.opened();
        let turns = turns
            .iter()
            .map(|turn| json!({"role": turn.role.as_str(), "content": turn.content}));
        let mut body = Map::new();
        match api {
            ModelApi::Chat => {
                let system =
                    (!system.is_empty()).then(|| json!({"role": "system", "content": system}));
                body.insert(
                    "messages".to_owned(),
                    system.into_iter().chain(turns).collect(),
                );
            }
            ModelApi::Responses => {
                if !system.is_empty() {
                    body.insert("instructions".to_owned(), system.into());
                }
                body.insert("input".to_owned(), turns.collect());
                // A call's words are kept by the call alone.
                body.insert("store".to_owned(), false.into());
            }
        }
        body.insert("stream".to_owned(), true.into());
        ModelRequest {
            body,
            grounding: Some(Arc::clone(&self.grounding)),
            compacts: false,
        }
    }

    /// The system prompt and the turns from the visitor's first one on. Many templates of open models refuse a
    /// conversation that does not begin with the user; so what the character said before is told in the prompt.
    fn opened(&self) -> (String, &[ChatMessage]) {
        let began = self
            .messages
            .iter()
            .position(|message| message.role == ChatRole::User)
            .unwrap_or(0);
        let (opening, turns) = self.messages.split_at(began);
        let mut system = self.system.clone();
        for ChatMessage { content, .. } in opening {
            if !system.is_empty() {
                system.push_str("\n\n");
            }
            system.push_str("You have already opened the conversation by saying: ");
            system.push_str(content);
        }
        (system, turns)
    }
}

/// The text of an answer, without the thoughts before it. A thought that is known as one only at its end is retracted by an empty piece.
fn text_of(provider: String, answer: ModelAnswer, unopened: UnopenedThoughts) -> TextStream {
    let malformed =
        move |what: &str| ProviderError::new(&provider, ProviderErrorKind::Malformed, what);
    match answer {
        ModelAnswer::Whole(answer) => match answer.text().map(without_thought) {
            Some(text) if text.is_empty() => stream::empty().boxed(),
            Some(text) => stream::iter([Ok(text)]).boxed(),
            None => stream::iter([Err(malformed("an answer without text"))]).boxed(),
        },
        ModelAnswer::Events(events) => {
            let pieces = events.filter_map(|event| {
                let piece = match event {
                    Ok(event) => event.text().map(Ok),
                    Err(error) => Some(Err(error)),
                };
                future::ready(piece)
            });
            let filter = match unopened.are_usual() {
                true => ThoughtFilter::within_thought(),
                false => ThoughtFilter::default(),
            };
            let spoken = stream::unfold(
                (pieces.boxed(), Some(filter), unopened),
                |(mut pieces, filter, unopened)| async move {
                    let mut filter = filter?;
                    let (said, filter) = match pieces.next().await {
                        Some(Ok(piece)) => {
                            let text = filter.push(piece);
                            let retraction = filter.take_retraction().then(String::new);
                            let text = Some(text).filter(|text| !text.is_empty());
                            ([retraction.map(Ok), text.map(Ok)], Some(filter))
                        }
                        Some(Err(error)) => ([Some(Err(error)), None], Some(filter)),
                        None => {
                            unopened.count(filter.ended_unopened());
                            let text = Some(filter.finish()).filter(|text| !text.is_empty());
                            ([text.map(Ok), None], None)
                        }
                    };
                    Some((said, (pieces, filter, unopened)))
                },
            );
            let said = spoken.map(|said| stream::iter(said.into_iter().flatten()));
            said.flatten().boxed()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(api: ModelApi, event: Value) -> ModelEvent {
        ModelEvent::read(api, event).unwrap()
    }

    fn message(role: ChatRole, content: &str) -> ChatMessage {
        ChatMessage {
            role,
            content: content.to_owned(),
        }
    }

    fn greeted() -> ChatRequest {
        ChatRequest {
            system: "You are Max.".to_owned(),
            messages: vec![
                message(ChatRole::Assistant, "Hello there."),
                message(ChatRole::User, "Hi."),
                message(ChatRole::Assistant, "How can I help?"),
                message(ChatRole::User, "Tell me the time."),
            ],
            ..ChatRequest::default()
        }
    }

    #[test]
    fn a_greeting_stands_in_the_system_prompt() {
        let request = greeted().for_model(ModelApi::Chat);
        let messages = request.body["messages"].as_array().unwrap();
        let roles = messages.iter().map(|m| m["role"].as_str().unwrap());
        assert_eq!(
            roles.collect::<Vec<_>>(),
            ["system", "user", "assistant", "user"]
        );
        let system = messages[0]["content"].as_str().unwrap();
        assert!(system.ends_with("Hello there."));
        let request = greeted().for_model(ModelApi::Responses);
        assert_eq!(request.body["instructions"], *system);
        assert_eq!(request.body["input"].as_array().unwrap().len(), 3);
        assert!(request.streams());
    }

    #[tokio::test]
    async fn thoughts_before_the_answer_are_no_text() {
        let pieces = ["", " <th", "ink>Hm", ". </thi", "nk>\n", "\nHi ", "you", ""];
        let delta = |piece| json!({"choices": [{"delta": {"content": piece}}]});
        let text = async |pieces: Vec<Value>| {
            let events = pieces
                .into_iter()
                .map(|event| Ok(read(ModelApi::Chat, event)));
            let events = ModelAnswer::Events(stream::iter(events).boxed());
            let pieces =
                text_of(String::new(), events, UnopenedThoughts::default()).map(Result::unwrap);
            pieces.collect::<Vec<_>>().await
        };
        assert_eq!(text(pieces.map(delta).to_vec()).await, ["Hi ", "you"]);
        // What was all thought is empty, which counts as no answer.
        assert!(
            text(pieces[..4].iter().copied().map(delta).collect())
                .await
                .is_empty()
        );
        let whole =
            json!({"choices": [{"message": {"content": "<think>Hm.</think>\n{\"a\": 1}"}}]});
        let whole = ModelAnswer::Whole(read(ModelApi::Chat, whole));
        let mut whole = text_of(String::new(), whole, UnopenedThoughts::default());
        assert_eq!(whole.next().await.unwrap().unwrap(), "{\"a\": 1}");
    }

    #[tokio::test]
    async fn a_thought_without_its_beginning_is_retracted_until_it_is_usual() {
        let unopened = UnopenedThoughts::default();
        let text = async |pieces: Vec<&str>| {
            let events = pieces
                .into_iter()
                .map(|piece| json!({"choices": [{"delta": {"content": piece}}]}))
                .map(|event| Ok(read(ModelApi::Chat, event)));
            let events = events.collect::<Vec<_>>();
            let events = ModelAnswer::Events(stream::iter(events).boxed());
            let pieces = text_of(String::new(), events, unopened.clone());
            pieces.map(Result::unwrap).collect::<Vec<_>>().await
        };
        let thinking = ["A plan. ", "More", "</think>", "\nHi ", "you"];
        let retracted = ["A plan. ", "More", "", "Hi ", "you"];
        for _ in 0..2 {
            for _ in 0..UnopenedThoughts::USUAL - 1 {
                assert_eq!(text(thinking.to_vec()).await, retracted);
            }
            // One that is not so, and all begins anew.
            assert_eq!(text(vec!["Hi ", "you"]).await, ["Hi ", "you"]);
        }
        for _ in 0..UnopenedThoughts::USUAL {
            assert_eq!(text(thinking.to_vec()).await, retracted);
        }
        assert_eq!(text(thinking.to_vec()).await, ["Hi ", "you"]);
        assert_eq!(text(vec!["Hi ", "you"]).await, ["Hi you"]);
        assert_eq!(text(vec!["Hi ", "you"]).await, ["Hi ", "you"]);
        assert_eq!(text(thinking.to_vec()).await, retracted);
    }

    #[tokio::test]
    async fn the_text_of_both_apis() {
        let chat = vec![
            json!({"choices": [{"delta": {"role": "assistant", "content": ""}}]}),
            json!({"choices": [{"delta": {"content": "Hi "}}]}),
            json!({"choices": [{"delta": {"content": "you"}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"total_tokens": 3}}),
        ];
        let responses = vec![
            json!({"type": "response.created"}),
            json!({"type": "response.reasoning_text.delta", "delta": "hm"}),
            json!({"type": "response.output_text.delta", "delta": "Hi "}),
            json!({"type": "response.output_text.delta", "delta": "you"}),
            json!({"type": "response.completed"}),
        ];
        for (api, events) in [(ModelApi::Chat, chat), (ModelApi::Responses, responses)] {
            let events = events.into_iter().map(move |event| Ok(read(api, event)));
            let events = ModelAnswer::Events(stream::iter(events).boxed());
            let pieces = text_of(String::new(), events, UnopenedThoughts::default());
            let pieces = pieces.map(Result::unwrap).collect::<Vec<_>>().await;
            assert_eq!(pieces, ["Hi ", "you"]);
        }
        let whole = json!({"output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]});
        let whole = ModelAnswer::Whole(read(ModelApi::Responses, whole));
        let mut pieces = text_of(String::new(), whole, UnopenedThoughts::default());
        assert_eq!(pieces.next().await.unwrap().unwrap(), "Hi");
        let nothing = ModelAnswer::Whole(read(ModelApi::Chat, json!({})));
        let mut nothing = text_of(String::new(), nothing, UnopenedThoughts::default());
        assert_eq!(
            nothing.next().await.unwrap().unwrap_err().kind,
            ProviderErrorKind::Malformed
        );
    }
}
