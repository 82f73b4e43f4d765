//! The documents that a character carries with it, searched in memory.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use colloquy_base::memory::MemoryHold;
use tokio::task::spawn_blocking;

use super::{
    Bm25, CharacterDocument, Concept, KnowledgeSource, Learned, Origin, Passage, Query,
    prose::{BlockKind, blocks},
    sentences, terms,
};

/// A passage ends with the sentence that makes it at least this long, in bytes.
const PASSAGE_BYTES: usize = 500;
/// A longer heading is not repeated above the further passages of its section, in bytes.
const MAX_HEADING_BYTES: usize = 200;
/// The most that is repeated in every passage, a heading and the names of columns, in bytes. The names come on top of a passage's own bytes, so that
/// all passages of a document are a few times its text however it is written.
const MAX_REPEATED_BYTES: usize = 1_000;
/// The most bytes of the headings above a passage.
const MAX_ABOVE_BYTES: usize = 400;
/// The most bytes that a document takes with its index, for each byte of its text. The text and its passages take 2 to 8, and what is counted
/// of a word in a passage takes 8 bytes. Most is taken by words that stand once: the table of words, just after it has grown, has 75 bytes for each, its text
/// 32 and its frequency 4. The shortest such words have four letters.
const WORDS_FACTOR: u64 = 40;
/// The same for characters of three bytes and more: where words are not parted by spaces, each of them may begin another pair.
const PAIRS_FACTOR: u64 = 96;
/// What the words of the context count, where those of the question count 1.
const CONTEXT_WEIGHT: f64 = 0.3;
/// The most words of a question that are compared, and of its context.
const MAX_QUESTION_TERMS: usize = 512;
/// Passages below this part of the best one's score are noise.
const RELATIVE_FLOOR: f64 = 0.25;

/// A character's own documents. They are read before the first search, away from the threads of the runtime, and once: what is
/// made of them lives as long as the call, and longer for a saved character (see [`super::DocumentCache`]).
#[derive(Clone)]
pub struct CharacterDocuments {
    indexed: Arc<Indexed>,
    titles: Vec<String>,
}

impl fmt::Debug for CharacterDocuments {
    /// Without their text, which stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CharacterDocuments")
            .field("documents", &self.titles.len())
            .finish_non_exhaustive()
    }
}

struct Indexed {
    documents: Vec<CharacterDocument>,
    index: OnceLock<Index>,
    /// Dropped last, behind what it is reserved for.
    _memory: Option<MemoryHold>,
}

struct Index {
    /// Without their scores.
    passages: Vec<Passage>,
    bm25: Bm25,
    learned: Learned,
}

impl CharacterDocuments {
    /// The documents, not read yet, without a reservation of memory: a server gets documents from a [`super::DocumentCache`].
    #[must_use]
    pub fn new(documents: &[CharacterDocument]) -> Self {
        Self::with_memory(documents.to_vec(), None)
    }

    /// The documents, not read yet, which hold the reservation of their memory until the last clone is dropped.
    pub(super) fn reserved(documents: Vec<CharacterDocument>, memory: MemoryHold) -> Self {
        Self::with_memory(documents, Some(memory))
    }

    fn with_memory(documents: Vec<CharacterDocument>, memory: Option<MemoryHold>) -> Self {
        let titles = documents.iter().map(|d| d.title.clone()).collect();
        Self {
            indexed: Arc::new(Indexed {
                documents,
                index: OnceLock::new(),
                _memory: memory,
            }),
            titles,
        }
    }
}

impl CharacterDocuments {
    /// The most memory that documents and their index take once they are read, in bytes.
    #[must_use]
    pub fn index_bytes(documents: &[CharacterDocument]) -> u64 {
        let bytes = documents.iter().map(|document| {
            let passages = 1 + document.text.len() / (PASSAGE_BYTES / 2);
            // A title stands in each passage, and its words do.
            let titles = passages * document.title.len();
            let wide = document.text.chars().map(char::len_utf8);
            let wide = wide.filter(|bytes| *bytes > 2).sum::<usize>();
            let narrow = document.text.len() - wide + titles;
            WORDS_FACTOR * narrow as u64 + PAIRS_FACTOR * wide as u64
        });
        bytes.sum()
    }

