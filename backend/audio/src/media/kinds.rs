//! Names of the kinds of sound that are not decoded, for whoever uploaded the file.

use symphonia::core::codecs::audio::{AudioCodecId, AudioCodecParameters, well_known::*};

/// What a sound is called that has no decoder.
pub(super) fn undecoded(parameters: &AudioCodecParameters) -> String {
    if parameters.codec == CODEC_ID_AAC {
        return aac(parameters);
    }
    let codec = parameters.codec;
    name(codec).map_or_else(|| format!("codec {codec}"), str::to_owned)
}

/// Kinds of AAC with other objects than those of low complexity, or more channels than two. Source: ISO/IEC 14496-3, sections 1.6.2
/// and 1.6.3.
fn aac(parameters: &AudioCodecParameters) -> String {
    let config = parameters
        .extra_data
        .as_deref()
        .and_then(<[u8]>::first_chunk);
    let (object, channels) = match config {
        Some([first, second]) => (first >> 3, (second >> 3) & 0x0F),
        None => {
            let channels = parameters
                .channels
                .as_ref()
                .map_or(0, |channels| channels.count());
            (LOW_COMPLEXITY, u8::try_from(channels).unwrap_or_default())
        }
    };
    // The last layout that is numbered has one more for low tones.
    let channels = if channels == 7 { 8 } else { channels };
    match (object, channels) {
        (5 | 29, _) => "HE-AAC; AAC of low complexity (AAC-LC) is supported".to_owned(),
        (LOW_COMPLEXITY, 3..) => {
            format!("AAC with {channels} channels; mono and stereo are supported")
        }
        _ => "AAC that is not of low complexity (AAC-LC)".to_owned(),
    }
}

/// The object type of low complexity.
const LOW_COMPLEXITY: u8 = 2;

fn name(codec: AudioCodecId) -> Option<&'static str> {
    const NAMES: [(AudioCodecId, &str); 22] = [
        (CODEC_ID_AC3, "AC-3"),
        (CODEC_ID_EAC3, "E-AC-3"),
        (CODEC_ID_AC4, "AC-4"),
        (CODEC_ID_DCA, "DTS"),
        (CODEC_ID_TRUEHD, "TrueHD"),
        (CODEC_ID_ADPCM_G722, "G.722"),
        (CODEC_ID_ADPCM_G726, "G.726"),
        (CODEC_ID_ADPCM_G726LE, "G.726"),
        (CODEC_ID_ADPCM_IMA_QT, "IMA ADPCM of QuickTime"),
        (CODEC_ID_MP1, "MPEG layer 1"),
        (CODEC_ID_MP2, "MPEG layer 2"),
        (CODEC_ID_WMA, "Windows Media Audio"),
        (CODEC_ID_SPEEX, "Speex"),
        (CODEC_ID_COOK, "RealAudio (Cook)"),
        (CODEC_ID_RA10, "RealAudio 1"),
        (CODEC_ID_RA20, "RealAudio 2"),
        (CODEC_ID_SIPR, "RealAudio (SIPR)"),
        (CODEC_ID_MONKEYS_AUDIO, "Monkey's Audio"),
        (CODEC_ID_MUSEPACK, "Musepack"),
        (CODEC_ID_TTA, "True Audio"),
        (CODEC_ID_WAVPACK, "WavPack"),
        (CODEC_ID_SBC, "SBC"),
    ];
    NAMES
        .iter()
        .find(|(known, _)| *known == codec)
        .map(|(_, name)| *name)
}
