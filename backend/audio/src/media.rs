//! The sound of audio and video files, a window at a time: MP3, WAV, FLAC, Ogg, MPEG-4 (M4A, MP4, MOV, M4V), WebM and AVI.
//!
//! The files are not trusted. What comes out is bounded by what is asked for, and what their decoders may allocate and how long they may
//! take is not, so the files of others are to be decoded in a process of their own.

use std::{
    io::{Cursor, ErrorKind},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use symphonia::{
    core::{
        codecs::audio::{
            AudioCodecId,
            well_known::{
                CODEC_ID_PCM_ALAW, CODEC_ID_PCM_F32LE, CODEC_ID_PCM_F64LE, CODEC_ID_PCM_MULAW,
                CODEC_ID_PCM_S8, CODEC_ID_PCM_S16BE, CODEC_ID_PCM_S16LE, CODEC_ID_PCM_S24LE,
                CODEC_ID_PCM_S32LE, CODEC_ID_PCM_U8,
            },
        },
        errors::Error,
        formats::{FormatOptions, FormatReader, SeekMode, SeekTo, Track, probe::Hint},
        io::MediaSourceStream,
        meta::MetadataOptions,
        packet::Packet,
        units::Time,
    },
    default::get_probe,
};

use self::{decoder::Decoder, output::Output};

mod aac;
mod avi;
mod decoder;
mod kinds;
mod mixer;
mod mp4;
mod output;
mod riff;
mod tracks;

/// Packets that cannot be decoded may stand between others; so many one after another are no sound.
const MOST_BAD_PACKETS: usize = 200;
/// A decoder needs what comes before a packet: in MP3 a frame may use bits of many before it. So much is decoded and not given out.
const PRE_ROLL: Duration = Duration::from_secs(2);
/// Samples as they are, one after the other.
const PLAIN: [AudioCodecId; 10] = [
    CODEC_ID_PCM_S16LE,
    CODEC_ID_PCM_S16BE,
    CODEC_ID_PCM_S24LE,
    CODEC_ID_PCM_S32LE,
    CODEC_ID_PCM_U8,
    CODEC_ID_PCM_F32LE,
    CODEC_ID_PCM_F64LE,
    CODEC_ID_PCM_ALAW,
    CODEC_ID_PCM_MULAW,
    CODEC_ID_PCM_S8,
];
/// The samples of the longest frame of MP3.
const MOST_FRAME_SAMPLES: u64 = 1_152;
/// The most channels of a recording.
const MOST_CHANNELS: usize = 16;
/// A sample above this is sound, and a track in which none was within this time counts as silent beside others.
const AUDIBLE: u16 = 32;
const LISTENED: Duration = Duration::from_secs(600);

/// What sound is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// MPEG layer 3.
    Mp3,
    /// RIFF.
    Wav,
    /// Free Lossless Audio Codec.
    Flac,
    /// Ogg, with Opus, Vorbis or FLAC.
    Ogg,
    /// MPEG-4, QuickTime.
    Mp4,
    /// WebM and Matroska, with Opus, Vorbis or what else they may hold.
    Webm,
    /// Audio Video Interleave.
    Avi,
}

impl Container {
    const ALL: [Self; 7] = [
        Self::Mp3,
        Self::Wav,
        Self::Flac,
        Self::Ogg,
        Self::Mp4,
        Self::Webm,
        Self::Avi,
    ];

    /// How much of a file tells what it is, in bytes.
    pub const BEGINNING: usize = 16;

