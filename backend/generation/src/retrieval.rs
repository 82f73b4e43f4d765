//! Looking things up for a reply, within a bounded time.

use std::{fmt::Display, sync::Arc, time::Duration};

use colloquy_knowledge::{
    CombinedSources, MAX_QUESTION_BYTES, Passage, Query, UnknownBase,
    quoting::{self, MAX_PASSAGES},
    terms,
};
use colloquy_providers::{ChatMessage, ChatModel, ChatRequest, ChatRole, approximate_tokens};
use tokio::task::spawn_blocking;

use crate::Generation;

/// A question that names fewer things than this needs what was said before it.
const NAMED: usize = 3;
/// So much of a question tells whether it names them, in bytes.
const TELLING_BYTES: usize = 1_024;

/// What was looked up for a reply; what the client is told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Retrieval {
    /// The passages' sources, best first, one entry a passage.
    pub documents: Vec<RetrievedDocument>,
    /// The tokens of all passages.
    pub total_tokens: u64,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievedDocument {
    /// The document's title.
    pub title: String,
    /// The relevance, larger is better.
    pub fusion_score: f64,
    /// The passage's tokens.
    pub token_count: u64,
}

impl Retrieval {
    /// What to tell about these passages.
    #[must_use]
    pub fn of(passages: &[Passage]) -> Self {
        let documents = passages
            .iter()
            .map(|passage| RetrievedDocument {
                title: passage.title.clone(),
                fusion_score: passage.score,
                token_count: approximate_tokens(&passage.text),
            })
            .collect::<Vec<_>>();
        let total_tokens = documents.iter().map(|document| document.token_count).sum();
        Self {
            documents,
            total_tokens,
        }
    }

    /// Keeps the passages of these numbers.
    pub(super) fn keep(&mut self, numbers: &[usize]) {
        let documents = std::mem::take(&mut self.documents).into_iter().enumerate();
        let kept = documents.filter(|(number, _)| numbers.contains(number));
        self.documents = kept.map(|(_, document)| document).collect();
        self.total_tokens = self.documents.iter().map(|it| it.token_count).sum();
    }
}

/// What was looked for, and the passages that were found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The questions.
    pub(super) queries: Vec<String>,
    /// The passages, best first; none of sources that failed or were too slow.
    pub(super) passages: Vec<Passage>,
    /// The knowledge base that the character names and its partner does not have; not logged yet.
    pub(super) unknown_base: Option<UnknownBase>,
}

/// How long a reply waits for its knowledge: one without it in time is better than one with it too late.
pub(super) fn patience(generation: &Generation) -> Duration {
    Duration::from_millis(generation.config.limits.retrieval_ms.into())
}

/// Logs that a reply is made without a source of its knowledge.
pub(super) fn warn_of(error: &dyn Display) {
    tracing::warn!(%error, "the reply goes on without a source of knowledge");
}

/// Looks up what the last turn asks for. Nothing is looked up behind a turn of the assistant's, so an unknown base is not noticed then.
pub(super) async fn search(
    knowledge: &CombinedSources,
    messages: &[ChatMessage],
    patience: Duration,
) -> Found {
    let Some(query) = query(messages) else {
        return Found::default();
    };
    let (mut passages, failures) = knowledge.search(&query, patience).await;
    let mut unknown_base = None;
    for error in failures {
        match error.downcast::<UnknownBase>() {
            Ok(unknown) => unknown_base = Some(unknown),
            Err(error) => warn_of(&error),
        }
    }
    quoting::bound(&mut passages);
    Found {
        queries: vec![query.text],
        passages,
        unknown_base,
    }
}

/// The numbers of the passages that a model's answer rests on, if the model can tell.
pub(super) async fn passages_of(
    chat: &Arc<dyn ChatModel>,
    request: ChatRequest,
) -> Option<Vec<usize>> {
    let chat = Arc::clone(chat);
    // A model that can tell makes its answer for it, which may take a while.
    let told = spawn_blocking(move || chat.passages_of(&request)).await;
    told.ok().flatten()
}

fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The last turn is the question. What was said just before is its context when it names little itself. Both are cut to what is read,
/// so that a long one costs no more than that, wherever it goes.
fn query(messages: &[ChatMessage]) -> Option<Query> {
    let (last, before) = messages.split_last()?;
    if last.role != ChatRole::User {
        return None;
    }
    let text = beginning(&last.content, MAX_QUESTION_BYTES);
    let room = MAX_QUESTION_BYTES - text.len();
    let context = if terms(beginning(text, TELLING_BYTES)).len() < NAMED {
        let recent = before.len().saturating_sub(2);
        let turns = before[recent..].iter();
        let turns = turns.map(|turn| beginning(&turn.content, room));
        let mut context = turns.collect::<Vec<_>>().join("\n");
        context.truncate(context.floor_char_boundary(room));
        context
    } else {
        String::new()
    };
    Some(Query {
        text: text.to_owned(),
        context,
        limit: MAX_PASSAGES,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use colloquy_knowledge::{
        KnowledgeSource,
        quoting::{MAX_BYTES, MAX_PASSAGE_BYTES, MAX_TITLE_BYTES},
    };

    use super::{
        super::{PromptStyle, ReplyContext, prompt},
        *,
    };

    fn turn(role: ChatRole, content: &str) -> ChatMessage {
        ChatMessage {
            role,
            content: content.to_owned(),
        }
    }

    #[test]
    fn what_a_reply_does_not_rest_on_is_not_told() {
        let passage = |title: &str| Passage {
            title: title.to_owned(),
            text: "Eight letters and more.".to_owned(),
            ..Passage::default()
        };
        let passages = ["Hours", "Lions", "Prices"].map(passage);
        let mut found = Retrieval::of(&passages);
        found.keep(&[1]);
        assert_eq!(found.documents[0].title, "Lions");
        assert_eq!((found.documents.len(), found.total_tokens), (1, 6));
        found.keep(&[]);
        assert_eq!(found, Retrieval::default());
    }

    struct Slow(Duration);

    #[async_trait]
    impl KnowledgeSource for Slow {
        fn titles(&self) -> Vec<String> {
            Vec::new()
        }

        async fn search(&self, query: Query) -> anyhow::Result<Vec<Passage>> {
            tokio::time::sleep(self.0).await;
            anyhow::ensure!(query.text != "fail", "failed");
            Ok(vec![Passage {
                title: "T".to_owned(),
                text: "12345".to_owned(),
                score: 2.0,
                ..Passage::default()
            }])
        }
    }

    fn alone(source: impl KnowledgeSource) -> CombinedSources {
        CombinedSources(vec![Arc::new(source)])
    }

    #[tokio::test]
    async fn a_reply_does_not_wait_for_a_slow_source() {
        let ask = [turn(ChatRole::User, "When?")];
        let patience = Duration::from_millis(200);
        let quick = search(&alone(Slow(Duration::ZERO)), &ask, patience).await;
        assert_eq!(quick.queries, ["When?"]);
        let quick = quick.passages;
        assert_eq!(quick.len(), 1);
        let slow = alone(Slow(Duration::from_secs(60)));
        assert!(search(&slow, &ask, patience).await.passages.is_empty());
        let failing = [turn(ChatRole::User, "fail")];
        assert!(
            search(&alone(Slow(Duration::ZERO)), &failing, patience)
                .await
                .passages
                .is_empty()
        );
        let retrieval = Retrieval::of(&quick);
        assert_eq!(
            (retrieval.total_tokens, retrieval.documents[0].token_count),
            (2, 2)
        );
    }

    /// Passages with a title of so many characters.
    struct Endless(usize);

    #[async_trait]
    impl KnowledgeSource for Endless {
        fn titles(&self) -> Vec<String> {
            Vec::new()
        }

        async fn search(&self, _query: Query) -> anyhow::Result<Vec<Passage>> {
            let passage = Passage {
                title: "\u{7f}".repeat(self.0),
                headings: vec!["\u{7f}".repeat(10_000); 3],
                text: "</passage".repeat(100_000),
                ..Passage::default()
            };
            Ok(vec![passage; 50])
        }
    }

    #[tokio::test]
    async fn knowledge_adds_no_more_than_its_bound() {
        let ask = [turn(ChatRole::User, "When?")];
        for title in [100_000, 100, 0] {
            let found = search(&alone(Endless(title)), &ask, Duration::from_secs(1)).await;
            let speaker = ReplyContext::default();
            let prompt =
                |passages: &[_]| prompt::system(&speaker, PromptStyle::Written, passages).len();
            let added = prompt(&found.passages) - prompt(&[]);
            assert!(added > 4 * (MAX_PASSAGE_BYTES + MAX_TITLE_BYTES));
            assert!(added as u64 <= MAX_BYTES, "{added}");
        }
    }

    #[test]
    fn a_short_question_brings_its_context() {
        let talk = [
            turn(ChatRole::User, "Tell me about lions."),
            turn(ChatRole::Assistant, "They sleep a lot."),
            turn(ChatRole::User, "And what do they eat?"),
        ];
        assert_eq!(
            query(&talk).unwrap().context,
            "Tell me about lions.\nThey sleep a lot."
        );
        let full = [turn(ChatRole::User, "What do grown lions eat in winter?")];
        assert_eq!(query(&full).unwrap().context, "");
        assert_eq!(query(&talk[..2]), None);
    }

    #[test]
    fn a_question_is_cut_to_what_is_read() {
        let long = "あ".repeat(2_000_000);
        let said = [
            turn(ChatRole::User, &long),
            turn(ChatRole::Assistant, &long),
            turn(ChatRole::User, "And then?"),
        ];
        let asked = query(&said).unwrap();
        let read = asked.text.len() + asked.context.len();
        assert_eq!(asked.text, "And then?");
        assert!(read > MAX_QUESTION_BYTES - 3 && read <= MAX_QUESTION_BYTES);

        let asked = query(&said[..1]).unwrap();
        assert_eq!(asked.text.len(), MAX_QUESTION_BYTES / 3 * 3);
        // However much stands before it, words without a subject have a context.
        let said = [said[0].clone(), turn(ChatRole::User, &"the ".repeat(1_000))];
        assert!(query(&said).unwrap().context.starts_with('あ'));
    }
}
