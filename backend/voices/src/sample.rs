//! Sound as a sample: Opus, 96 kb/s, mono.

use bytes::Bytes;
use colloquy_accounts::Tenant;
use colloquy_audio::{
    encode::{EncodeError, opus_file},
    loudness::{self, Gain},
    media::Container,
    pauses::is_silent,
};
use colloquy_base::{
    fair_queue::{Claim, Priority},
    invalid::InvalidField,
};
use colloquy_blobs::{WriteError, Written};
use colloquy_digitize::{Input, sound};
use colloquy_http::ApiError;
use futures_util::Stream;
use tokio::task::spawn_blocking;

use super::{
    cutting::{RATE_HZ, SHORTEST_SAMPLE},
    error::VoiceError,
    voice::Original,
};
use crate::Voices;

/// The longest sample that is added by itself, in seconds.
pub(super) const LONGEST_SECONDS: usize = 60;
/// The bits of a second.
const BITRATE_BPS: i32 = 96_000;

/// A sample as a file.
pub(super) fn encoded(sound: &[i16]) -> Result<Bytes, EncodeError> {
    opus_file(sound, RATE_HZ as u32, BITRATE_BPS, rand::random()).map(Bytes::from)
}

/// How long sound is, in milliseconds.
pub(super) fn milliseconds(sound: &[i16]) -> i64 {
    (sound.len() * 1_000 / RATE_HZ) as i64
}

/// Takes a recording as it comes, and looks what it is. It goes away by itself when nothing is made of it.
pub(super) async fn receive(
    voices: &Voices,
    tenant: &Tenant,
    pieces: impl Stream<Item = Result<Bytes, ApiError>> + Send,
) -> Result<(Written, Container), VoiceError> {
    let most = voices.config.voices.max_file_bytes;
    let written = voices.blobs.write(tenant.partner(), pieces, most).await?;
    let beginning = voices
        .blobs
        .beginning(&written.key, written.bytes, Container::BEGINNING)
        .await?;
    let container = Container::of_beginning(&beginning);
    match container.filter(|container| *container != Container::Avi) {
        Some(container) => Ok((written, container)),
        None => {
            voices.blobs.discard(&written).await;
            let message =
                "file is no recording of a supported type: MP3, WAV, Ogg, FLAC, M4A, MP4, WebM";
            Err(InvalidField::new("file", message).into())
        }
    }
}

/// A recording as one sample: its file, and how long it is in milliseconds.
pub(super) async fn of_recording(
    voices: &Voices,
    tenant: &Tenant,
    recording: &Original,
) -> Result<(Written, i64), VoiceError> {
    let claim = Claim::new(Priority::Request, tenant.partner().as_str());
    // Who waits holds nothing.
    let _place = voices.computing.enter(&claim).await?;
    let file = voices.blobs.local(&recording.key, recording.bytes).await?;
    let input = Input::File(file.path().to_owned());
    let window = sound::Span {
        rate_hz: RATE_HZ as u32,
        from: 0,
        most: (LONGEST_SECONDS + 1) * RATE_HZ,
    };
    let decoded = sound::window(&voices.sandbox, &claim, &input, recording.container, window);
    let window = decoded.await?;
    let wrong = |message: String| VoiceError::Invalid(InvalidField::new("file", message));
    if window.samples.len() > LONGEST_SECONDS * RATE_HZ {
        return Err(wrong(format!("a sample has {LONGEST_SECONDS} s at most")));
    }
    if window.samples.len() < SHORTEST_SAMPLE {
        return Err(wrong("a sample has 1 s at least".to_owned()));
    }
    if is_silent(&window.samples) {
        return Err(wrong("nothing is to be heard in it".to_owned()));
    }
    let levelled = spawn_blocking(move || {
        let values = window.samples.iter().copied().map(loudness::value);
        let values: Vec<f32> = values.collect();
        let gain = Gain::of(&values, RATE_HZ as u32);
        let sound: Vec<i16> = values.into_iter().map(|value| gain.sample(value)).collect();
        encoded(&sound).map(|file| (file, milliseconds(&sound)))
    });
    let internal = |error: anyhow::Error| VoiceError::Internal(error);
    let (file, length) = levelled
        .await
        .map_err(|error| internal(error.into()))?
        .map_err(|error| internal(error.into()))?;
    Ok((write(voices, tenant, file).await?, length))
}

/// Writes a file of a partner. It goes away by itself when it is not kept.
pub(super) async fn write(
    voices: &Voices,
    tenant: &Tenant,
    file: Bytes,
) -> Result<Written, VoiceError> {
    let written = voices.blobs.write_bytes(tenant.partner(), file).await;
    written.map_err(|error| match error {
        WriteError::NoRoom(why) => why.into(),
        WriteError::Object(error) => error.into(),
        WriteError::Database(error) => error.into(),
        WriteError::TooLarge(most) => VoiceError::TooLarge(most),
        WriteError::Source(never) => match never {},
    })
}
