//! Speech by the program `espeak-ng`: a process a sentence, whose sound is passed on while it is made.

use std::{collections::HashMap, process::Stdio};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdout, Command},
    sync::OnceCell,
};

use super::{
    super::{Pcm, ProviderError, ProviderErrorKind, SpeechRequest, SpeechStream, Synthesizer, wav},
    not_started,
};

const PROGRAM: &str = "espeak-ng";
/// The voice where neither voice nor language is known.
const DEFAULT_VOICE: &str = "en-us";
/// The program's normal speed, in words per minute.
const NORMAL_WPM: f32 = 175.0;
/// The speeds at which it can still be understood.
const SPEED: std::ops::RangeInclusive<f32> = 0.4..=2.5;

/// The program espeak-ng.
#[derive(Debug, Default)]
pub struct Espeak {
    /// Asked once, when first needed.
    voices: OnceCell<Voices>,
}

/// The voices that are installed: names in lower case, and what the program calls them.
#[derive(Debug, Default)]
struct Voices {
    /// By language and by name; the value is the language, the form that the program takes everywhere.
    names: HashMap<String, String>,
    variants: HashMap<String, String>,
}

#[async_trait]
impl Synthesizer for Espeak {
    fn name(&self) -> &str {
        PROGRAM
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        let voices = self.voices.get_or_try_init(Voices::ask).await?;
        let voice = voices.choose(request.voice.as_deref(), request.language.as_deref());
        let speed = request.speed.clamp(*SPEED.start(), *SPEED.end());
        let mut child = Command::new(PROGRAM)
            .arg("--stdout")
            .arg("--stdin")
            .args(["-b", "1"]) // the text is UTF-8
            .args(["-v", &voice])
            .args(["-s", &format!("{:.0}", NORMAL_WPM * speed)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| not_started(PROGRAM, &error))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("the program has no pipes"));
        };
        // It reads everything before it makes a sound, so writing cannot wait for our reading.
        let text = plain(&request.text);
        input
            .write_all(text.as_bytes())
            .await
            .map_err(|error| failed(format!("writing the text: {}", error.kind())))?;
        drop(input);
        let reading = Reading {
            child,
            output,
            decoder: wav::Decoder::new(None),
        };
        let pieces = stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(pcm)) => Some((Ok(pcm), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(pieces.boxed())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Voices::ask().await.map(|_| ())
    }
}

/// A process that speaks.
struct Reading {
    child: Child,
    output: ChildStdout,
    decoder: wav::Decoder,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Pcm>, ProviderError> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = self
                .output
                .read(&mut buffer)
                .await
                .map_err(|error| failed(format!("reading the sound: {}", error.kind())))?;
            if read == 0 {
                return self.end().await.map(|()| None);
            }
            let pcm = self.decoder.push(&buffer[..read]).map_err(|message| {
                ProviderError::new(PROGRAM, ProviderErrorKind::Malformed, message)
            })?;
            if pcm.is_some() {
                return Ok(pcm);
            }
        }
    }

    async fn end(&mut self) -> Result<(), ProviderError> {
        let status = self
            .child
            .wait()
            .await
            .map_err(|error| failed(format!("waiting for the program: {}", error.kind())))?;
        if status.success() {
            return Ok(());
        }
        // What it complains about are voices and data files; it does not repeat the text.
        let mut complaint = Vec::new();
        if let Some(errors) = self.child.stderr.take() {
            let _ = errors.take(200).read_to_end(&mut complaint).await;
        }
        let complaint = String::from_utf8_lossy(&complaint);
        Err(failed(format!("{status}: {}", complaint.trim())))
    }
}

impl Voices {
    async fn ask() -> Result<Self, ProviderError> {
        let list = |kind: &'static str| async move {
            let output = Command::new(PROGRAM)
                .arg(kind)
                .stdin(Stdio::null())
                .kill_on_drop(true)
                .output()
                .await
                .map_err(|error| not_started(PROGRAM, &error))?;
            if !output.status.success() {
                return Err(failed(format!("listing the voices: {}", output.status)));
            }
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        Ok(Self::of_lists(
            &list("--voices").await?,
            &list("--voices=variant").await?,
        ))
    }