    /// True if another clone of these documents exists.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.indexed) > 1
    }

    /// Whether it is these.
    pub(super) fn are(&self, documents: &[CharacterDocument]) -> bool {
        self.indexed.documents == documents
    }

    #[cfg(test)]
    pub(super) fn is_indexed(&self) -> bool {
        self.indexed.index.get().is_some()
    }
}

#[async_trait]
impl KnowledgeSource for CharacterDocuments {
    fn titles(&self) -> Vec<String> {
        self.titles.clone()
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        if self.indexed.index.get().is_none() {
            let indexed = Arc::clone(&self.indexed);
            spawn_blocking(move || indexed.index().bm25.len()).await?;
        }
        Ok(())
    }

    async fn search(&self, query: Query) -> anyhow::Result<Vec<Passage>> {
        let indexed = Arc::clone(&self.indexed);
        Ok(spawn_blocking(move || indexed.index().search(&query)).await?)
    }
}

impl Indexed {
    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.documents))
    }
}

impl Index {
    /// Cuts the documents into passages of whole sentences and counts their words.
    fn new(documents: &[CharacterDocument]) -> Self {
        let passages = documents
            .iter()
            .enumerate()
            .flat_map(|(place, document)| {
                let pieces = passages(&document.text).into_iter().enumerate();
                pieces.map(move |(chunk_index, piece)| Passage {
                    title: document.title.clone(),
                    document: Origin::Carried(place),
                    chunk_index,
                    retrievers: vec!["bm25"],
                    ..piece
                })
            })
            .collect::<Vec<_>>();
        // A title is part of what its passages are about.
        let texts = passages
            .iter()
            .map(|passage| terms(&format!("{} {}", passage.title, passage.text)));
        let bm25 = Bm25::new(texts);
        let learned = Learned::of(documents.iter().map(|document| document.text.as_str()));
        Self {
            passages,
            bm25,
            learned,
        }
    }

    /// What is compared. Each word of it is looked up in each passage.
    fn wanted(&self, query: &Query) -> Vec<Concept> {
        let mut wanted = Vec::new();
        for (text, weight) in [(&query.text, 1.0), (&query.context, CONTEXT_WEIGHT)] {
            let concepts = Concept::among(text, weight, &self.learned);
            wanted.extend(concepts.into_iter().take(MAX_QUESTION_TERMS));
        }
        wanted
    }

    fn search(&self, query: &Query) -> Vec<Passage> {
        let wanted = self.wanted(query);
        let mut found = (0..self.bm25.len())
            .map(|at| (self.bm25.score(at, &wanted), at))
            .filter(|(score, _)| *score > 0.0)
            .collect::<Vec<_>>();
        // Equal scores keep the order of the documents.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let floor = found.first().map_or(0.0, |(best, _)| best * RELATIVE_FLOOR);
        found
            .into_iter()
            .take(query.limit)
            .filter(|(score, _)| *score >= floor)
            .map(|(score, at)| Passage {
                score,
                ..self.passages[at].clone()
            })
            .collect()
    }
}

/// Cuts a document into passages of about [`PASSAGE_BYTES`], as it is written: whole blocks, of a longer one whole sentences. What stands
/// below a heading or in a table comes with the heading and the names of the columns. The passages have their text and the headings above
/// it.
fn passages(text: &str) -> Vec<Passage> {
    let mut cutting = Cutting::default();
    for block in blocks(text) {
        match block.kind {
            BlockKind::Heading { level } => {
                cutting.heading(level, &block.text, block.source);
                continue;
            }
            BlockKind::Row { columns } => cutting.row(columns, block.source),
            BlockKind::Text if block.source.len() > PASSAGE_BYTES => {
                for sentence in sentences(&block.text) {
                    cutting.add(" ", sentence);
                }
            }
            BlockKind::Text => cutting.add(" ", block.source),
            BlockKind::Code => {
                for line in block.source.lines() {
                    cutting.add("\n", line);
                }
            }
        }
        cutting.block_ended();
    }
    cutting.cut();
    cutting.passages
}