    /// Its name, which is an extension of its files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mp3 => "mp3",
            Self::Wav => "wav",
            Self::Flac => "flac",
            Self::Ogg => "ogg",
            Self::Mp4 => "mp4",
            Self::Webm => "webm",
            Self::Avi => "avi",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|container| container.name() == name)
    }

    /// What a file is that begins so, [`Self::BEGINNING`] bytes of it; `None` when it is none of these.
    #[must_use]
    pub fn of_beginning(beginning: &[u8]) -> Option<Self> {
        Some(match beginning {
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'A',
                b'V',
                b'E',
                ..,
            ] => Self::Wav,
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'A',
                b'V',
                b'I',
                b' ',
                ..,
            ] => Self::Avi,
            [b'f', b'L', b'a', b'C', ..] => Self::Flac,
            [b'O', b'g', b'g', b'S', ..] => Self::Ogg,
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Self::Mp4,
            [0x1A, 0x45, 0xDF, 0xA3, ..] => Self::Webm,
            // A tag in front, or the first frame of layer 3.
            [b'I', b'D', b'3', ..] => Self::Mp3,
            [0xFF, second, ..] if second & 0xE6 == 0xE2 => Self::Mp3,
            _ => return None,
        })
    }
}

/// Why a file gives no samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum MediaError {
    /// It is not what it says, or damaged.
    #[error("the recording is damaged: {0}")]
    Malformed(String),
    /// There are pictures only.
    #[error("the file has no sound")]
    NoSound,
    /// Its sound is of a kind that is not decoded.
    #[error("the sound of the file is of a kind that is not supported: {0}")]
    Unsupported(String),
}

impl From<Error> for MediaError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unsupported(what) => Self::Unsupported(what.to_owned()),
            error => Self::Malformed(error.to_string()),
        }
    }
}

/// Some of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Mono samples.
    pub samples: Vec<i16>,
    /// Whether nothing comes after them.
    pub is_last: bool,
    /// How long the file says that all of it is.
    pub declared: Option<Duration>,
}

/// Which samples of a recording are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// How many there are in a second.
    pub rate_hz: u32,
    /// The first one.
    pub from: u64,
    /// The most of them.
    pub most: usize,
}

/// Some of the samples of a file. This takes processor time, milliseconds a second of sound.
///
/// # Errors
/// When the file is damaged, has no sound, or sound of a kind that is not decoded.
pub fn read_window(file: &[u8], container: Container, span: Span) -> Result<Window, MediaError> {
    // The libraries assert what a damaged file does not keep, and what they have made is gone with the panic.
    catch_unwind(AssertUnwindSafe(|| match container {
        Container::Avi => {
            let (container, sound) = avi::sound_of(file)?;
            read(&sound, container, &[], span)
        }
        Container::Wav => {
            let (container, sound) = riff::sound_of(file)?;
            read(&sound, container, &[], span)
        }
        Container::Mp4 => {
            let entries = mp4::entries(file);
            let sound = mp4::readable(file, &entries);
            read(&sound, Container::Mp4, &entries, span)
        }
        container => read(file, container, &[], span),
    }))
    .unwrap_or_else(|_| Err(MediaError::Malformed("not to be decoded".to_owned())))
}

/// Reads the first track that has sound within [`LISTENED`], or the first one where none has.
fn read(
    file: &[u8],
    container: Container,
    entries: &[mp4::Entry],
    span: Span,
) -> Result<Window, MediaError> {
    let open = |number| open(file, container, entries, span, number);
    let mut reading = open(0)?;
    let mut number = 0;
    if reading.tracks > 1 {
        let tracks = reading.tracks;
        number = (0..tracks)
            .find(|number| open(*number).is_ok_and(Reading::has_sound))
            .unwrap_or(0);
        reading = open(number)?;
    }
    if span.from > 0 {
        match reading.seek()? {
            Start::Before => {}
            // What a file says of its length is no reason not to look: others may follow it in a chain.
            Start::Late => reading = open(number)?,
        }
    }
    reading.run()
}

/// The packets of a file.
fn packets(file: &[u8], container: Container) -> Result<Box<dyn FormatReader + '_>, MediaError> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(file)), Default::default());
    let mut hint = Hint::new();
    hint.with_extension(container.name());
    let probed = get_probe().probe(
        &hint,
        source,
        FormatOptions::default(),
        MetadataOptions::default(),
    );
    probed.map_err(|error| match error {
        Error::Unsupported(_) => MediaError::Malformed("it is not what its name says".to_owned()),
        error => error.into(),
    })
}

