//! What MPEG-4 and QuickTime files say of their sound beyond what the container library reads: the order of the bytes of samples, samples of a signed
//! byte, A-law and µ-law, and Apple Lossless inside of `wave`. Sources: ISO/IEC 14496-12, and Apple's "QuickTime File Format Specification"
//! (Sound Media).

use std::{borrow::Cow, ops::Range};

use symphonia::core::{
    audio::Channels,
    codecs::audio::{AudioCodecId, AudioCodecParameters, CODEC_ID_NULL_AUDIO, well_known::*},
};

/// The most entries of a file.
const MOST_ENTRIES: usize = 100;
/// Lengths of an entry's content without the boxes in it, by its version.
const CONTENT_BYTES: [usize; 3] = [28, 44, 64];
/// Offsets in it: the version, the channels, and the bits of a sample.
const VERSION_AT: usize = 8;
const CHANNELS_AT: usize = 16;
const BITS_AT: usize = 18;

/// How the samples of a track of sound are written, by the first of its descriptions.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) track_id: u32,
    kind: [u8; 4],
    /// Where the kind stands in the file.
    kind_at: usize,
    channels: u16,
    bits: u16,
    is_little_endian: bool,
    /// The decoder's part of Apple Lossless.
    cookie: Option<Box<[u8]>>,
}

/// Returns the entries of a file's tracks of sound.
pub(super) fn entries(file: &[u8]) -> Vec<Entry> {
    let Some(movie) = child(file, 0..file.len(), b"moov") else {
        return Vec::new();
    };
    let tracks = boxes(file, movie).filter(|(kind, _)| kind == b"trak");
    let entries = tracks.filter_map(|(_, track)| Entry::of(file, track));
    entries.take(MOST_ENTRIES).collect()
}

/// Returns the file in the form that the container library reads, which refuses it for samples of a signed byte.
pub(super) fn readable<'a>(file: &'a [u8], entries: &[Entry]) -> Cow<'a, [u8]> {
    let mut readable = Cow::Borrowed(file);
    for entry in entries.iter().filter(|entry| entry.is_signed_byte()) {
        let kind = readable.to_mut().get_mut(entry.kind_at..entry.kind_at + 4);
        if let Some(kind) = kind {
            kind.copy_from_slice(b"raw ");
        }
    }
    readable
}

impl Entry {
    /// The entry of a track, if that is sound.
    fn of(file: &[u8], track: Range<usize>) -> Option<Self> {
        let media = child(file, track.clone(), b"mdia")?;
        let handler = child(file, media.clone(), b"hdlr")?;
        if file.get(handler)?.get(8..12)? != b"soun" {
            return None;
        }
        let head = file.get(child(file, track, b"tkhd")?)?;
        // Behind two times, which are longer in version 1.
        let track_id_at = if *head.first()? == 1 { 20 } else { 12 };
        let track_id = u32::from_be_bytes(*head.get(track_id_at..)?.first_chunk()?);
        let information = child(file, media, b"minf")?;
        let table = child(file, information, b"stbl")?;
        let descriptions = child(file, table, b"stsd")?;
        let first = descriptions.start.checked_add(8)?..descriptions.end;
        let (kind, content) = boxes(file, first).next()?;
        let kind_at = content.start.checked_sub(4)?;
        let number = |at: usize| -> Option<u16> {
            let content = file.get(content.clone())?.get(at..)?;
            Some(u16::from_be_bytes(*content.first_chunk()?))
        };
        let version = usize::from(number(VERSION_AT)?);
        let inner = content.start + CONTENT_BYTES.get(version)?..content.end;
        let wave = child(file, inner.clone(), b"wave");
        let mut inside = [wave.clone(), Some(inner)].into_iter().flatten();
        let order = inside.find_map(|inside| child(file, inside, b"enda"));
        let order = order.and_then(|order| file.get(order));
        let cookie = wave.and_then(|wave| child(file, wave, b"alac"));
        let cookie = cookie.and_then(|cookie| file.get(cookie)?.get(4..));
        Some(Self {
            track_id,
            kind,
            kind_at,
            channels: number(CHANNELS_AT)?,
            bits: number(BITS_AT)?,
            is_little_endian: order.is_some_and(|order| order.ends_with(&[1])),
            cookie: cookie.map(Box::from),
        })
    }

