//! Captions: WebVTT and the JSON of a video platform, as text with marks of time.

use std::{borrow::Cow, collections::VecDeque, fmt, marker::PhantomData, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};

use crate::transcribing::mark;

/// A mark of time stands at least so far from the one before.
const BETWEEN_MARKS: u64 = 30;
/// The most captions of a video.
const MOST: usize = 200_000;
/// How many lines of the caption before may be shown again, as rolling ones do. They have two to four.
const MOST_ROLLED: usize = 16;

/// A format of captions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptionFormat {
    /// Events with segments (`json3`).
    Json,
    /// WebVTT.
    Vtt,
}

/// What is said, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Captions(Vec<(Duration, String)>);

#[derive(Deserialize)]
struct Events {
    #[serde(default, deserialize_with = "said")]
    events: Captions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(default)]
    t_start_ms: f64,
    #[serde(default, deserialize_with = "joined")]
    segs: String,
}

#[derive(Deserialize)]
struct Segment<'a> {
    #[serde(default, borrow)]
    utf8: Cow<'a, str>,
}

/// The captions of events, which are read one by one: those that say nothing take a few bytes each in a file, and many times that in memory.
fn said<'de, D: Deserializer<'de>>(events: D) -> Result<Captions, D::Error> {
    fold(events, |captions: &mut Captions, event: Event| {
        let begin = Duration::from_millis(event.t_start_ms.max(0.0) as u64);
        captions.add(begin, &event.segs);
    })
}

/// The text of segments.
fn joined<'de, D: Deserializer<'de>>(segments: D) -> Result<String, D::Error> {
    fold(segments, |text: &mut String, segment: Segment<'de>| {
        text.push_str(&segment.utf8);
    })
}

/// Reads a sequence without keeping it.
fn fold<'de, D, T, A>(sequence: D, add: impl FnMut(&mut A, T)) -> Result<A, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    A: Default,
{
    struct Fold<T, A, F>(F, PhantomData<fn(T) -> A>);

    impl<'de, T, A, F> Visitor<'de> for Fold<T, A, F>
    where
        T: Deserialize<'de>,
        A: Default,
        F: FnMut(&mut A, T),
    {
        type Value = A;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a sequence")
        }

        fn visit_seq<S: SeqAccess<'de>>(mut self, mut items: S) -> Result<A, S::Error> {
            let mut all = A::default();
            while let Some(item) = items.next_element()? {
                (self.0)(&mut all, item);
            }
            Ok(all)
        }
    }

    sequence.deserialize_seq(Fold(add, PhantomData))
}

impl Captions {
    /// Reads a file, in time and memory of its length. What is none has no captions.
    pub(super) fn read(format: CaptionFormat, file: &[u8]) -> Self {
        match format {
            CaptionFormat::Json => serde_json::from_slice(file)
                .map_or_else(|_| Self::default(), |it: Events| it.events),
            CaptionFormat::Vtt => vtt(&String::from_utf8_lossy(file)),
        }
    }

    /// Adds what is said, unless there is enough of it.
    fn add(&mut self, begin: Duration, text: &str) {
        if self.0.len() == MOST {
            return;
        }
        let mut said = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            if !said.is_empty() {
                said.push(' ');
            }
            said.push_str(word);
        }
        // Captions that roll say again what they said before.
        let is_again = self.0.last().is_some_and(|(_, before)| *before == said);
        if !said.is_empty() && !is_again {
            self.0.push((begin, said));
        }
    }

    /// The text with marks of time; `None` where nothing is said.
    pub(super) fn markdown(&self) -> Option<String> {
        let mut paragraphs: Vec<(u64, Vec<&str>)> = Vec::new();
        for (begin, text) in &self.0 {
            let second = begin.as_secs();
            match paragraphs.last_mut() {
                Some((begin, parts)) if second.saturating_sub(*begin) < BETWEEN_MARKS => {
                    parts.push(text);
                }
                _ => paragraphs.push((second, vec![text])),
            }
        }
        let written = paragraphs.iter().map(|(second, parts)| {
            let second = i64::try_from(*second).unwrap_or(i64::MAX);
            format!("[{}] {}\n", mark(second), parts.join(" "))
        });
        let written: Vec<String> = written.collect();
        (!written.is_empty()).then(|| written.join("\n"))
    }
}