/// Opens a file, to be read from its beginning: the track of this number among those that are decoded.
fn open<'s>(
    file: &'s [u8],
    container: Container,
    entries: &[mp4::Entry],
    span: Span,
    number: usize,
) -> Result<Reading<'s>, MediaError> {
    let format = packets(file, container)?;
    let mut decoded = tracks::decoded(&*format, entries, span.rate_hz)?;
    let tracks = decoded.len();
    if number >= tracks {
        return Err(MediaError::NoSound);
    }
    let (track, decoder) = decoded.swap_remove(number);
    let counted = match container {
        Container::Mp3 => counted(file, &track)?,
        _ => None,
    };
    let mut reading = Reading {
        clock: TrackClock::default(),
        counted,
        tracks,
        link: 0,
        waiting: None,
        format,
        decoder,
        track,
        span,
        window: Window::default(),
    };
    reading.declare(file.len())?;
    Ok(reading)
}

/// How many samples an MP3 file has, `None` where it says so itself and is right. The tag in front of its frames says how many there were once, before
/// others were added or taken away; without a tag, the library takes a guess by the first frames.
fn counted(file: &[u8], track: &Track) -> Result<Option<u64>, MediaError> {
    let mut format = packets(file, Container::Mp3)?;
    // Each packet begins where the one before ends, and all but a few are as long as each other.
    let (mut last, mut frame) = (None, 0);
    while let Ok(Some(packet)) = format.next_packet() {
        let begin = packet.pts.get();
        frame = last.map_or(0, |last| begin - last);
        last = Some(begin);
    }
    let delay = i64::from(track.delay.unwrap_or(0));
    let samples = last.map_or(0, |last| last + frame + delay);
    let samples = u64::try_from(samples).unwrap_or(0);
    let around = u64::from(track.delay.unwrap_or(0)) + u64::from(track.padding.unwrap_or(0));
    let told = track.num_frames.filter(|_| track.delay.is_some());
    let is_told =
        told.is_some_and(|told| samples.abs_diff(told + around) <= 2 * MOST_FRAME_SAMPLES);
    let from_zero = samples.saturating_sub(track.delay.unwrap_or(0).into());
    Ok((!is_told).then_some(from_zero))
}

/// When packets are to be heard, from the first one on: a file may be cut out of something that began long before, and a chain of
/// files begins anew with each.
#[derive(Debug, Default)]
struct TrackClock {
    /// What the file says of its first packet.
    zero: Option<Duration>,
    /// Where that stands.
    base: Duration,
    /// When the last packet is over: those that say nothing else follow one another.
    passed: Duration,
}

impl TrackClock {
    /// When a packet is to be heard.
    fn time_of(&mut self, track: &Track, packet: &Packet) -> Duration {
        let told = told(track, packet);
        let zero = *self.zero.get_or_insert(told);
        let told = self.base + told.saturating_sub(zero);
        told.max(self.passed)
    }

    /// A packet that is heard at this time was read.
    fn pass(&mut self, track: &Track, packet: &Packet, time: Duration) {
        let lasts = track
            .time_base
            .and_then(|base| base.calc_duration(packet.dur));
        let lasts = lasts.and_then(|lasts| u64::try_from(lasts.as_micros()).ok());
        self.passed = time + Duration::from_micros(lasts.unwrap_or(0));
    }
}

/// What a file says of when a packet is to be heard.
fn told(track: &Track, packet: &Packet) -> Duration {
    let time = track.time_base.and_then(|base| base.calc_time(packet.pts));
    let micros = time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(0));
    Duration::from_micros(micros)
}

