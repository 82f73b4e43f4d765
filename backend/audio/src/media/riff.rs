//! RIFF files: their chunks, and the formats of sound in them (`WAVEFORMATEX`). Sources: Microsoft, "Multiple Media Registrations" (RFC 2361),
//! `mmreg.h` and `ksmedia.h`.

use std::borrow::Cow;

use super::{Container, MediaError};

/// Kinds of sound that are decoded (`WAVEFORMATEX.wFormatTag`).
const PCM: u16 = 1;
const MS_ADPCM: u16 = 2;
const FLOAT: u16 = 3;
const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;
const IMA_ADPCM: u16 = 0x11;
const MP3: u16 = 0x55;
/// The kind is that of a sub-format.
const EXTENSIBLE: u16 = 0xFFFE;
/// Names of those that are not decoded.
const NAMES: [(u16, &str); 51] = [
    (0x05, "IBM CVSD"),
    (0x08, "DTS"),
    (0x0A, "Windows Media Voice"),
    (0x10, "OKI ADPCM"),
    (0x12, "MediaSpace ADPCM"),
    (0x13, "Sierra ADPCM"),
    (0x14, "G.723 ADPCM"),
    (0x17, "Dialogic ADPCM"),
    (0x20, "Yamaha ADPCM"),
    (0x22, "TrueSpeech"),
    (0x31, "GSM 6.10"),
    (0x40, "G.721 ADPCM"),
    (0x41, "G.728"),
    (0x42, "G.723.1"),
    (0x45, "G.726"),
    (0x50, "MPEG layer 1 or 2"),
    (0x61, "Duck ADPCM"),
    (0x62, "VoxWare"),
    (0x64, "G.726"),
    (0x65, "G.722"),
    (0x75, "VoxWare MetaSound"),
    (0x83, "G.729"),
    (0x85, "G.726"),
    (0x86, "GSM 6.10"),
    (0x92, "AC-3"),
    (0xFF, "AAC"),
    (0x111, "G.723.1"),
    (0x112, "Siren"),
    (0x130, "ACELP.net"),
    (0x133, "G.729"),
    (0x134, "G.729"),
    (0x140, "G.726"),
    (0x150, "PureVoice"),
    (0x151, "PureVoice"),
    (0x160, "Windows Media Audio 1"),
    (0x161, "Windows Media Audio 2"),
    (0x162, "Windows Media Audio Professional"),
    (0x163, "Windows Media Audio Lossless"),
    (0x200, "Creative ADPCM"),
    (0x270, "ATRAC3"),
    (0x401, "Intel Music Coder"),
    (0x1600, "AAC"),
    (0x1602, "AAC"),
    (0x1610, "AAC"),
    (0x2000, "AC-3"),
    (0x2001, "DTS"),
    (0x566F, "Vorbis"),
    (0x704F, "Opus"),
    (0xA100, "G.723.1"),
    (0xA109, "Speex"),
    (0xF1AC, "FLAC"),
];

/// Offsets in a format that is extensible: the samples of a block, which formats of ADPCM have there, too, and the identifier of the sub-format, which begins with a kind.
const BLOCK_SAMPLES_AT: usize = 18;
const SUB_FORMAT_AT: usize = 24;
/// Length of a format up to its extension.
const HEAD_BYTES: usize = 16;
/// Offsets of the channels, of the bytes of a block and of the bits of a sample in it.
const CHANNELS_AT: usize = 2;
const BLOCK_BYTES_AT: usize = 12;
const BITS_AT: usize = 14;
/// What follows the kind in an identifier of a sub-format, and in one of ambisonic sound (B-format), whose samples stand as they are.
const OF_KINDS: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71];
const OF_AMBISONIC: [u8; 14] = [
    0, 0, 0x21, 0x07, 0xD3, 0x11, 0x86, 0x44, 0xC8, 0xC1, 0xCA, 0, 0, 0,
];
/// Bytes of the extension of Microsoft's ADPCM, with seven pairs of coefficients, which decoders have themselves.
const MS_ADPCM_BYTES: usize = 32;
/// The longest format, in bytes: one that is extensible, and one of Microsoft's ADPCM.
const LONGEST: usize = 40;
const LONGEST_MS_ADPCM: usize = HEAD_BYTES + 2 + MS_ADPCM_BYTES;

/// The chunks of a list; one that is cut short has what there is of it.
pub(super) struct Chunks<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Chunks<'a> {
    type Item = ([u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        let [a, b, c, d, length @ ..] = *head;
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        let content = &rest[..length.min(rest.len())];
        // Chunks begin at even places.
        let padded = length.saturating_add(length % 2).min(rest.len());
        self.0 = &rest[padded..];
        Some(([a, b, c, d], content))
    }
}

