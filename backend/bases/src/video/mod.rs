//! Pages of video platforms: what is said in the video, by its captions or else by its sound.
//!
//! The program yt-dlp, which is not ours, says what there is at the address ([`program`]); the files that it names are fetched by this server's own
//! guarded client. Captions become text with marks of time ([`mod@captions`]). Without any, the smallest sound is kept as the document's original, and
//! transcribed like any other recording.

mod captions;
mod description;
mod program;

use std::time::Duration;

use axum::http::{HeaderMap, Method};
use bytes::{Bytes, BytesMut};
use colloquy_accounts::Tenant;
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_digitize::{Bound, ExtractError, Format};
use colloquy_fetch::{Bounds, Request};
use futures_util::StreamExt as _;
use tokio::task::spawn_blocking;
use url::Url;

use self::captions::Captions;
pub use self::program::ProgramFailure;
pub(crate) use self::{description::Description, program::YtDlp};
use super::{
    Bases,
    content::{NewContent, Variant},
    facts::DocumentFacts,
    fetching::{FetchFailure, refused, write},
    names,
};

/// How long captions may take to be fetched, and the sound of a video.
const CAPTIONS_TIME: Duration = Duration::from_secs(60);
const SOUND_TIME: Duration = Duration::from_secs(600);
/// The largest file of captions: hours of speech are some megabytes.
const MOST_CAPTIONS: u64 = 32 * 1024 * 1024;
const REDIRECTS: u32 = 5;

/// What there is of a video.
pub(crate) enum Video {
    /// What is said in it, as Markdown.
    Text { text: String, facts: DocumentFacts },
    /// Its sound, which belongs to no document yet, and what the platform says of it.
    Sound {
        sound: NewContent,
        facts: DocumentFacts,
    },
}

/// True for an address of a video platform: one of its hosts by its very name, at the port of its scheme.
pub(crate) fn is_video_address(bases: &Bases, url: &str) -> bool {
    is_of(&bases.config.knowledge.video_hosts, url)
}

fn is_of(hosts: &[String], url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let is_plain = url.port().is_none() && url.username().is_empty() && url.password().is_none();
    let mut hosts = hosts.iter().map(String::as_str);
    matches!(url.scheme(), "http" | "https")
        && is_plain
        && hosts.any(|host| url.host_str() == Some(host))
}

/// Has the program describe what is at an address.
pub(crate) async fn describe(
    bases: &Bases,
    tenant: &Tenant,
    url: &str,
) -> Result<Description, FetchFailure> {
    let claim = Claim::new(Priority::Background, tenant.partner().as_str());
    let program = YtDlp::new(
        &bases.config.knowledge,
        &bases.sandbox,
        &bases.fetcher,
        claim,
    );
    let described = program.describe(url).await;
    let described = described.map_err(|failure| match failure {
        failure @ ProgramFailure::TooLong => FetchFailure::Later(failure.to_string()),
        failure if failure.may_pass() => FetchFailure::Later(failure.to_string()),
        failure => FetchFailure::Refused(failure.to_string()),
    })?;
    // Captions and formats may be megabytes of whatever the platform says.
    let description = apart(move || Description::read(&described)).await?;
    description.map_err(|obstacle| FetchFailure::Refused(obstacle.to_string()))
}