/// A document that is being cut.
#[derive(Default)]
struct Cutting<'a> {
    passages: Vec<Passage>,
    passage: String,
    /// The headings above the text of the passage.
    above: Vec<String>,
    /// The levels and words of the headings that what comes stands below, the highest first.
    path: Vec<(u8, String)>,
    /// The lowest of them as it is written; empty where it is too long to be repeated.
    heading: &'a str,
    /// The names of the columns that the passage has last.
    columns: &'a str,
    /// How many bytes of the passage are names of columns, which do not make it long enough.
    names: usize,
    /// Whether something stands below the headings of the passage.
    has_text: bool,
    /// Whether what comes is another block than what came.
    begins_block: bool,
}

impl<'a> Cutting<'a> {
    fn heading(&mut self, level: u8, words: &str, heading: &'a str) {
        self.path.retain(|(other, _)| *other < level);
        if self.passage.is_empty() {
            self.above = self.first_of_path(self.path.len());
        }
        let words = &words[..words.floor_char_boundary(MAX_HEADING_BYTES)];
        self.path.push((level, words.to_owned()));
        self.join("\n\n", heading);
        self.heading = match heading.len() <= MAX_HEADING_BYTES {
            true => heading,
            false => "",
        };
        self.columns = "";
        self.begins_block = true;
    }

    fn row(&mut self, columns: &'a str, row: &str) {
        // The names of a table are the same part of the document in each of its rows.
        let goes_on = !self.columns.is_empty() && std::ptr::eq(self.columns, columns);
        if !goes_on {
            self.begin();
            self.join("\n\n", columns);
            self.columns = columns;
            self.names += columns.len();
        }
        self.begins_block = columns.is_empty();
        self.add("\n", row);
    }

    /// Adds text behind `between`, or behind an empty line where it begins a block.
    fn add(&mut self, between: &str, text: &str) {
        self.begin();
        let between = match std::mem::take(&mut self.begins_block) {
            true => "\n\n",
            false => between,
        };
        self.join(between, text);
        self.has_text = true;
        if self.passage.len() - self.names >= PASSAGE_BYTES {
            self.cut();
        }
    }

    fn begin(&mut self) {
        if !self.passage.is_empty() {
            return;
        }
        if self.heading.is_empty() {
            self.above = self.first_of_path(self.path.len());
        } else {
            self.above = self.first_of_path(self.path.len().saturating_sub(1));
            self.passage.push_str(self.heading);
            self.begins_block = true;
        }
    }

    /// The first `count` headings of the path; the highest of them are left out where there is no room for all.
    fn first_of_path(&self, count: usize) -> Vec<String> {
        let mut room = MAX_ABOVE_BYTES;
        let mut words = Vec::new();
        for (_, heading) in self.path.iter().take(count).rev() {
            match room.checked_sub(heading.len()) {
                Some(left) => room = left,
                None => break,
            }
            words.push(heading.clone());
        }
        words.reverse();
        words
    }

    fn join(&mut self, between: &str, text: &str) {
        if !self.passage.is_empty() && !text.is_empty() {
            self.passage.push_str(between);
        }
        self.passage.push_str(text);
    }

