//! From packets to samples: those of Opus by libopus and of AAC by `syom`, all others by the container library, which has no decoder of Opus, and of
//! AAC one for two channels of low complexity.

use opus::Channels;
use symphonia::{
    core::{
        codecs::audio::{
            AudioCodecParameters, AudioDecoder, AudioDecoderOptions,
            well_known::{CODEC_ID_AAC, CODEC_ID_OPUS},
        },
        errors::{Error, decode_error},
        packet::Packet,
        units::TimeBase,
    },
    default::get_codecs,
};

use super::{MediaError, aac::Aac, kinds};

/// RFC 6716, 3.2.5: no packet is longer than 120 ms.
const MAX_PACKET_MS: usize = 120;
/// The rates that Opus is decoded to, and the one that it has inside.
const OPUS_RATES: [u32; 5] = [8_000, 12_000, 16_000, 24_000, 48_000];
const OPUS_HZ: u32 = 48_000;
/// Where the gain stands in the header of Opus (RFC 7845, 5.1).
const OPUS_GAIN: usize = 16;

/// A decoder for one track.
pub(super) enum Decoder {
    /// At the rate of what comes out where Opus has it.
    Opus {
        opus: opus::Decoder,
        time_base: Option<TimeBase>,
        rate_hz: u32,
        channels: usize,
    },
    /// One channel, or two.
    Aac(Box<Aac>),
    Other(Box<dyn AudioDecoder>),
}

impl Decoder {
    /// The decoder of a track, of which samples at this rate are wanted.
    pub(super) fn of(
        parameters: &AudioCodecParameters,
        time_base: Option<TimeBase>,
        wanted_hz: u32,
    ) -> Result<Self, MediaError> {
        if parameters.codec == CODEC_ID_AAC {
            return Aac::of(parameters).map(Box::new).map(Self::Aac);
        }
        if parameters.codec != CODEC_ID_OPUS {
            let options = AudioDecoderOptions::default();
            let decoder = get_codecs().make_audio_decoder(parameters, &options);
            return match decoder {
                Ok(decoder) => Ok(Self::Other(decoder)),
                Err(Error::Unsupported(_)) => {
                    Err(MediaError::Unsupported(kinds::undecoded(parameters.codec)))
                }
                Err(error) => Err(error.into()),
            };
        }
        let channels = parameters
            .channels
            .as_ref()
            .map_or(1, |channels| channels.count());
        if !(1..=2).contains(&channels) {
            let what = format!("Opus with {channels} channels");
            return Err(MediaError::Unsupported(what));
        }
        let malformed = |error: opus::Error| MediaError::Malformed(format!("Opus: {error}"));
        let rate_hz = match OPUS_RATES.contains(&wanted_hz) {
            true => wanted_hz,
            false => OPUS_HZ,
        };
        let layout = match channels {
            1 => Channels::Mono,
            _ => Channels::Stereo,
        };
        let mut opus = opus::Decoder::new(rate_hz, layout).map_err(malformed)?;
        let header = parameters.extra_data.as_deref().unwrap_or_default();
        if let Some([low, high]) = header.get(OPUS_GAIN..OPUS_GAIN + 2) {
            let gain = i16::from_le_bytes([*low, *high]);
            opus.set_gain(gain.into()).map_err(malformed)?;
        }
        Ok(Self::Opus {
            opus,
            time_base,
            rate_hz,
            channels,
        })
    }

    /// Keeps what later packets may need of the first one of the track, from wherever they are decoded.
    pub(super) fn remember(&mut self, first: &Packet) {
        if let Self::Aac(aac) = self {
            aac.remember(&first.data);
        }
    }

    /// What comes next does not follow what came before.
    pub(super) fn reset(&mut self) {
        match self {
            // Without that it is what a lost packet is; the first samples after it are not given out anyway.
            Self::Opus { opus, .. } => drop(opus.reset_state()),
            Self::Aac(aac) => aac.reset(),
            Self::Other(decoder) => decoder.reset(),
        }
    }

    /// Puts the samples of a packet into `interleaved`, in the place of those before, and gives their rate and channels.
    pub(super) fn decode(
        &mut self,
        packet: &Packet,
        interleaved: &mut Vec<i16>,
    ) -> Result<(u32, usize), Error> {
        match self {
            Self::Opus {
                opus,
                time_base,
                rate_hz,
                channels,
            } => {
                let channels = *channels;
                interleaved.resize(channels * *rate_hz as usize * MAX_PACKET_MS / 1_000, 0);
                let Ok(count) = opus.decode(&packet.data, interleaved, false) else {
                    return decode_error("opus: a packet that is none");
                };
                let samples = |units| {
                    let time = time_base.and_then(|base| base.calc_duration(units));
                    let samples = time.map_or(0, |time| {
                        time.as_micros() * i128::from(*rate_hz) / 1_000_000
                    });
                    usize::try_from(samples).unwrap_or(0)
                };
                let end = count.saturating_sub(samples(packet.trim_end));
                interleaved.truncate(channels * end);
                let begin = channels * samples(packet.trim_start).min(end);
                interleaved.drain(..begin);
                Ok((*rate_hz, channels))
            }
            Self::Aac(aac) => match aac.decode(&packet.data, interleaved) {
                Ok((rate_hz @ 1.., channels @ 1..)) => Ok((rate_hz, channels)),
                Ok(_) | Err(_) => decode_error("aac: a packet that is none"),
            },
            Self::Other(decoder) => {
                let sound = decoder.decode(packet)?;
                sound.copy_to_vec_interleaved(interleaved);
                Ok((sound.spec().rate(), sound.spec().channels().count()))
            }
        }
    }
}