/// Returns the sound of a WAV file in the form that the container library reads: MP3 as such, and other sound in a WAV file, which is the
/// given one unless its format has to be written in another way.
///
/// # Errors
/// When the sound is of a kind that is not decoded.
pub(super) fn sound_of(file: &[u8]) -> Result<(Container, Cow<'_, [u8]>), MediaError> {
    let unchanged = (Container::Wav, Cow::Borrowed(file));
    let Some((b"RIFF", rest)) = file.split_first_chunk::<4>() else {
        return Ok(unchanged);
    };
    let Some(list) = rest.get(8..) else {
        return Ok(unchanged);
    };
    let mut format = None;
    for (id, content) in Chunks(list) {
        match (&id, format) {
            (b"fmt ", None) => format = Some(content),
            // The library tells of a file without a format or without data.
            (b"data", None) => return Ok(unchanged),
            (b"data", Some(format)) => return of_wav(file, format, Some(content)),
            _ => {}
        }
    }
    match format {
        Some(format) => of_wav(file, format, None),
        None => Ok(unchanged),
    }
}

fn of_wav<'a>(
    file: &'a [u8],
    format: &'a [u8],
    data: Option<&'a [u8]>,
) -> Result<(Container, Cow<'a, [u8]>), MediaError> {
    let Some(kind) = kind(format) else {
        return Ok((Container::Wav, Cow::Borrowed(file)));
    };
    check(kind, "WAV")?;
    Ok(match kind {
        Kind::Tag(MP3) => (Container::Mp3, Cow::Borrowed(data.unwrap_or_default())),
        _ => match (plain(format), data) {
            (Some(format), Some(data)) => (Container::Wav, Cow::Owned(wav(&format, data))),
            // The library tells of a file without data.
            _ => (Container::Wav, Cow::Borrowed(file)),
        },
    })
}

/// Returns the sound of a stream of another file as a file of its own.
///
/// # Errors
/// When it has no format, or is of a kind that is not decoded; `file` is the name of the kind of file.
pub(super) fn file_of(
    format: &[u8],
    data: Vec<u8>,
    file: &str,
) -> Result<(Container, Vec<u8>), MediaError> {
    let kind =
        kind(format).ok_or_else(|| MediaError::Malformed("its sound has no format".to_owned()))?;
    check(kind, file)?;
    Ok(match (kind, plain(format)) {
        (Kind::Tag(MP3), _) => (Container::Mp3, data),
        (_, Some(format)) => (Container::Wav, wav(&format, &data)),
        (_, None) => (Container::Wav, wav(format, &data)),
    })
}

/// What a format says that sound is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The kind of this number.
    Tag(u16),
    /// Ambisonic samples as they are.
    Ambisonic,
    /// A sub-format that is none of the registered kinds, by its identifier.
    Other([u8; 16]),
}

fn kind(format: &[u8]) -> Option<Kind> {
    match u16_at(format, 0)? {
        EXTENSIBLE => {
            let identifier = format.get(SUB_FORMAT_AT..)?.first_chunk::<16>()?;
            let [low, high, rest @ ..] = *identifier;
            let tag = u16::from_le_bytes([low, high]);
            Some(match rest {
                OF_KINDS => Kind::Tag(tag),
                OF_AMBISONIC if matches!(tag, PCM | FLOAT) => Kind::Ambisonic,
                _ => Kind::Other(*identifier),
            })
        }
        tag => Some(Kind::Tag(tag)),
    }
}

/// Refuses a kind that is not decoded, by its name.
fn check(kind: Kind, file: &str) -> Result<(), MediaError> {
    match kind {
        Kind::Ambisonic | Kind::Tag(PCM | FLOAT | A_LAW | MU_LAW | MS_ADPCM | IMA_ADPCM | MP3) => {
            Ok(())
        }
        Kind::Tag(tag) => {
            let known = NAMES.iter().find(|(known, _)| *known == tag);
            let name = known.map_or("an unknown kind", |(_, name)| *name);
            let what = format!("{name} (0x{tag:04X}) in {file}");
            Err(MediaError::Unsupported(what))
        }
        Kind::Other(identifier) => {
            // Its bytes as they stand in the file.
            let number = u128::from_be_bytes(identifier);
            let what = format!("an unknown sub-format ({number:032X}) in {file}");
            Err(MediaError::Unsupported(what))
        }
    }
}