/// How long a file says that its sound is. Files that were written as a stream say nothing, or as much as can be said.
fn declared(format: &dyn FormatReader, track: &Track, bytes: usize) -> Option<Duration> {
    let media = format.media_info();
    let of_track = track.time_base.zip(track.duration);
    let (base, duration) = of_track.or_else(|| media.time_base.zip(media.duration))?;
    let millis = u64::try_from(base.calc_duration(duration)?.as_millis()).ok()?;
    let declared = Some(Duration::from_millis(millis)).filter(|declared| !declared.is_zero())?;
    let most = bytes_a_second(track).map(|rate| Duration::from_secs_f64(bytes as f64 / rate));
    Some(most.map_or(declared, |most| declared.min(most)))
}

/// The bytes of a second, where samples stand in the file as they are.
fn bytes_a_second(track: &Track) -> Option<f64> {
    let codec = track.codec_params.as_ref()?.audio()?;
    let bits = codec.bits_per_coded_sample.or(codec.bits_per_sample)?;
    let channels = codec
        .channels
        .as_ref()
        .map_or(1, |channels| channels.count());
    let bits = f64::from(codec.sample_rate?) * f64::from(bits) * channels as f64;
    (PLAIN.contains(&codec.codec) && bits >= 8.0).then_some(bits / 8.0)
}

/// Where a window begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// At a packet that stands before it.
    Before,
    /// Somewhere else: what says where packets are is missing, or says something else than they do, or nothing is there.
    Late,
}

/// The reading of a window.
struct Reading<'s> {
    clock: TrackClock,
    /// How many samples the track has, where that is known better than the file says.
    counted: Option<u64>,
    /// The number of tracks that are decoded.
    tracks: usize,
    /// Which file of a chain it is.
    link: usize,
    /// A packet that was read already.
    waiting: Option<Packet>,
    format: Box<dyn FormatReader + 's>,
    decoder: Decoder,
    track: Track,
    span: Span,
    window: Window,
}