/// Gets what is said in a video, or its sound.
pub(crate) async fn get(
    bases: &Bases,
    tenant: &Tenant,
    description: &Description,
) -> Result<Video, FetchFailure> {
    let checked = description.check();
    checked.map_err(|obstacle| FetchFailure::Refused(obstacle.to_string()))?;
    let mut failure = None;
    for track in description.captions() {
        match captions(bases, &track.url).await {
            Ok(body) => {
                let text = apart(move || Captions::read(track.format, &body).markdown()).await?;
                if let Some(text) = text {
                    let most = u64::from(bases.config.knowledge.max_text_bytes);
                    if text.len() as u64 > most {
                        let bound = Bound::MarkdownBytes;
                        let error = ExtractError::TooLarge { bound, most };
                        return Err(FetchFailure::Refused(error.to_string()));
                    }
                    return Ok(Video::Text {
                        text,
                        facts: description.facts(Some(&track.language)),
                    });
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    let Some(sound) = description.smallest_sound() else {
        return Err(failure.unwrap_or_else(|| {
            let reason = "the video has neither captions nor sound that can be fetched";
            FetchFailure::Refused(reason.to_owned())
        }));
    };
    let title = description.title();
    let name = title.as_deref().unwrap_or("video");
    let sound = keep_sound(bases, tenant, &sound.url, name, sound.format).await?;
    Ok(Video::Sound {
        sound,
        facts: description.facts(None),
    })
}

/// Reads something on a thread that may take its time.
async fn apart<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FetchFailure> {
    let read = spawn_blocking(read).await;
    read.map_err(|error| FetchFailure::Own(error.into()))
}

fn request(url: &str) -> Result<Request, FetchFailure> {
    let url = Url::parse(url);
    let url = url.map_err(|_| FetchFailure::Refused("the video names no address".to_owned()))?;
    Ok(Request {
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: Bytes::new(),
    })
}

fn bounds(time: Duration, bytes: u64) -> Bounds {
    Bounds {
        time,
        bytes,
        redirects: REDIRECTS,
        https_only: false,
    }
}

fn succeeded(status: axum::http::StatusCode) -> Result<(), FetchFailure> {
    if status.is_success() {
        return Ok(());
    }
    let reason = format!(
        "a file of the video answers with status {}",
        status.as_u16()
    );
    // The addresses of such files hold for a while; the next description has others.
    Err(FetchFailure::Later(reason))
}

async fn captions(bases: &Bases, url: &str) -> Result<Bytes, FetchFailure> {
    let bounds = bounds(CAPTIONS_TIME, MOST_CAPTIONS);
    let answer = bases.fetcher.open(request(url)?, bounds).await;
    let mut answer = answer.map_err(refused)?;
    succeeded(answer.status)?;
    let mut body = BytesMut::new();
    while let Some(piece) = answer.pieces.next().await {
        body.extend_from_slice(&piece.map_err(refused)?);
    }
    Ok(body.freeze())
}

async fn keep_sound(
    bases: &Bases,
    tenant: &Tenant,
    url: &str,
    name: &str,
    format: Format,
) -> Result<NewContent, FetchFailure> {
    let most = bases.config.knowledge.max_file_bytes;
    let bounds = bounds(SOUND_TIME, most);
    let answer = bases.fetcher.open(request(url)?, bounds).await;
    let answer = answer.map_err(refused)?;
    succeeded(answer.status)?;
    let written = write(bases, tenant, answer.pieces, most).await?;
    let stem = names::derived(name).replace(['/', '\\'], " ");
    Ok(NewContent {
        variant: Variant::Original,
        written,
        file_name: names::derived(&format!("{stem:.180}.{}", format.name())),
        media_type: format.media_type().to_owned(),
        characters: None,
        made_of: None,
    })
}

#[cfg(test)]
mod tests {
    use colloquy_config::KnowledgeConfig;

    use super::*;

    #[test]
    fn videos_are_at_the_very_hosts_of_platforms() {
        let hosts = KnowledgeConfig::default().video_hosts;
        for url in [
            "https://www.youtube.com/watch?v=x",
            "http://youtube.com/watch?v=x",
            "https://m.YouTube.com:443/watch?v=x",
            "https://youtu.be/x",
            "https://vimeo.com/1",
            "https://player.vimeo.com/video/1",
        ] {
            assert!(is_of(&hosts, url), "{url}");
        }
        for url in [
            "https://consent.youtube.com/m?continue=http://169.254.169.254/latest/meta-data/",
            "https://accounts.youtube.com/x",
            "https://www.youtube.com.example.com/watch?v=x",
            "https://notyoutube.com/watch?v=x",
            "https://www.youtube.com./watch?v=x",
            "https://www.youtube.com:8443/watch?v=x",
            "https://user@www.youtube.com/watch?v=x",
            "ftp://www.youtube.com/watch?v=x",
            "https://api.vimeo.com/videos/1",
            "nothing",
        ] {
            assert!(!is_of(&hosts, url), "{url}");
        }
    }
}
