//! Phonemes of a text, by an `espeak-ng` that stays.
//!
//! The program says nothing of punctuation and breaks a text where it likes, so it gets a clause at a time, and the punctuation is
//! put back. Behind each clause it gets digits that nobody else knows, whose phonemes were learnt at its start: what comes before
//! them belongs to the clause. A process that was left in the middle of a clause is killed and replaced, so that nobody is
//! given what somebody else wrote.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    sync::Mutex,
    time::timeout,
};

use super::{
    super::{ProviderError, ProviderErrorKind},
    ESPEAK,
    programs::start,
};

/// It lets the program write each line when it has it.
const LINES: &str = "stdbuf";
/// The digits that are sent behind each clause.
const MARK_DIGITS: usize = 12;
/// How long the program may take for a clause; it takes less than a millisecond.
const LIMIT: Duration = Duration::from_secs(2);
/// How many clauses a process reads before another takes its place. Each may take `LIMIT`: it is replaced before its processor time,
/// [`colloquy_sandbox::PROGRAM_CPU_SECONDS`], is used up.
const MOST_CLAUSES: u64 = 1_500;
/// The longest clause, in characters. The program reads no longer lines.
const MAX_CLAUSE: usize = 200;

/// The program, for one of its voices.
#[derive(Debug)]
pub(super) struct Phonemes {
    voice: String,
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    // Kept, since it is killed when it is dropped.
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// What is sent behind each clause, and its phonemes.
    mark: String,
    mark_phonemes: String,
    /// Clauses so far.
    asked: u64,
}

impl Phonemes {
    /// The phonemes of this voice. Nothing is started yet.
    pub(super) fn new(voice: &str) -> Self {
        Self {
            voice: voice.to_owned(),
            process: Mutex::default(),
        }
    }

    /// The phonemes of a text, with its punctuation: a part for each sentence, and more where one is longer than `most`.
    ///
    /// # Errors
    /// When the program does not run.
    pub(super) async fn of(&self, text: &str, most: usize) -> Result<Vec<String>, ProviderError> {
        let mut sentences = Sentences::new(most);
        for clause in clauses(text) {
            // One clause at a time, so that a long text holds nobody up.
            let mut process = self.process.lock().await;
            // Taken out, so that it is gone when this is broken off.
            let mut running = match process.take() {
                Some(running) if running.asked < MOST_CLAUSES => running,
                _ => bounded(Process::start(&self.voice)).await?,
            };
            let phonemes = bounded(running.ask(&clause.words)).await?;
            *process = Some(running);
            sentences.push(&phonemes, clause.end);
        }
        Ok(sentences.end())
    }
}

async fn bounded<T>(
    answer: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    let late = |_| ProviderError::new(ESPEAK, ProviderErrorKind::Timeout, "it gives no phonemes");
    timeout(LIMIT, answer).await.map_err(late)?
}

impl Process {
    async fn start(voice: &str) -> Result<Self, ProviderError> {
        let mut child = start(LINES, |command| {
            command
                .args(["-oL", ESPEAK, "-q", "--ipa"])
                .args(["-b", "1"]) // the text is UTF-8
                .args(["-v", voice])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("the program has no pipes"));
        };
        let mut process = Self {
            _child: child,
            input,
            output: BufReader::new(output).lines(),
            mark: mark(),
            mark_phonemes: String::new(),
            asked: 0,
        };
        let mark = process.mark.clone();
        process.write(&mark).await?;
        process.mark_phonemes = process.line().await?;
        Ok(process)
    }

    /// The phonemes of a clause.
    async fn ask(&mut self, words: &str) -> Result<String, ProviderError> {
        self.asked += 1;
        let clause = format!("{words}\n{}", self.mark);
        self.write(&clause).await?;
        let mut phonemes = String::new();
        loop {
            let line = self.line().await?;
            if line == self.mark_phonemes {
                return Ok(phonemes);
            }
            if !phonemes.is_empty() {
                phonemes.push(' ');
            }
            phonemes.push_str(&line);
        }
    }

    async fn write(&mut self, text: &str) -> Result<(), ProviderError> {
        let text = format!("{text}\n");
        let written = self.input.write_all(text.as_bytes()).await;
        written.map_err(|_| failed("the program has ended"))
    }

    /// The next line that says something.
    async fn line(&mut self) -> Result<String, ProviderError> {
        loop {
            let line = self.output.next_line().await;
            let line = line.map_err(|error| failed(format!("reading: {}", error.kind())))?;
            let line = line.ok_or_else(|| failed("the program has ended"))?;
            let line = without_marks(&line);
            if !line.is_empty() {
                return Ok(line);
            }
        }
    }
}

