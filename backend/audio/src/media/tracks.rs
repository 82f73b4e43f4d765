//! The tracks of a file whose sound is decoded.

use symphonia::core::{
    codecs::{CodecParameters, audio::CODEC_ID_NULL_AUDIO},
    formats::{FormatReader, Track, TrackType},
};

use super::{MediaError, decoder::Decoder, mp4};

/// Returns the tracks that are decoded, at a rate where the decoder has it, with their decoders: the default track first.
///
/// # Errors
/// When there is none: why the first one is not decoded.
pub(super) fn decoded(
    format: &dyn FormatReader,
    entries: &[mp4::Entry],
    rate_hz: u32,
) -> Result<Vec<(Track, Decoder)>, MediaError> {
    let default = format.default_track(TrackType::Audio);
    let default = default.map(|track| track.id);
    let mut tracks = format.tracks().to_vec();
    tracks.sort_by_key(|track| Some(track.id) != default);
    let (mut decoded, mut refused) = (Vec::new(), None);
    for mut track in tracks {
        let entry = entries.iter().find(|entry| entry.track_id == track.id);
        let named = || entry.map(|entry| MediaError::Unsupported(entry.name()));
        let Some(CodecParameters::Audio(parameters)) = &mut track.codec_params else {
            refused = refused.or_else(named);
            continue;
        };
        if let Some(entry) = entry {
            entry.amend(parameters);
        }
        if parameters.codec == CODEC_ID_NULL_AUDIO {
            let unnamed = || Some(MediaError::Unsupported("it is not named".to_owned()));
            refused = refused.or_else(named).or_else(unnamed);
            continue;
        }
        match Decoder::of(parameters, track.time_base, rate_hz) {
            Ok(decoder) => decoded.push((track, decoder)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match decoded.is_empty() {
        true => Err(refused.unwrap_or(MediaError::NoSound)),
        false => Ok(decoded),
    }
}