impl Reading<'_> {
    /// Finds out how long the sound is, by what the file says, and when its first packet is to be heard.
    fn declare(&mut self, bytes: usize) -> Result<(), MediaError> {
        let declared = match (self.counted, self.track.time_base) {
            (Some(samples), Some(base)) => {
                let lasts = base.calc_duration(samples.into());
                let lasts = lasts.and_then(|lasts| u64::try_from(lasts.as_micros()).ok());
                lasts.map(Duration::from_micros)
            }
            _ => declared(&*self.format, &self.track, bytes),
        };
        let Some(packet) = self.next()? else {
            self.window.declared = declared;
            return Ok(());
        };
        if let Some(kind) = kinds::undecoded_layer(&self.track, &packet.data) {
            return Err(MediaError::Unsupported(kind));
        }
        self.clock.time_of(&self.track, &packet);
        self.decoder.remember(&packet);
        // In Ogg, what is said of the end is said of it in all that it was cut out of.
        let zero = self.clock.zero.unwrap_or_default();
        self.window.declared = declared.map(|declared| match declared > zero {
            true => declared - zero,
            false => declared,
        });
        self.waiting = Some(packet);
        Ok(())
    }

    /// Goes to where the window begins.
    fn seek(&mut self) -> Result<Start, MediaError> {
        let begin = self.begin();
        let Some(before) = begin.checked_sub(PRE_ROLL) else {
            return Ok(Start::Before);
        };
        let to = before + self.clock.zero.unwrap_or_default();
        let to = SeekTo::Time {
            time: Time::from_millis_u64(u64::try_from(to.as_millis()).unwrap_or(u64::MAX)),
            track_id: Some(self.track.id),
        };
        if self.format.seek(SeekMode::Accurate, to).is_err() {
            // Where it stands now, nobody knows.
            return Ok(Start::Late);
        }
        self.decoder.reset();
        self.waiting = None;
        self.clock.passed = Duration::ZERO;
        let link = self.link;
        let Some(packet) = self.next()? else {
            return Ok(Start::Late);
        };
        // How long the files of a chain are that were passed over, nobody knows.
        let is_late = self.link != link || self.clock.time_of(&self.track, &packet) > begin;
        self.waiting = Some(packet);
        Ok(if is_late { Start::Late } else { Start::Before })
    }

    /// The next packet of the sound; `None` at the end.
    fn next(&mut self) -> Result<Option<Packet>, MediaError> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(Some(waiting));
        }
        loop {
            match self.format.next_packet() {
                Ok(Some(mut packet)) if packet.track_id == self.track.id => {
                    if self.counted.is_some() {
                        // It does not end where it says; when it begins is counted.
                        (packet.dur, packet.trim_end) = Default::default();
                    }
                    return Ok(Some(packet));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                // Another file follows in this one.
                Err(Error::ResetRequired) => self.begin_next()?,
                // What came of a recording that was cut off is better than nothing.
                Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Goes on with the sound of the next file of a chain.
    fn begin_next(&mut self) -> Result<(), MediaError> {
        let decoded = tracks::decoded(&*self.format, &[], self.span.rate_hz)?;
        let first = decoded.into_iter().next().ok_or(MediaError::NoSound)?;
        (self.track, self.decoder) = first;
        self.link += 1;
        self.clock.base = self.clock.passed;
        self.clock.zero = None;
        Ok(())
    }

    fn run(mut self) -> Result<Window, MediaError> {
        let begin = self.begin();
        let mut output = Output::new(self.span, begin);
        let (mut interleaved, mut bad) = (Vec::<i16>::new(), 0);
        while output.samples.len() < self.span.most {
            let Some(packet) = self.next()? else {
                output.finish();
                if !output.is_sound && self.span.from == 0 {
                    return Err(MediaError::NoSound);
                }
                self.window.is_last = true;
                break;
            };
            let time = self.clock.time_of(&self.track, &packet);
            self.clock.pass(&self.track, &packet, time);
            // The decoder needs nothing of it, where the file did not let it begin later.
            if self.track.time_base.is_some() && time < begin.saturating_sub(2 * PRE_ROLL) {
                continue;
            }
            let (rate_hz, channels) = match self.decoder.decode(&packet, &mut interleaved) {
                Ok(shape) => shape,
                Err(Error::DecodeError(_) | Error::IoError(_)) if bad < MOST_BAD_PACKETS => {
                    bad += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if !(1..=MOST_CHANNELS).contains(&channels) {
                let channels = format!("{channels} channels");
                return Err(MediaError::Unsupported(channels));
            }
            bad = 0;
            output.take(time, rate_hz, interleaved.chunks_exact(channels))?;
        }
        output.samples.truncate(self.span.most);
        self.window.samples = output.samples;
        Ok(self.window)
    }

    /// Returns true if a sample within [`LISTENED`] is sound.
    fn has_sound(mut self) -> bool {
        let (mut interleaved, mut bad) = (Vec::<i16>::new(), 0);
        while let Ok(Some(packet)) = self.next() {
            let time = self.clock.time_of(&self.track, &packet);
            self.clock.pass(&self.track, &packet, time);
            if time > LISTENED {
                break;
            }
            match self.decoder.decode(&packet, &mut interleaved) {
                Ok(_) => {
                    let mut samples = interleaved.iter();
                    if samples.any(|sample| sample.unsigned_abs() > AUDIBLE) {
                        return true;
                    }
                    bad = 0;
                }
                Err(Error::DecodeError(_) | Error::IoError(_)) if bad < MOST_BAD_PACKETS => {
                    bad += 1;
                }
                Err(_) => break,
            }
        }
        false
    }

    /// When the window begins.
    fn begin(&self) -> Duration {
        let Span { rate_hz, from, .. } = self.span;
        Duration::from_micros(from.saturating_mul(1_000_000) / u64::from(rate_hz.max(1)))
    }
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