/// Digits that no text has by chance.
fn mark() -> String {
    let digits = (0..MARK_DIGITS).map(|_| rand::random_range(0..10_u8).to_string());
    digits.collect::<Vec<_>>().join(" ")
}

fn failed(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ESPEAK, ProviderErrorKind::Failed, message)
}

/// Phonemes without the program's marks: `(en)` where another language begins, and joiners.
fn without_marks(line: &str) -> String {
    let mut depth = 0_usize;
    let kept = line.chars().filter(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0 && *letter != '\u{200d}'
    });
    kept.collect::<String>().trim().to_owned()
}

/// Words up to a punctuation mark.
#[derive(Debug, PartialEq, Eq)]
struct Clause {
    words: String,
    end: Option<char>,
}

/// A text in clauses. What the program would take for a command is not passed on.
fn clauses(text: &str) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut words = String::new();
    let mut length = 0;
    let mut push = |words: &mut String, end: Option<char>| {
        let clause = std::mem::take(words);
        let clause = clause.trim();
        if clause.chars().any(char::is_alphanumeric) {
            clauses.push(Clause {
                words: clause.to_owned(),
                end,
            });
        }
    };
    let text = text.replace("[[", " ");
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        let is_end = next.is_none_or(|next| !next.is_alphanumeric());
        let end = punctuation(letter).filter(|_| is_end || !letter.is_ascii());
        if end.is_some() {
            push(&mut words, end);
            length = 0;
            continue;
        }
        words.push(if letter.is_control() { ' ' } else { letter });
        length += 1;
        let may_break = letter.is_whitespace() && length >= MAX_CLAUSE;
        if may_break || length >= 2 * MAX_CLAUSE {
            push(&mut words, None);
            length = 0;
        }
    }
    push(&mut words, None);
    clauses
}

/// The punctuation mark that voices know for this one, if it ends a clause.
fn punctuation(letter: char) -> Option<char> {
    match letter {
        '.' | '。' | '…' => Some('.'),
        '!' | '！' => Some('!'),
        '?' | '？' => Some('?'),
        ',' | '，' | '、' | '—' | '–' | '(' | ')' => Some(','),
        ';' | '；' => Some(';'),
        ':' | '：' => Some(':'),
        _ => None,
    }
}

/// Sentences that are put together from clauses.
struct Sentences {
    most: usize,
    all: Vec<String>,
    current: String,
}

impl Sentences {
    fn new(most: usize) -> Self {
        Self {
            most,
            all: Vec::new(),
            current: String::new(),
        }
    }

    fn push(&mut self, phonemes: &str, end: Option<char>) {
        for word in phonemes.split_whitespace() {
            // A word that is too long by itself is cut, too.
            let mut letters = word.chars().peekable();
            while letters.peek().is_some() {
                let part: String = letters.by_ref().take(self.most / 2).collect();
                let length = self.current.chars().count() + part.chars().count();
                // There is room for a space and a mark.
                if length + 2 > self.most {
                    self.close();
                }
                if !self.current.is_empty() {
                    self.current.push(' ');
                }
                self.current.push_str(&part);
            }
        }
        if !self.current.is_empty() {
            self.current.extend(end);
        }
        if matches!(end, Some('.' | '!' | '?')) {
            self.close();
        }
    }

    fn close(&mut self) {
        let sentence = std::mem::take(&mut self.current);
        if !sentence.is_empty() {
            self.all.push(sentence);
        }
    }

    fn end(mut self) -> Vec<String> {
        self.close();
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(String, Option<char>)> {
        let clauses = clauses(text).into_iter();
        clauses.map(|clause| (clause.words, clause.end)).collect()
    }

    #[test]
    fn clauses_end_at_punctuation() {
        type Cut = &'static [(&'static str, Option<char>)];
        let cases: [(&str, Cut); 6] = [
            (
                "Hello, world. How are you?",
                &[
                    ("Hello", Some(',')),
                    ("world", Some('.')),
                    ("How are you", Some('?')),
                ],
            ),
            ("at 3.5 percent", &[("at 3.5 percent", None)]),
            (
                "\"Yes!\" he said",
                &[("\"Yes", Some('!')), ("\" he said", None)],
            ),
            ("你好。再见", &[("你好", Some('.')), ("再见", None)]),
            ("... - !", &[]),
            ("a [[b]]\u{1}c", &[("a  b]] c", None)]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected
                .iter()
                .map(|(words, end)| ((*words).to_owned(), *end))
                .collect();
            assert_eq!(cut(text), expected, "{text}");
        }
    }

