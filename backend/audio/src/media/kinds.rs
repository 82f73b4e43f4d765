//! Names of the kinds of sound that are not decoded, for whoever uploaded the file.

use symphonia::core::{
    codecs::audio::{AudioCodecId, well_known::*},
    formats::Track,
};

/// What a sound is called that has no decoder.
pub(super) fn undecoded(codec: AudioCodecId) -> String {
    name(codec).map_or_else(|| format!("codec {codec}"), str::to_owned)
}

/// Returns the name of layer 1 or 2 of MPEG for a track that says that it has layer 3, as MPEG-4 files do for all three, and whose first packet is
/// of another one. Source: ISO/IEC 11172-3, 2.4.1.3.
pub(super) fn undecoded_layer(track: &Track, first: &[u8]) -> Option<String> {
    let codec = track.codec_params.as_ref()?.audio()?.codec;
    let &[0xFF, second, ..] = first else {
        return None;
    };
    let layer = match (second >> 1) & 3 {
        2 => CODEC_ID_MP2,
        3 => CODEC_ID_MP1,
        _ => return None,
    };
    let is_layer = codec == CODEC_ID_MP3 && second >= 0xE0;
    is_layer.then(|| undecoded(layer))
}

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
