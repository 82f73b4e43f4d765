//! What is answered to a search in a base.

use std::{collections::HashMap, time::Duration};

use colloquy_index::{
    fusion::Share,
    search::{ChunkText, Form, Hit, Passage, Place, Ranking},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::tuning::ConfigView;
use crate::retrieval::Prompt;

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchView {
    /// What held for this search.
    pub(super) config: ConfigView,
    /// The forms of the question.
    pub(super) queries: QueriesView,
    /// What each stream found for each form, best first.
    pub(super) streams: Vec<StreamView>,
    /// The best passages, best first.
    pub(super) combined_results: Vec<ResultView>,
    /// How many those are.
    pub(super) total_results: usize,
    /// What a character would be told of these.
    pub(super) prompt: PromptView,
    /// The languages whose words are stemmed.
    pub(super) bm25_languages: Vec<&'static str>,
    /// Those of this base's documents, in which the words of the question were stemmed.
    pub(super) query_languages: Vec<&'static str>,
    /// How long it took.
    pub(super) timings: TimingsView,
    /// Why there is no dense stream, where the base has vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) without_vectors: Option<&'static str>,
    /// Where it was looked; administrators alone are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) routing: Option<RoutingView>,
}

/// The forms of a question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueriesView {
    /// As it was asked.
    pub(super) original: String,
    /// With the name; null where that makes no difference.
    pub(super) replaced: Option<String>,
}

/// What one stream found for one form of the question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamView {
    /// `dense`, `sparse` or `bm25`.
    pub(super) retriever: &'static str,
    /// `original` or `replaced`.
    pub(super) query: &'static str,
    /// How long it took, in milliseconds.
    pub(super) time_ms: f64,
    /// Best first.
    pub(super) results: Vec<HitView>,
}

/// A passage of a stream.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HitView {
    /// From 1.
    pub(super) rank: usize,
    /// The stream's own score: a cosine, or that of BM25.
    pub(super) score: f32,
    /// The document.
    pub(super) document_id: String,
    /// The place of the chunk in it, from 0.
    pub(super) chunk_index: usize,
    /// The name of the document, for the first `stream_texts` passages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) document_name: Option<String>,
    /// The document's title and the headings above the passage, for the first `stream_texts` passages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<Vec<String>>,
    /// The passage, as Markdown, for the first `stream_texts` passages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// What a character would be told of the results of a search.
///
/// It is the part of the system prompt that generation makes of these passages. A character's own search has the default weights, uses what was said before
/// only if the last words name little, and may find passages of the documents that the character carries, too.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptView {
    /// The ranks of the results that it has: the best four that have to do with the question.
    pub(super) ranks: Vec<usize>,
    /// The text; empty if no result has to do with the question.
    pub(super) text: String,
}

/// A passage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultView {
    /// From 1.
    pub(super) rank: usize,
    /// The sum of the shares of all streams.
    pub(super) fusion_score: f64,
    /// The document.
    pub(super) document_id: String,
    /// Its name now; null when it was deleted a moment ago.
    pub(super) document_name: Option<String>,
    /// The document's title and the headings above the passage.
    pub(super) path: Vec<String>,
    /// The passage, as Markdown.
    pub(super) text: String,
    /// The place of the chunk in its document, from 0.
    pub(super) chunk_index: usize,
    /// What each stream gave it.
    pub(super) shares: Vec<ShareView>,
    /// Where else the same text was found.
    pub(super) duplicates: Vec<PlaceView>,
    /// The name of its content; administrators alone are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chunk_id: Option<String>,
}

/// What a stream gave a passage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShareView {
    /// `dense`, `sparse` or `bm25`.
    pub(super) retriever: &'static str,
    /// `original` or `replaced`.
    pub(super) query: &'static str,
    /// Its rank there, from 1.
    pub(super) rank: usize,
    /// The stream's own score.
    pub(super) score: f32,
    /// What of the fused score it is.
    pub(super) share: f64,
}

/// Where a chunk stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlaceView {
    /// The document.
    pub(super) document_id: String,
    /// The place of the chunk in it, from 0.
    pub(super) chunk_index: usize,
}

/// How long a search took, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimingsView {
    /// The vectors of the question; null where there are none.
    pub(super) embedding_ms: Option<f64>,
    /// All streams and what they become together.
    pub(super) search_ms: f64,
    /// All of it.
    pub(super) total_ms: f64,
}

/// Where it was looked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RoutingView {
    /// The base.
    pub(super) knowledge_base_id: String,
    /// The profile.
    pub(super) embedding_profile_id: Option<i64>,
}

/// Returns milliseconds, to the microsecond.
pub(super) fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn form(form: Form) -> &'static str {
    match form {
        Form::Original => "original",
        Form::Replaced => "replaced",
    }
}

/// What is known of the passages of a search.
#[derive(Debug)]
pub(super) struct Known {
    /// The names of documents.
    pub(super) names: HashMap<String, String>,
    /// The first passages of each stream.
    pub(super) texts: HashMap<Place, ChunkText>,
    /// How many of each stream those are.
    pub(super) stream_texts: usize,
}

impl StreamView {
    /// Describes a ranking.
    pub(super) fn of(ranking: Ranking, known: &Known) -> Self {
        let hits = ranking.hits.into_iter().enumerate();
        Self {
            retriever: ranking.stream.name(),
            query: form(ranking.form),
            time_ms: ms(ranking.took),
            results: hits.map(|(at, hit)| HitView::of(at, hit, known)).collect(),
        }
    }
}

impl HitView {
    /// Describes the passage at this place of a ranking, from 0.
    fn of(at: usize, hit: Hit, known: &Known) -> Self {
        let document_id = hit.place.document.to_string();
        let is_shown = at < known.stream_texts;
        let text = known.texts.get(&hit.place).filter(|_| is_shown);
        Self {
            rank: at + 1,
            score: hit.score,
            document_name: known.names.get(&document_id).filter(|_| is_shown).cloned(),
            document_id,
            chunk_index: hit.place.index,
            path: text.map(|text| text.path.clone()),
            text: text.map(|text| text.text.clone()),
        }
    }
}

impl From<Prompt> for PromptView {
    fn from(prompt: Prompt) -> Self {
        Self {
            ranks: prompt.places.into_iter().map(|place| place + 1).collect(),
            text: prompt.text,
        }
    }
}

impl From<Share> for ShareView {
    fn from(share: Share) -> Self {
        Self {
            retriever: share.stream.name(),
            query: form(share.form),
            rank: share.rank,
            score: share.score,
            share: share.share,
        }
    }
}

/// Describes a passage; its id is for administrators.
pub(super) fn result(
    rank: usize,
    passage: Passage,
    names: &HashMap<String, String>,
    is_admin: bool,
) -> ResultView {
    let document_id = passage.place.document.to_string();
    let duplicates = passage.duplicates.into_iter().map(|place| PlaceView {
        document_id: place.document.to_string(),
        chunk_index: place.index,
    });
    ResultView {
        rank,
        fusion_score: passage.score,
        document_name: names.get(&document_id).cloned(),
        document_id,
        path: passage.path,
        text: passage.text,
        chunk_index: passage.place.index,
        shares: passage.shares.into_iter().map(ShareView::from).collect(),
        duplicates: duplicates.collect(),
        chunk_id: is_admin.then(|| passage.id.to_string()),
    }
}
