//! What yt-dlp says of a video, as far as it is needed here. It is not trusted: platforms write most of it.

use std::collections::BTreeMap;

use colloquy_digitize::Format;
use serde::Deserialize;

use super::captions::CaptionFormat;
use crate::{facts::DocumentFacts, names};

/// Why a video is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Obstacle {
    /// The description is none.
    #[error("the description of the video cannot be understood")]
    Junk,
    /// It is a list of videos.
    #[error("the address is of several videos")]
    Several,
    /// It goes on.
    #[error("the video is live; it can be read when it is over")]
    Live,
    /// It has not begun.
    #[error("the video has not begun yet")]
    Upcoming,
    /// Not everybody may see it.
    #[error("the video is private or for members only")]
    Private,
}

/// What is known of a video.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Description {
    title: Option<String>,
    uploader: Option<String>,
    language: Option<String>,
    #[serde(rename = "_type")]
    kind: Option<String>,
    live_status: Option<String>,
    is_live: Option<bool>,
    availability: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    subtitles: BTreeMap<String, Vec<NamedFile>>,
    #[serde(default, deserialize_with = "lenient")]
    automatic_captions: BTreeMap<String, Vec<NamedFile>>,
    #[serde(default, deserialize_with = "lenient")]
    formats: Vec<MediaFile>,
}

#[derive(Debug, Clone, Deserialize)]
struct NamedFile {
    #[serde(default)]
    ext: String,
    #[serde(default)]
    url: String,
}

#[derive(Debug, Clone, Deserialize)]
struct MediaFile {
    #[serde(default)]
    url: String,
    #[serde(default)]
    ext: String,
    acodec: Option<String>,
    vcodec: Option<String>,
    protocol: Option<String>,
    filesize: Option<f64>,
    filesize_approx: Option<f64>,
    abr: Option<f64>,
}

/// Null for what is left out.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Captions of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CaptionTrack {
    pub(super) language: String,
    pub(super) format: CaptionFormat,
    pub(super) url: String,
}

/// A file with the sound of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SoundFile {
    pub(super) format: Format,
    pub(super) url: String,
}

impl Description {
    /// Reads a description, also of a video that cannot be read ([`Self::check`]).
    pub(super) fn read(json: &[u8]) -> Result<Self, Obstacle> {
        serde_json::from_slice(json).map_err(|_| Obstacle::Junk)
    }

    fn is_video(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "video")
    }

    /// The video's title as a document's name; `None` if there is nothing to see in it.
    pub(crate) fn title(&self) -> Option<String> {
        let title = self.title.as_deref().filter(|_| self.is_video());
        title.and_then(names::of_title)
    }

    /// Returns why the video cannot be read, if it cannot.
    pub(super) fn check(&self) -> Result<(), Obstacle> {
        let status = self.live_status.as_deref();
        if !self.is_video() {
            return Err(Obstacle::Several);
        }
        if status == Some("is_upcoming") {
            return Err(Obstacle::Upcoming);
        }
        if self.is_live == Some(true) || matches!(status, Some("is_live" | "post_live")) {
            return Err(Obstacle::Live);
        }
        let availability = self.availability.as_deref();
        if matches!(
            availability,
            Some("private" | "premium_only" | "subscriber_only" | "needs_auth")
        ) {
            return Err(Obstacle::Private);
        }
        if self.title.is_none() && self.formats.is_empty() && self.subtitles.is_empty() {
            return Err(Obstacle::Junk);
        }
        Ok(())
    }

    /// What the document says of itself.
    pub(super) fn facts(&self, language: Option<&str>) -> DocumentFacts {
        let language = language.or(self.language.as_deref());
        DocumentFacts::named(self.uploader.as_deref(), language)
    }

    /// The captions, best first: those that people wrote before those of a machine, in the language that is spoken before others.
    pub(super) fn captions(&self) -> Vec<CaptionTrack> {
        let spoken = self.language.as_deref();
        let is_spoken =
            |language: &str| spoken.is_some_and(|spoken| primary(spoken) == primary(language));
        let written = in_order(&self.subtitles, is_spoken);
        // Those of a machine in other languages are translations of those in the one that is spoken.
        let automatic = in_order(&self.automatic_captions, |language| {
            language.ends_with("-orig") || is_spoken(language)
        });
        let first = |tracks: Vec<CaptionTrack>| tracks.into_iter().next();
        first(written).into_iter().chain(first(automatic)).collect()
    }

    /// The smallest sound in a format that is decoded here.
    pub(super) fn smallest_sound(&self) -> Option<SoundFile> {
        let is_there = |codec: &Option<String>| codec.as_deref().is_some_and(|it| it != "none");
        let sounds = self.formats.iter().filter_map(|file| {
            let format = match file.ext.as_str() {
                "m4a" | "mp4" => Format::M4a,
                "mp3" => Format::Mp3,
                _ => return None,
            };
            let is_file = matches!(file.protocol.as_deref(), None | Some("http" | "https"));
            let is_sound = is_there(&file.acodec) && !is_there(&file.vcodec);
            (is_file && is_sound && is_web(&file.url)).then_some((file, format))
        });
        let size = |file: &MediaFile| {
            let size = file.filesize.or(file.filesize_approx).or(file.abr);
            size.filter(|size| size.is_finite()).unwrap_or(f64::MAX)
        };
        let smallest = sounds.min_by(|(one, _), (other, _)| size(one).total_cmp(&size(other)));
        smallest.map(|(file, format)| SoundFile {
            format,
            url: file.url.clone(),
        })
    }
}