    #[test]
    fn no_clause_is_longer_than_a_line_of_the_program() {
        for text in ["word ".repeat(1_000), "x".repeat(3_000)] {
            let clauses = clauses(&text);
            let letters = |clause: &Clause| clause.words.chars().count();
            assert!(
                clauses
                    .iter()
                    .all(|clause| letters(clause) <= 2 * MAX_CLAUSE)
            );
            let kept: usize = clauses.iter().map(|clause| clause.words.len()).sum();
            assert!(kept > text.len() * 9 / 10);
        }
    }

    #[test]
    fn sentences_are_bounded() {
        let mut sentences = Sentences::new(40);
        sentences.push("həlˈoʊ", Some(','));
        sentences.push("wˈɜːld", Some('.'));
        sentences.push("", Some('!'));
        sentences.push(&"aː".repeat(50), Some('?'));
        sentences.push(&"bə ".repeat(30), None);
        let all = sentences.end();
        assert_eq!(all[0], "həlˈoʊ, wˈɜːld.");
        assert!(all.iter().all(|one| one.chars().count() <= 40), "{all:?}");
        assert!(all.iter().any(|one| one.ends_with('?')));
    }

    #[test]
    fn marks_of_the_program_are_taken_out() {
        assert_eq!(without_marks(" (en)həlˈoʊ(de) d\u{200d}ʒ \n"), "həlˈoʊ dʒ");
        assert_eq!(without_marks(")a("), "a");
    }

    #[tokio::test]
    async fn the_program_stays_and_answers_in_order() {
        let phonemes = Phonemes::new("en-us");
        let hello = phonemes.of("Hello, world.", 500).await.unwrap();
        assert_eq!(hello, ["həlˈoʊ, wˈɜːld."]);
        let first = phonemes.process.lock().await.as_ref().unwrap()._child.id();
        // It breaks here where there is no punctuation that we know.
        let two = phonemes.of("Mr\u{2e} Smith said hello \u{1f600}. Bye", 500);
        assert_eq!(two.await.unwrap().len(), 2 + 1);
        assert_eq!(phonemes.of("", 500).await.unwrap(), Vec::<String>::new());
        let again = phonemes.of("Hello, world.", 500).await.unwrap();
        assert_eq!(again, hello);
        let second = phonemes.process.lock().await.as_ref().unwrap()._child.id();
        assert_eq!(first, second);
    }

    #[tokio::test]
    async fn the_program_is_replaced_before_its_processor_time_is_used_up() {
        const { assert!(MOST_CLAUSES * LIMIT.as_secs() < colloquy_sandbox::PROGRAM_CPU_SECONDS) }
        let phonemes = Phonemes::new("en-us");
        for (asked, expected) in [(MOST_CLAUSES - 1, MOST_CLAUSES), (MOST_CLAUSES, 1)] {
            let hello = phonemes.of("Hello.", 500).await.unwrap();
            phonemes.process.lock().await.as_mut().unwrap().asked = asked;
            assert_eq!(phonemes.of("Hello.", 500).await.unwrap(), hello);
            let now = phonemes.process.lock().await.as_ref().unwrap().asked;
            assert_eq!(now, expected);
        }
    }

    #[tokio::test]
    async fn texts_that_are_asked_for_at_once_are_not_mixed() {
        let phonemes = Phonemes::new("en-us");
        let texts = [
            "One, two.",
            "4 8 2 9 1 3 5 5 0 1 2 7, 3.",
            "Good morning, sir!",
        ];
        let mut alone = Vec::new();
        for text in texts {
            alone.push(phonemes.of(text, 500).await.unwrap());
        }
        let ask = |index: usize| {
            let (phonemes, alone) = (&phonemes, &alone);
            async move {
                let index = index % texts.len();
                assert_eq!(phonemes.of(texts[index], 500).await.unwrap(), alone[index]);
            }
        };
        futures_util::future::join_all((0..30).map(ask)).await;
    }

    #[tokio::test]
    async fn a_process_that_was_left_is_replaced() {
        let phonemes = Phonemes::new("en-us");
        let hello = phonemes.of("Hello.", 500).await.unwrap();
        let long = "word ".repeat(2_000);
        let left = timeout(Duration::from_micros(300), phonemes.of(&long, 500)).await;
        assert!(left.is_err());
        assert_eq!(phonemes.of("Hello.", 500).await.unwrap(), hello);
    }
}
