//! Captions: WebVTT and the JSON of a video platform, as text with marks of time.

use std::time::Duration;

use serde::Deserialize;

use crate::transcribing::mark;

/// A mark of time stands at least so far from the one before.
const BETWEEN_MARKS: u64 = 30;
/// The most captions of a video.
const MOST: usize = 200_000;

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
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(default)]
    t_start_ms: f64,
    #[serde(default)]
    segs: Vec<Segment>,
}

#[derive(Deserialize)]
struct Segment {
    #[serde(default)]
    utf8: String,
}

impl Captions {
    /// Reads a file. What is none has no captions.
    pub(super) fn read(format: CaptionFormat, file: &[u8]) -> Self {
        let captions = match format {
            CaptionFormat::Json => json(file),
            CaptionFormat::Vtt => vtt(&String::from_utf8_lossy(file)),
        };
        let mut kept: Vec<(Duration, String)> = Vec::new();
        for (begin, text) in captions.into_iter().take(MOST) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Captions that roll say again what they said before.
            let is_again = kept.last().is_some_and(|(_, before)| *before == text);
            if !text.is_empty() && !is_again {
                kept.push((begin, text));
            }
        }
        Self(kept)
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

fn json(file: &[u8]) -> Vec<(Duration, String)> {
    let Ok(Events { events }) = serde_json::from_slice(file) else {
        return Vec::new();
    };
    let caption = |event: Event| {
        let text = event.segs.iter().map(|segment| segment.utf8.as_str());
        let begin = Duration::from_millis(event.t_start_ms.max(0.0) as u64);
        (begin, text.collect())
    };
    events.into_iter().map(caption).collect()
}

fn vtt(file: &str) -> Vec<(Duration, String)> {
    let mut captions = Vec::new();
    let mut lines = file.lines();
    // Lines of a caption that were shown with the one before, as rolling ones have them.
    let mut before: Vec<String> = Vec::new();
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
        let shown: Vec<String> = text.map(without_tags).collect();
        let new: Vec<&str> = shown
            .iter()
            .filter(|line| !before.contains(line))
            .map(String::as_str)
            .collect();
        captions.push((begin, new.join(" ")));
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
}