    fn is_signed_byte(&self) -> bool {
        self.bits == 8 && [b"sowt", b"twos"].contains(&&self.kind)
    }

    /// Corrects what the container library says of the track.
    pub(super) fn amend(&self, parameters: &mut AudioCodecParameters) {
        let of_order = |little: AudioCodecId, big: AudioCodecId| match self.is_little_endian {
            true => little,
            false => big,
        };
        let codec = match &self.kind {
            b"in24" => of_order(CODEC_ID_PCM_S24LE, CODEC_ID_PCM_S24BE),
            b"in32" => of_order(CODEC_ID_PCM_S32LE, CODEC_ID_PCM_S32BE),
            b"fl32" => of_order(CODEC_ID_PCM_F32LE, CODEC_ID_PCM_F32BE),
            b"fl64" => of_order(CODEC_ID_PCM_F64LE, CODEC_ID_PCM_F64BE),
            b"alaw" => CODEC_ID_PCM_ALAW,
            b"ulaw" => CODEC_ID_PCM_MULAW,
            _ if self.is_signed_byte() => CODEC_ID_PCM_S8,
            b"alac" if parameters.codec == CODEC_ID_NULL_AUDIO && self.cookie.is_some() => {
                parameters.extra_data.clone_from(&self.cookie);
                CODEC_ID_ALAC
            }
            _ => return,
        };
        parameters.codec = codec;
        if parameters.channels.is_none() {
            parameters.channels = Some(Channels::Discrete(self.channels));
        }
    }

    /// The name of the kind of sound, for one that is not decoded.
    pub(super) fn name(&self) -> String {
        let name = match &self.kind {
            b"ac-3" | b"AC-3" | b"sac3" => "AC-3",
            b"ec-3" => "E-AC-3",
            b"ac-4" => "AC-4",
            b"dtsc" | b"dtse" | b"dtsh" | b"dtsl" => "DTS",
            b"mlpa" => "TrueHD",
            b"ima4" => "IMA ADPCM of QuickTime",
            b"ms\0\x02" => "Microsoft ADPCM in QuickTime",
            b"ms\0\x11" => "IMA ADPCM in QuickTime",
            b".mp1" => "MPEG layer 1",
            b".mp2" => "MPEG layer 2",
            b"samr" => "AMR",
            b"sawb" => "AMR-WB",
            b"MAC3" | b"MAC6" => "MACE",
            b"QDMC" | b"QDM2" => "QDesign Music",
            b"Qclp" | b"sqcp" => "PureVoice",
            b"agsm" => "GSM 6.10",
            b"drms" | b"enca" => "encrypted sound",
            kind => return format!("{} in MPEG-4", kind.escape_ascii()),
        };
        name.to_owned()
    }
}

/// The content of the first box of a kind, if there is one.
fn child(file: &[u8], within: Range<usize>, kind: &[u8; 4]) -> Option<Range<usize>> {
    let mut boxes = boxes(file, within);
    boxes
        .find(|(other, _)| other == kind)
        .map(|(_, content)| content)
}

/// The kinds of the boxes in a part of a file, and where their contents stand; one that is cut short has what there is of it.
fn boxes(file: &[u8], within: Range<usize>) -> impl Iterator<Item = ([u8; 4], Range<usize>)> {
    let Range { start: mut at, end } = within;
    std::iter::from_fn(move || {
        let [a, b, c, d, kind @ ..] = *file.get(at..end)?.first_chunk::<8>()?;
        let (head, length) = match u32::from_be_bytes([a, b, c, d]) {
            // To the end.
            0 => (8, end - at),
            1 => {
                let long = file.get(at + 8..end)?.first_chunk()?;
                (16, usize::try_from(u64::from_be_bytes(*long)).ok()?)
            }
            length => (8, usize::try_from(length).ok()?),
        };
        let next = at.saturating_add(length).min(end);
        let content = at.saturating_add(head)..next;
        at = next;
        (content.start <= content.end).then_some((kind, content))
    })
}
