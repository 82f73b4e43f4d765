//! AAC: low complexity and high efficiency, of up to eight channels, of which more than two are mixed to one.
//!
//! `syom` 0.9 refuses a packet with a fill element of a reserved type, or with fill bytes that are not 0xA5; other decoders pass over both.
//! Where such an element stands is known only once the spectrum before it is decoded, so it cannot be taken out here.

use symphonia::core::codecs::audio::AudioCodecParameters;
use syom::{ChannelMode, DecodeOptions, Decoder};

use super::MediaError;

/// The longest packet of eight channels, in bytes: a channel has 6,144 bits at most (ISO/IEC 14496-3, subpart 4).
const MOST_PACKET: usize = 8 * 768;

/// A decoder of packets that are a raw data block each.
pub(super) struct Aac {
    decoder: Decoder,
    /// The `AudioSpecificConfig`.
    config: Box<[u8]>,
    /// The first packet of the track. Its header of spectral band replication may be the only one: later packets then lean on it.
    first: Option<Box<[u8]>>,
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
        let channels = parameters.channels.as_ref();
        let mode = match channels.map(|channels| channels.count()) {
            Some(2) => ChannelMode::Split,
            _ => ChannelMode::Mono,
        };
        let options = DecodeOptions::speech()
            .with_channel_mode(mode)
            .with_max_duration_secs(f64::INFINITY);
        let decoder = Decoder::from_asc(&config, options)
            .map_err(|error| unsupported(format!("this kind of AAC ({error})")))?;
        Ok(Self {
            decoder,
            config,
            first: None,
        })
    }

    /// Keeps the first packet of the track for those that lean on it.
    pub(super) fn remember(&mut self, first: &[u8]) {
        self.first = (first.len() <= MOST_PACKET).then(|| first.into());
    }

    /// What comes next does not follow what came before.
    pub(super) fn reset(&mut self) {
        self.decoder.reset();
        // It was taken before, and a decoder that does not take it refuses every packet.
        drop(self.decoder.set_asc(&self.config));
    }

    /// Puts the interleaved samples of a packet into `samples`, in the place of those before, and gives their rate and channels; 0 without any.
    pub(super) fn decode(
        &mut self,
        packet: &[u8],
        samples: &mut Vec<i16>,
    ) -> Result<(u32, usize), syom::AacError> {
        let mut decoded = self.attempt(packet, samples);
        if decoded.is_err() {
            self.reset();
            if self.begin_with_first() {
                decoded = self.attempt(packet, samples);
            }
        }
        if decoded.is_err() {
            self.reset();
        }
        decoded
    }

    /// Has the decoder know what the first packet says. Returns false if there is none that can be decoded.
    fn begin_with_first(&mut self) -> bool {
        let first = self.first.as_deref();
        first.is_some_and(|first| self.decoder.decode_au(first, |_| Ok(())).is_ok())
    }

    fn attempt(
        &mut self,
        packet: &[u8],
        samples: &mut Vec<i16>,
    ) -> Result<(u32, usize), syom::AacError> {
        samples.clear();
        let (mut rate_hz, mut channels) = (0, 0);
        self.decoder.decode_au(packet, |frame| {
            (rate_hz, channels) = (frame.sample_rate, frame.planar.len());
            let length = frame.planar.iter().map(|plane| plane.len()).min();
            for at in 0..length.unwrap_or(0) {
                let moment = frame.planar.iter().map(|plane| plane[at]);
                samples.extend(moment.map(|sample| (sample * 32_768.0) as i16));
            }
            Ok(())
        })?;
        Ok((rate_hz, channels))
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
