//! The words of all spaces, on disk, and the passages that have those of a question.
//!
//! The terms of a space have its name before them, so that each space has its own lists: a question reads nothing of other spaces, and what is
//! rare is what is rare in its space.

use std::{cmp::Reverse, path::Path};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tantivy::{
    DocAddress, DocSet as _, Index, IndexSettings, Score, Searcher, TERMINATED, TantivyDocument,
    Term,
    columnar::Column,
    directory::MmapDirectory,
    query::{
        Bm25StatisticsProvider, BooleanQuery, BoostQuery, EnableScoring, Query, TermQuery, Weight,
    },
    schema::{
        Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
        Value as _,
    },
    store::Compressor,
    tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer},
};
use uuid::Uuid;

use super::dense::Partition;
use crate::{
    best::Best,
    indexing::compared,
    search::{Hit, Space},
};

/// Between the terms of a text; no term has it.
const SEPARATOR: char = '\u{1f}';
const TOKENIZER: &str = "terms";

/// The fields of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// Under which names it is removed.
    keys: Field,
    /// The number of its row.
    number: Field,
    /// All of it, to be read again.
    record: Field,
    /// The terms of its path, twice, and of its text.
    words: Field,
}

/// A name under which chunks are removed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    Base(Uuid),
    Space(Space),
    Document(Uuid, Uuid),
    DocumentIn(Space, Uuid),
}

impl Key {
    fn bytes(self) -> Vec<u8> {
        let space = |space: Space| {
            [
                space.base.as_bytes(),
                space.generation.to_be_bytes().as_slice(),
            ]
            .concat()
        };
        match self {
            Self::Base(base) => [b"b", base.as_bytes().as_slice()].concat(),
            Self::Space(of) => [b"s".to_vec(), space(of)].concat(),
            Self::Document(base, document) => {
                [b"d", base.as_bytes().as_slice(), document.as_bytes()].concat()
            }
            Self::DocumentIn(of, document) => {
                [b"g".to_vec(), space(of), document.as_bytes().to_vec()].concat()
            }
        }
    }
}

/// Opens the index in a folder, or makes one.
pub(super) fn open(folder: &Path) -> tantivy::Result<(Index, Fields)> {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    let fields = Fields {
        keys: schema.add_bytes_field("keys", tantivy::schema::INDEXED),
        number: schema.add_u64_field("number", NumericOptions::default().set_indexed().set_fast()),
        record: schema.add_bytes_field("record", tantivy::schema::STORED),
        words: schema.add_text_field(
            "words",
            TextOptions::default().set_indexing_options(indexing),
        ),
    };
    let settings = IndexSettings {
        docstore_compression: Compressor::Lz4,
        ..IndexSettings::default()
    };
    let index = Index::builder()
        .schema(schema.build())
        .settings(settings)
        .open_or_create(MmapDirectory::open(folder)?)?;
    index
        .tokenizers()
        .register(TOKENIZER, TextAnalyzer::builder(Terms::default()).build());
    Ok((index, fields))
}

impl Fields {
    /// A chunk as it is indexed.
    pub(super) fn document(
        self,
        space: Space,
        document: Uuid,
        number: u64,
        terms: &[String],
        record: &[u8],
    ) -> TantivyDocument {
        let mut indexed = TantivyDocument::new();
        let keys = [
            Key::Base(space.base),
            Key::Space(space),
            Key::Document(space.base, document),
            Key::DocumentIn(space, document),
        ];
        for key in keys {
            indexed.add_bytes(self.keys, &key.bytes());
        }
        indexed.add_u64(self.number, number);
        indexed.add_bytes(self.record, record);
        let mut words = prefix(space);
        for term in terms {
            words.push(SEPARATOR);
            words.push_str(term);
        }
        indexed.add_text(self.words, words);
        indexed
    }

    /// The chunks with this name.
    pub(super) fn key(self, key: Key) -> Term {
        Term::from_field_bytes(self.keys, &key.bytes())
    }

    /// What was kept of a chunk.
    pub(super) fn record(self, document: &TantivyDocument) -> Option<&[u8]> {
        document.get_first(self.record)?.as_bytes()
    }
}

fn prefix(space: Space) -> String {
    let mut prefix = URL_SAFE_NO_PAD.encode(space.base.as_bytes());
    URL_SAFE_NO_PAD.encode_string(space.generation.to_be_bytes(), &mut prefix);
    prefix
}

/// Some state of the index.
pub(super) struct Lexical {
    searcher: Searcher,
    fields: Fields,
    /// Of each segment, the numbers of its chunks' rows.
    numbers: Vec<Column<u64>>,
}

impl Lexical {
    pub(super) fn new(searcher: Searcher, fields: Fields) -> tantivy::Result<Self> {
        let numbers = searcher.segment_readers().iter();
        let numbers = numbers.map(|segment| segment.fast_fields().u64("number"));
        Ok(Self {
            numbers: numbers.collect::<Result<_, _>>()?,
            searcher,
            fields,
        })
    }