/// Returns a format in the one form that the container library reads for its kind: sub-formats as their kinds, A-law and µ-law with an empty
/// extension, and ADPCM with a whole one. Returns none for formats that are in it, and for those of other kinds.
fn plain(format: &[u8]) -> Option<Vec<u8>> {
    let Some(Kind::Tag(tag @ (A_LAW | MU_LAW | MS_ADPCM | IMA_ADPCM))) = kind(format) else {
        return None;
    };
    let is_extensible = u16_at(format, 0) == Some(EXTENSIBLE);
    let extension = match tag {
        MS_ADPCM => MS_ADPCM_BYTES,
        IMA_ADPCM => 2,
        _ => 0,
    };
    if !is_extensible && has_extension(format, tag, extension) {
        return None;
    }
    let stored_bits = u16_at(format, BITS_AT).filter(|bits| !is_extensible && *bits > 0);
    let bits = stored_bits.unwrap_or(if extension > 0 { 4 } else { 8 });
    let mut plain = tag.to_le_bytes().to_vec();
    plain.extend_from_slice(format.get(2..BITS_AT)?);
    plain.extend(bits.to_le_bytes());
    plain.extend(u16::try_from(extension).ok()?.to_le_bytes());
    if extension > 0 {
        let stored = u16_at(format, BLOCK_SAMPLES_AT).filter(|samples| *samples > 0);
        let samples = stored.or_else(|| block_samples(format, tag))?;
        plain.extend(samples.to_le_bytes());
        if !is_extensible {
            // Coefficients.
            plain.extend_from_slice(format.get(BLOCK_SAMPLES_AT + 2..).unwrap_or_default());
        }
    }
    plain.resize(HEAD_BYTES + 2 + extension, 0);
    Some(plain)
}

/// True if a format that is not extensible has an extension of these bytes, as the container library wants it for a kind.
fn has_extension(format: &[u8], tag: u16, bytes: usize) -> bool {
    let stored = u16_at(format, HEAD_BYTES).map(usize::from);
    match tag {
        A_LAW | MU_LAW => format.len() == HEAD_BYTES + 2 && stored == Some(bytes),
        MS_ADPCM => {
            stored.is_some_and(|stored| stored >= bytes && format.len() >= HEAD_BYTES + 2 + stored)
        }
        _ => format.len() >= HEAD_BYTES + 2 + bytes && stored == Some(bytes),
    }
}

/// Returns the samples that a channel has in a block of ADPCM, which begins with a header for each channel: 7 bytes with two samples in
/// Microsoft's, and 4 bytes with one in IMA's. The others take half a byte each.
fn block_samples(format: &[u8], tag: u16) -> Option<u16> {
    let channels = u32::from(u16_at(format, CHANNELS_AT)?);
    let block = u32::from(u16_at(format, BLOCK_BYTES_AT)?);
    let (header, samples) = match tag {
        MS_ADPCM => (7, 2),
        _ => (4, 1),
    };
    let halves = block.checked_sub(header * channels)? * 2;
    u16::try_from(halves.checked_div(channels)? + samples).ok()
}

fn u16_at(format: &[u8], at: usize) -> Option<u16> {
    let bytes = format.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*bytes))
}

/// A WAV file of a format and its data.
fn wav(format: &[u8], data: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let longest = match u16_at(format, 0) {
        Some(MS_ADPCM) => LONGEST_MS_ADPCM,
        _ => LONGEST,
    };
    let format = &format[..format.len().min(longest) / 2 * 2];
    let mut wav = Vec::with_capacity(28 + format.len() + data.len());
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&length(20 + format.len() + data.len()));
    wav.extend_from_slice(b"WAVEfmt ");
    wav.extend_from_slice(&length(format.len()));
    wav.extend_from_slice(format);
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&length(data.len()));
    wav.extend_from_slice(data);
    wav
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a format of ADPCM.
    fn head(tag: u16, channels: u16, block_bytes: u16) -> Vec<u8> {
        let mut head = [tag, channels].map(u16::to_le_bytes).concat();
        head.resize(BLOCK_BYTES_AT, 0);
        head.extend(block_bytes.to_le_bytes());
        head.extend(4_u16.to_le_bytes());
        head
    }

    #[test]
    fn samples_of_blocks_follow_from_their_bytes() {
        for (tag, channels, block_bytes, expected) in [
            (MS_ADPCM, 1, 256, Some(500)),
            (MS_ADPCM, 2, 2_048, Some(2_036)),
            (IMA_ADPCM, 1, 1_024, Some(2_041)),
            (IMA_ADPCM, 2, 2_048, Some(2_041)),
            (IMA_ADPCM, 2, 7, None),
            (MS_ADPCM, 0, 256, None),
        ] {
            let plain = plain(&head(tag, channels, block_bytes));
            let samples = plain.and_then(|plain| u16_at(&plain, BLOCK_SAMPLES_AT));
            assert_eq!(samples, expected, "{tag} {channels} {block_bytes}");
        }
    }

    #[test]
    fn coefficients_are_kept() {
        let mut format = head(MS_ADPCM, 1, 256);
        // A length of the extension that is missing, samples of a block, and a number of pairs.
        format.extend([0, 0, 0xF4, 1, 7, 0, 0, 1]);
        let plain = plain(&format).unwrap();
        assert_eq!(plain.len(), LONGEST_MS_ADPCM);
        assert_eq!(plain[HEAD_BYTES..][..9], [32, 0, 0xF4, 1, 7, 0, 0, 1, 0]);
    }
}