fn primary(language: &str) -> &str {
    language.split('-').next().unwrap_or(language)
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// A track of each language in the best of its formats, those first that are preferred.
fn in_order(
    languages: &BTreeMap<String, Vec<NamedFile>>,
    is_preferred: impl Fn(&str) -> bool,
) -> Vec<CaptionTrack> {
    let track = |(language, files): (&String, &Vec<NamedFile>)| {
        let formats = [("json3", CaptionFormat::Json), ("vtt", CaptionFormat::Vtt)];
        formats.into_iter().find_map(|(ext, format)| {
            let file = files
                .iter()
                .find(|file| file.ext == ext && is_web(&file.url))?;
            Some(CaptionTrack {
                language: language.trim_end_matches("-orig").to_owned(),
                format,
                url: file.url.clone(),
            })
        })
    };
    let (mut first, rest): (Vec<_>, Vec<_>) = languages
        .iter()
        .filter(|(language, _)| *language != "live_chat")
        .partition(|(language, _)| is_preferred(language));
    first.extend(rest);
    first.into_iter().filter_map(track).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(changes: Value) -> Result<Description, Obstacle> {
        let mut description = json!({"title": "Lions", "_type": "video", "subtitles": null});
        let fields = description.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        let read = Description::read(description.to_string().as_bytes())?;
        read.check().map(|()| read)
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (changes, expected) in [
            (json!({"is_live": true}), Obstacle::Live),
            (json!({"live_status": "post_live"}), Obstacle::Live),
            (json!({"live_status": "is_upcoming"}), Obstacle::Upcoming),
            (json!({"availability": "private"}), Obstacle::Private),
            (json!({"_type": "playlist"}), Obstacle::Several),
            (json!({"title": null}), Obstacle::Junk),
            (json!({"formats": 3}), Obstacle::Junk),
        ] {
            assert_eq!(read(changes.clone()).unwrap_err(), expected, "{changes}");
        }
        for junk in ["", "null", "[]", "{\"title\": 3}", "<html>"] {
            assert_eq!(
                Description::read(junk.as_bytes()).unwrap_err(),
                Obstacle::Junk
            );
        }
        assert!(read(json!({"live_status": "was_live"})).is_ok());
    }

    #[test]
    fn a_video_that_cannot_be_read_has_its_title() {
        let title = |description: Value| {
            let read = Description::read(description.to_string().as_bytes());
            read.unwrap().title()
        };
        for more in [
            json!({"is_live": true}),
            json!({"availability": "private"}),
            json!({}),
        ] {
            let mut description = json!({"title": " Lions\n"});
            let fields = description.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            assert_eq!(title(description).as_deref(), Some("Lions"), "{more}");
        }
        assert_eq!(title(json!({"title": "Zoo", "_type": "playlist"})), None);
        assert_eq!(title(json!({"title": " \u{0}"})), None);
        assert_eq!(title(json!({})), None);
    }

    #[test]
    fn captions_are_chosen_by_who_wrote_them_and_by_language() {
        let file =
            |ext: &str, name: &str| json!({"ext": ext, "url": format!("https://a.example/{name}")});
        let description = read(json!({
            "language": "de",
            "subtitles": {"live_chat": [file("json3", "chat")], "en": [file("vtt", "en")],
                "de-AT": [file("srv1", "x"), file("vtt", "v"), file("json3", "de")]},
            "automatic_captions": {"de-orig": [file("vtt", "auto")], "fr": [file("json3", "fr")]},
        }));
        let captions = description.unwrap().captions();
        let urls: Vec<&str> = captions.iter().map(|track| track.url.as_str()).collect();
        assert_eq!(urls, ["https://a.example/de", "https://a.example/auto"]);
        assert_eq!(captions[1].language, "de");
    }

    #[test]
    fn the_smallest_sound_is_taken() {
        let file = |name: &str, ext: &str, size: Value, video: &str| {
            json!({"url": format!("https://a.example/{name}"), "ext": ext, "acodec": "mp4a.40.2", "vcodec": video,
                "filesize": size, "protocol": "https"})
        };
        let description = read(json!({"formats": [
            file("large", "m4a", json!(9), "none"), file("small", "m4a", json!(5), "none"), file("film", "mp4", json!(1), "avc1"),
            file("opus", "webm", json!(2), "none"), file("unknown", "mp3", Value::Null, "none"),
        ]}));
        let sound = description.unwrap().smallest_sound().unwrap();
        assert_eq!(
            (sound.format, sound.url.as_str()),
            (Format::M4a, "https://a.example/small")
        );
        assert_eq!(read(json!({})).unwrap().smallest_sound(), None);
    }
}
