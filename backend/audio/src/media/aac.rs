//! AAC: low complexity and high efficiency, of up to eight channels, which are mixed to one.

use symphonia::core::codecs::audio::AudioCodecParameters;
use syom::{DecodeOptions, Decoder};

use super::MediaError;

/// A decoder of packets that are a raw data block each.
pub(super) struct Aac {
    decoder: Decoder,
    /// The `AudioSpecificConfig`.
    config: Box<[u8]>,
}

impl Aac {
    pub(super) fn of(parameters: &AudioCodecParameters) -> Result<Self, MediaError> {
        let unsupported = |what: String| MediaError::Unsupported(what);
        let config = match &parameters.extra_data {
            Some(config) => config.clone(),
            None => low_complexity(parameters)
                .ok_or_else(|| unsupported("AAC without its configuration".to_owned()))?,
        };
        // How long a recording may last is the caller's to say.
        let options = DecodeOptions::speech().with_max_duration_secs(f64::INFINITY);
        let decoder = Decoder::from_asc(&config, options)
            .map_err(|error| unsupported(format!("this kind of AAC ({error})")))?;
        Ok(Self { decoder, config })
    }

    /// What comes next does not follow what came before.
    pub(super) fn reset(&mut self) {
        self.decoder.reset();
        // It was taken before, and a decoder that does not take it refuses every packet.
        drop(self.decoder.set_asc(&self.config));
    }

    /// Puts the mono samples of a packet into `samples`, in the place of those before, and gives their rate; 0 without any.
    pub(super) fn decode(
        &mut self,
        packet: &[u8],
        samples: &mut Vec<i16>,
    ) -> Result<u32, syom::AacError> {
        samples.clear();
        let mut rate_hz = 0;
        let decoded = self.decoder.decode_au(packet, |frame| {
            rate_hz = frame.sample_rate;
            let mono = frame.planar.first().copied().unwrap_or_default();
            samples.extend(mono.iter().map(|sample| (sample * 32_768.0) as i16));
            Ok(())
        });
        if let Err(error) = decoded {
            self.reset();
            return Err(error);
        }
        Ok(rate_hz)
    }
}

/// The configuration of low complexity that a container leaves out. Source: ISO/IEC 14496-3, 1.6.2.1.
fn low_complexity(parameters: &AudioCodecParameters) -> Option<Box<[u8]>> {
    const RATES: [u32; 13] = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025,
        8_000, 7_350,
    ];
    const LOW_COMPLEXITY: u16 = 2;
    let rate = RATES
        .iter()
        .position(|rate| Some(*rate) == parameters.sample_rate)?;
    let channels = parameters.channels.as_ref()?.count();
    let layout = match channels {
        1..=6 => channels,
        8 => 7,
        _ => return None,
    };
    let rate = u16::try_from(rate).ok()?;
    let layout = u16::try_from(layout).ok()?;
    let config = LOW_COMPLEXITY << 11 | rate << 7 | layout << 3;
    Some(Box::from(config.to_be_bytes()))
}