fn vtt(file: &str) -> Captions {
    let mut captions = Captions::default();
    let mut lines = file.lines();
    // Lines of a caption that were shown with the one before, as rolling ones have them.
    let mut before: VecDeque<String> = VecDeque::new();
    while let Some(line) = lines.next() {
        let Some((begin, _)) = line.split_once("-->") else {
            continue;
        };
        let Some(begin) = time(begin.trim()) else {
            continue;
        };
        let text = lines
            .by_ref()
            .map(str::trim)
            .take_while(|line| !line.is_empty());
        let (mut new, mut shown) = (String::new(), VecDeque::new());
        for line in text.map(without_tags) {
            if !before.contains(&line) {
                new.push_str(&line);
                new.push(' ');
            }
            if shown.len() == MOST_ROLLED {
                shown.pop_front();
            }
            shown.push_back(line);
        }
        captions.add(begin, &new);
        before = shown;
    }
    captions
}

/// `hh:mm:ss.ttt` or `mm:ss.ttt`.
fn time(text: &str) -> Option<Duration> {
    let (clock, millis) = text.split_once(['.', ','])?;
    let mut seconds = 0_u64;
    for part in clock.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    Some(Duration::from_secs(seconds) + Duration::from_millis(millis.parse::<u16>().ok()?.into()))
}

/// A line without `<c>`, `<00:00:01.000>` and the like, and with characters for their names.
fn without_tags(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut is_tag = false;
    for c in line.chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    named
        .iter()
        .fold(text, |text, (name, c)| text.replace(name, c))
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::runtime_now;

    use super::*;

    #[test]
    fn both_formats_are_read() {
        let json = r#"{"events": [{"tStartMs": 0, "dDurationMs": 9}, {"tStartMs": 1500, "segs": [{"utf8": "We "}, {"utf8": "open\n"}]},
            {"tStartMs": 4000, "segs": [{"utf8": "at nine."}]}, {"tStartMs": 65000, "segs": [{"utf8": "Bye."}]}]}"#;
        let expected = "[00:01] We open at nine.\n\n[01:05] Bye.\n";
        let read = Captions::read(CaptionFormat::Json, json.as_bytes());
        assert_eq!(read.markdown().as_deref(), Some(expected));
        let vtt = "WEBVTT\nKind: captions\n\nNOTE x\n\n1\n00:00:01.500 --> 00:00:04.000 align:start\n<c.x>We</c> open\n\n\
                   00:04.000 --> 00:06.000\nWe open\nat <00:00:05.000>nine.\n\n01:05.000 --> 01:06.000\nBye.\n";
        let read = Captions::read(CaptionFormat::Vtt, vtt.as_bytes());
        assert_eq!(read.markdown().as_deref(), Some(expected));
    }

    #[test]
    fn what_is_no_caption_has_none() {
        for junk in [
            "",
            "{}",
            "{\"events\": 3}",
            "-->",
            "99999999999999999999:00.000 --> x\nA\n",
            "a --> b",
        ] {
            for format in [CaptionFormat::Json, CaptionFormat::Vtt] {
                assert_eq!(
                    Captions::read(format, junk.as_bytes()).markdown(),
                    None,
                    "{junk}"
                );
            }
        }
        let far = r#"{"events": [{"tStartMs": 1e300, "segs": [{"utf8": "Late."}]}, {"tStartMs": -5, "segs": [{"utf8": "Early."}]}]}"#;
        let read = Captions::read(CaptionFormat::Json, far.as_bytes());
        assert!(read.markdown().unwrap().contains("Early."));
    }

    #[test]
    fn events_without_text_are_passed_over() {
        let empty = "{},".repeat(MOST + 1);
        let file =
            format!("{{\"events\": [{empty}{{\"segs\": [{{}}, {{\"utf8\": \"Late.\"}}]}}]}}");
        let read = Captions::read(CaptionFormat::Json, file.as_bytes());
        assert_eq!(read.markdown().as_deref(), Some("[00:00] Late.\n"));
    }

    #[test]
    fn there_are_so_many_captions_and_no_more() {
        let cues = (0..=MOST).map(|cue| format!("00:00.000 --> 00:01.000\n{cue}\n\n"));
        let read = Captions::read(CaptionFormat::Vtt, cues.collect::<String>().as_bytes());
        assert_eq!(read.0.len(), MOST);
    }

    /// Comparing each with each would take forty thousand million steps.
    #[test]
    fn captions_of_many_lines_take_the_time_of_their_length() {
        const LINES: usize = 200_000;
        let lines = |word: &str| -> String {
            (0..LINES)
                .map(|line| format!("{word}{line:06}\n"))
                .collect()
        };
        let cue = |word| format!("00:01.000 --> 00:02.000\n{}\n", lines(word));
        let file = cue("a") + &cue("b");
        let begun = runtime_now();
        let read = Captions::read(CaptionFormat::Vtt, file.as_bytes());
        assert!(
            begun.elapsed() < support::patience(Duration::from_secs(30)),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(read.0[1].1.split(' ').count(), LINES);
    }
}