    /// Reads the tables `Pty Language Age/Gender VoiceName File Other`.
    fn of_lists(voices: &str, variants: &str) -> Self {
        let mut known = Self::default();
        for row in voices.lines().skip(1) {
            let mut columns = row.split_whitespace();
            let Some(language) = columns.nth(1) else {
                continue;
            };
            for name in columns.nth(1).into_iter().chain([language]) {
                known
                    .names
                    .entry(name.to_lowercase())
                    .or_insert_with(|| language.to_owned());
            }
        }
        for row in variants.lines().skip(1) {
            // The file's name may hold a space, so the column is cut by its prefix.
            if let Some((_, file)) = row.split_once("!v/") {
                let file = file.trim();
                known.variants.insert(file.to_lowercase(), file.to_owned());
            }
        }
        known
    }

    /// The `-v` argument. A voice is a name, a language, `name+variant`, or a variant alone. A voice that is not
    /// installed, such as another provider's, gives way to the language's voice: the character is better heard with
    /// another voice than not at all.
    fn choose(&self, voice: Option<&str>, language: Option<&str>) -> String {
        let spoken = self.of_language(language);
        let Some(voice) = voice.map(str::to_lowercase) else {
            return spoken;
        };
        let (name, variant) = match voice.split_once('+') {
            Some((name, variant)) => (name, Some(variant)),
            None if self.variants.contains_key(&voice) => ("", Some(voice.as_str())),
            None => (voice.as_str(), None),
        };
        let name = self.names.get(name).unwrap_or(&spoken);
        match variant.and_then(|variant| self.variants.get(variant)) {
            Some(variant) => format!("{name}+{variant}"),
            None => name.clone(),
        }
    }

    /// The voice of a language: the program's own names differ for some.
    fn of_language(&self, language: Option<&str>) -> String {
        let tag = language.unwrap_or(DEFAULT_VOICE).to_lowercase();
        let primary = tag.split('-').next().unwrap_or(&tag);
        let own = match primary {
            "en" if tag == "en" => "en-us",
            "fr" if tag == "fr" => "fr-fr",
            "zh" if tag.ends_with("hk") || tag.ends_with("yue") => "yue",
            "zh" => "cmn",
            "no" => "nb",
            "iw" => "he",
            _ => &tag,
        };
        [own, primary]
            .into_iter()
            .find_map(|name| self.names.get(name))
            .map_or_else(|| DEFAULT_VOICE.to_owned(), String::clone)
    }
}

/// The text without what the program takes for a command: `[[` begins phonemes, and control characters its own codes.
fn plain(text: &str) -> String {
    text.replace("[[", "[ [")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn failed(message: impl Into<String>) -> ProviderError {
    ProviderError::new(PROGRAM, ProviderErrorKind::Failed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOICES: &str = "\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  cmn             --/M      Chinese_(Mandarin) sit/cmn              (zh-cmn 5)(zh 5)
 5  de              --/M      German             gmw/de
 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)
 2  en-us           --/M      English_(America)  gmw/en-US            (en 3)
 5  fr-fr           --/M      French_(France)    roa/fr               (fr 5)
 5  pt              --/M      Portuguese_(Portugal) roa/pt               (pt-pt 5)
 5  pt-br           --/M      Portuguese_(Brazil) roa/pt-BR            (pt 6)";
    const VARIANTS: &str = "\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  variant         70/F      female3            !v/f3
 5  variant         --/M      Andy               !v/Andy";

    #[test]
    fn voices_are_chosen() {
        let voices = Voices::of_lists(VOICES, VARIANTS);
        let cases = [
            (None, None, "en-us"),
            (None, Some("en"), "en-us"),
            (None, Some("en-GB"), "en-gb"),
            (None, Some("en-AU"), "en-us"),
            (None, Some("zh-cn"), "cmn"),
            (None, Some("fr"), "fr-fr"),
            (None, Some("pt-BR"), "pt-br"),
            (None, Some("de-CH"), "de"),
            (None, Some("tlh"), "en-us"),
            (Some("en-gb+f3"), Some("de"), "en-gb+f3"),
            (Some("German"), None, "de"),
            (Some("f3"), Some("de"), "de+f3"),
            (Some("+andy"), None, "en-us+Andy"),
            (Some("de+nobody"), None, "de"),
            (Some("alloy"), Some("de"), "de"),
            (Some("--path=/etc"), None, "en-us"),
        ];
        for (voice, language, expected) in cases {
            assert_eq!(
                voices.choose(voice, language),
                expected,
                "{voice:?} {language:?}"
            );
        }
    }

    #[test]
    fn the_text_holds_no_commands() {
        assert_eq!(plain("a [[b]] \u{1}30P c\n"), "a [ [b]]  30P c ");
    }
}
