//! Vorbis in Ogg, by symphonia.

use std::io::{Cursor, ErrorKind};

use colloquy_voice::Resampler;
use symphonia::{
    core::{
        codecs::audio::AudioDecoderOptions,
        errors::Error,
        formats::{FormatOptions, TrackType, probe::Hint},
        io::MediaSourceStream,
        meta::MetadataOptions,
    },
    default::{get_codecs, get_probe},
};

use super::{OggError, RATE_HZ, Samples};

impl From<Error> for OggError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unsupported(_) => Self::Unsupported,
            error => Self::Malformed(format!("Vorbis: {error}")),
        }
    }
}

/// Decodes the first sound of the file.
pub(super) fn decode(file: &[u8], mut out: Samples) -> Result<Vec<i16>, OggError> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(file)), Default::default());
    let mut format = get_probe().probe(
        &Hint::new(),
        source,
        FormatOptions::default(),
        MetadataOptions::default(),
    )?;
    let track = format
        .default_track(TrackType::Audio)
        .ok_or(OggError::Unsupported)?;
    let track_id = track.id;
    let parameters = track.codec_params.as_ref().and_then(|codec| codec.audio());
    let mut decoder = get_codecs().make_audio_decoder(
        parameters.ok_or(OggError::Unsupported)?,
        &AudioDecoderOptions::default(),
    )?;
    let mut resampler: Option<Resampler> = None;
    let mut interleaved = Vec::<i16>::new();
    let mut converted = Vec::new();
    loop {
        let packet = match format.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error.into()),
        };
        if packet.track_id != track_id {
            continue;
        }
        let sound = decoder.decode(&packet)?;
        let (rate_hz, channels) = (sound.spec().rate(), sound.spec().channels().count());
        if !(1..=2).contains(&channels) {
            return Err(OggError::Unsupported);
        }
        let resampler = match &mut resampler {
            Some(resampler) => resampler,
            none => none.insert(
                Resampler::new(rate_hz, RATE_HZ)
                    .map_err(|error| OggError::Malformed(error.to_string()))?,
            ),
        };
        sound.copy_to_vec_interleaved(&mut interleaved);
        let mono = interleaved.chunks_exact(channels).map(|frame| {
            let sum: i32 = frame.iter().map(|sample| i32::from(*sample)).sum();
            (sum / frame.len() as i32) as i16
        });
        resampler.push(mono, &mut converted);
        out.extend(converted.drain(..))?;
    }
    if let Some(mut resampler) = resampler {
        resampler.finish(&mut converted);
        out.extend(converted.drain(..))?;
    }
    Ok(out.samples)
}