    /// The chunks of a space with the best scores for weighted terms, the best first.
    pub(super) fn best(
        &self,
        space: Space,
        partition: &Partition,
        terms: &[(String, f32)],
        most: usize,
    ) -> tantivy::Result<Vec<Hit>> {
        let statistics = self.statistics(partition);
        let prefix = prefix(space);
        let mut known = Vec::new();
        for (term, weight) in terms {
            let term = Term::from_field_text(self.fields.words, &format!("{prefix}{term}"));
            let chunks = statistics.doc_freq(&term)?;
            known.push((term, *weight, chunks));
        }
        let known = compared(known, statistics.chunks);
        if known.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let queries = known.into_iter().map(|(term, weight, _)| {
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            let query: Box<dyn Query> = Box::new(BoostQuery::new(Box::new(query), weight));
            query
        });
        let query = BooleanQuery::union(queries.collect());
        let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, &self.searcher);
        let found = self.first(query.weight(scoring)?.as_ref(), most)?;
        let mut hits = Vec::with_capacity(found.len());
        for (score, address) in found {
            let segment = usize::try_from(address.segment_ord).unwrap_or(usize::MAX);
            let numbers = self.numbers.get(segment);
            let number = numbers.and_then(|numbers| numbers.first(address.doc_id));
            if let Some(row) = number.and_then(|number| partition.row(number)) {
                hits.push(Hit {
                    id: row.id,
                    place: row.place,
                    score,
                });
            }
        }
        hits.sort_by(|a, b| {
            let places = (a.id, a.place).cmp(&(b.id, b.place));
            b.score.total_cmp(&a.score).then(places)
        });
        Ok(hits)
    }

    /// The chunks with the best scores. What has been found bounds what is still looked at, so the largest segment is the first.
    fn first(&self, weight: &dyn Weight, most: usize) -> tantivy::Result<Vec<(Score, DocAddress)>> {
        let mut segments: Vec<_> = (0..).zip(self.searcher.segment_readers()).collect();
        segments.sort_by_key(|(_, reader)| Reverse(reader.max_doc()));
        let mut best = Best::new(most);
        let mut floor = Score::MIN;
        for (segment, reader) in segments {
            let alive = reader.alive_bitset();
            weight.for_each_pruning(floor, reader, &mut |document, score| {
                if alive.is_none_or(|alive| alive.is_alive(document)) {
                    best.push(f64::from(score), DocAddress::new(segment, document));
                }
                if let Some(lowest) = best.floor() {
                    floor = narrowed(lowest);
                }
                floor
            })?;
        }
        let found = best.into_vec().into_iter();
        Ok(found
            .map(|(score, address)| (narrowed(score), address))
            .collect())
    }

    fn statistics(&self, partition: &Partition) -> Statistics<'_> {
        Statistics {
            searcher: &self.searcher,
            chunks: u64::try_from(partition.len()).unwrap_or(u64::MAX),
            terms: partition.terms(),
        }
    }

    /// In how many chunks of a space a term stands.
    pub(super) fn frequency(
        &self,
        space: Space,
        partition: &Partition,
        term: &str,
    ) -> tantivy::Result<u64> {
        let term = Term::from_field_text(self.fields.words, &format!("{}{term}", prefix(space)));
        self.statistics(partition).doc_freq(&term)
    }

    /// What was kept of the chunk whose row has this number; `None` when there is none.
    pub(super) fn kept(&self, number: u64) -> tantivy::Result<Option<Vec<u8>>> {
        let term = Term::from_field_u64(self.fields.number, number);
        for (segment, reader) in (0..).zip(self.searcher.segment_readers()) {
            let inverted = reader.inverted_index(self.fields.number)?;
            let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::Basic)?
            else {
                continue;
            };
            let mut id = postings.doc();
            while id != TERMINATED {
                if !reader.is_deleted(id) {
                    let kept = self.searcher.doc(DocAddress::new(segment, id))?;
                    return Ok(self.fields.record(&kept).map(<[u8]>::to_vec));
                }
                id = postings.advance();
            }
        }
        Ok(None)
    }
}

/// A score again that was widened before.
#[expect(clippy::cast_possible_truncation, reason = "it had 32 bits")]
fn narrowed(score: f64) -> Score {
    score as Score
}

/// How often terms stand in one space.
struct Statistics<'a> {
    searcher: &'a Searcher,
    chunks: u64,
    terms: u64,
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.terms.max(1))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.chunks.max(1))
    }

    /// Removed chunks count until their segment is merged, so there may seem to be more than all.
    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        Ok(self.searcher.doc_freq(term)?.min(self.chunks))
    }
}

/// Cuts a text of terms, the first of which is what stands before each of the others.
#[derive(Debug, Clone, Default)]
struct Terms {
    token: Token,
}

struct TermStream<'a> {
    prefix: &'a str,
    rest: std::str::Split<'a, char>,
    token: &'a mut Token,
}

impl Tokenizer for Terms {
    type TokenStream<'a> = TermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermStream<'a> {
        self.token.reset();
        let mut rest = text.split(SEPARATOR);
        TermStream {
            prefix: rest.next().unwrap_or_default(),
            rest,
            token: &mut self.token,
        }
    }
}

impl TokenStream for TermStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(term) = self.rest.next() else {
            return false;
        };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.text.clear();
        self.token.text.push_str(self.prefix);
        self.token.text.push_str(term);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