    /// A block ends a passage that is half full.
    fn block_ended(&mut self) {
        self.begins_block = true;
        if self.has_text && self.passage.len() - self.names >= PASSAGE_BYTES / 2 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.has_text {
            self.passages.push(Passage {
                headings: std::mem::take(&mut self.above),
                text: std::mem::take(&mut self.passage),
                ..Passage::default()
            });
        }
        self.passage.clear();
        self.names = 0;
        // Longer names of columns stand above the first rows alone.
        if self.heading.len() + self.columns.len() <= MAX_REPEATED_BYTES {
            self.columns = "";
        }
        self.has_text = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zoo() -> CharacterDocuments {
        let document = |title: &str, text: &str| CharacterDocument {
            title: title.to_owned(),
            text: text.to_owned(),
        };
        CharacterDocuments::new(&[
            document("Opening hours", "The zoo opens at nine. It closes at six."),
            document(
                "Lions",
                &"The lions eat meat. They sleep a lot. ".repeat(40),
            ),
            document("Empty", ""),
        ])
    }

    fn query(text: &str, context: &str) -> Query {
        Query {
            text: text.to_owned(),
            context: context.to_owned(),
            limit: 3,
        }
    }

    #[tokio::test]
    async fn the_best_passage_comes_first() {
        let found = zoo().search(query("When do you open?", "")).await.unwrap();
        assert_eq!(found[0].title, "Opening hours");
        assert_eq!(found[0].text, "The zoo opens at nine. It closes at six.");
        assert!(
            zoo()
                .search(query("Quantum physics?", ""))
                .await
                .unwrap()
                .is_empty()
        );
        let lions = zoo().search(query("lions", "")).await.unwrap();
        assert_eq!(lions.len(), 3);
        assert!(lions.iter().all(|passage| passage.text.len() < 600));
    }

    fn texts(document: &str) -> Vec<String> {
        let passages = passages(document).into_iter();
        passages.map(|passage| passage.text).collect()
    }

    #[test]
    fn a_passage_has_the_headings_above_its_text() {
        let answer = "The answer to this question is a long one. ".repeat(8);
        let long = answer.repeat(4);
        let document = format!(
            "# FAQ\n\n## Prices\n\n### Adults\n\n{answer}\n\n### Children\n\n{answer}\n\n## Hours\n\n{long}"
        );
        let passages = passages(&document);
        let above: Vec<_> = passages.iter().map(|passage| &passage.headings).collect();
        assert!(above[0].is_empty(), "it begins with them");
        assert_eq!(above[1], &["FAQ", "Prices"]);
        assert!(passages[1].text.starts_with("### Children\n\nThe answer"));
        assert!(above.len() >= 4, "{passages:?}");
        for passage in &passages[2..] {
            assert_eq!(passage.headings, ["FAQ"]);
            assert!(passage.text.starts_with("## Hours\n\nThe answer"));
        }
        let endless = format!("# {}\n\n{long}", "a".repeat(10_000));
        for passage in &super::passages(&endless)[1..] {
            assert_eq!(passage.headings, ["a".repeat(MAX_HEADING_BYTES)]);
        }
    }

    #[test]
    fn passages_keep_what_they_stand_below() {
        let document = "# Updates\n\nReplace the program and start it again, whichever way it was installed, and wait until\nit \
                        has started.\n\n## Words\n\n| Word | Meaning |\n|---|---|\n";
        let row = |at: usize| format!("| Word {at} | {} |\n", "what it means ".repeat(10));
        let document = format!("{document}{}\n\nEnd.", (0..6).map(row).collect::<String>());
        let passages = texts(&document);
        let (first, tables) = passages.split_first().unwrap();
        assert!(
            first.starts_with("# Updates\n\nReplace the program"),
            "{first}"
        );
        assert!(first.contains("wait until\nit has started."), "{first}");
        assert_eq!(tables.len(), 3, "{tables:?}");
        for table in tables {
            let names = table.find("| Word | Meaning |\n|---|---|\n| Word ");
            assert!(names.is_some() && table.contains("## Words"), "{table}");
            assert!(table.len() < 800);
        }
        assert!(tables[2].ends_with("\n\nEnd."), "{tables:?}");
    }

    #[test]
    fn long_names_of_columns_are_not_repeated() {
        let names = format!("| {} |\n|---|\n", "n".repeat(10_000));
        let document = format!("# A table\n\n{names}{}", "| a row |\n".repeat(1_000));
        let passages = texts(&document);
        let bytes: usize = passages.iter().map(String::len).sum();
        assert!(bytes < 2 * document.len(), "{bytes}");
        let named = passages.iter().filter(|passage| passage.contains("nnn"));
        assert_eq!(named.count(), 1);
        let rows = passages
            .iter()
            .map(|passage| passage.matches("a row").count());
        assert_eq!(rows.sum::<usize>(), 1_000);
    }

    #[test]
    fn rows_of_a_wide_table_stand_below_the_names_of_its_columns() {
        let names = (0..30).map(|at| format!(" the name of column {at} |"));
        let names = format!("|{}\n|---|\n", names.collect::<String>());
        let document = format!("# A table\n\n{names}{}", "| a row |\n".repeat(1_000));
        let passages = texts(&document);
        assert!(passages.iter().all(|passage| passage.contains("column 29")));
        let bytes: usize = passages.iter().map(String::len).sum();
        assert!(bytes < 6 * document.len(), "{bytes} of {}", document.len());
    }

    /// The memory of this process, in bytes. `cargo nextest` gives each test its own.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let figure = line.unwrap().split_whitespace().nth(1).unwrap();
        figure.parse::<u64>().unwrap() * 1_024
    }

    #[test]
    fn an_index_takes_no_more_than_is_said() {
        // Numbers that look random, so that nearly every word stands once.
        let mut state = 7_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let mut pairs = String::new();
        for at in 1..=60_000 {
            pairs.extend(char::from_u32(0x4E00 + random(20_000)));
            if at % 100 == 0 {
                pairs.push_str("。\n\n");
            }
        }
        let mut words = String::new();
        for at in 1..=60_000 {
            words.extend((0..4).filter_map(|_| char::from_u32(0x61 + random(26))));
            words.push_str(if at % 50 == 0 { ".\n\n" } else { " " });
        }
        // Lines without a full stop are headings, of which no passage is made.
        let headings = [pairs.replace('。', ""), words.replace('.', "")];
        let mut indexes = vec![];
        for text in headings.into_iter().chain([pairs, words]) {
            let documents = [CharacterDocument {
                title: "Words".to_owned(),
                text,
            }];
            let said = CharacterDocuments::index_bytes(&documents);
            let before = resident();
            // They stay, so that none takes what another has left.
            indexes.push(Index::new(&documents));
            let taken = resident().saturating_sub(before);
            assert!(taken < said, "{taken} of {said}");
            assert!(taken > said / 5, "{taken} of {said}");
        }
    }

    #[tokio::test]
    async fn numbers_and_names_are_found_however_they_are_said() {
        let document = |title: &str, text: &str| CharacterDocument {
            title: title.to_owned(),
            text: text.to_owned(),
        };
        let documents = CharacterDocuments::new(&[
            document(
                "Tours",
                "The long tour starts at 9:30 and takes 25 minutes.",
            ),
            document(
                "Groups",
                "A group has twelve people, and 1,200 groups came last year.",
            ),
            document("Prices", "Prices are without Value Added Tax (VAT)."),
            document("Abroad", "VAT is not paid by visitors from abroad."),
        ]);
        for (question, title) in [
            ("half past nine", "Tours"),
            ("twenty five", "Tours"),
            ("12", "Groups"),
            ("twelve hundred or one thousand two hundred", "Groups"),
            ("value added tax", "Prices"),
        ] {
            let found = documents.search(query(question, "")).await.unwrap();
            assert_eq!(found[0].title, title, "{question}");
        }
        let found = documents.search(query("tax abroad", "")).await.unwrap();
        assert_eq!(found[0].title, "Abroad");
    }

    #[test]
    fn a_long_question_is_not_compared_word_by_word() {
        let index = Index::new(&zoo().indexed.documents);
        let long = "lions eat ".repeat(10_000);
        let wanted = index.wanted(&query(&long, &long));
        assert_eq!(wanted.len(), 2 * MAX_QUESTION_TERMS);
    }

    #[tokio::test]
    async fn the_context_helps_a_question_without_a_subject() {
        let found = zoo()
            .search(query("What do they eat?", "Tell me about lions."))
            .await
            .unwrap();
        assert_eq!(found[0].title, "Lions");
    }
}
