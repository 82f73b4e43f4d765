//! The sound of audio and video files, a window at a time: MP3, WAV, MPEG-4 (M4A, MP4, MOV, M4V) and AVI.
//!
//! The files are not trusted. What comes out is bounded by what is asked for, and what their decoders may allocate and how long they may
//! take is not, so the files of others are to be decoded in a process of their own.

use std::{
    io::{Cursor, ErrorKind},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use colloquy_voice::Resampler;
use serde::{Deserialize, Serialize};
use symphonia::{
    core::{
        codecs::audio::{AudioDecoder, AudioDecoderOptions},
        errors::Error,
        formats::{FormatOptions, FormatReader, SeekMode, SeekTo, Track, TrackType, probe::Hint},
        io::MediaSourceStream,
        meta::MetadataOptions,
        units::Time,
    },
    default::{get_codecs, get_probe},
};

mod avi;

/// The rate of what comes out.
const RATE_HZ: u32 = 16_000;
/// Packets that cannot be decoded may stand between others; so many one after another are no sound.
const MOST_BAD_PACKETS: usize = 200;
/// A decoder needs what comes before a packet: in MP3 a frame may use bits of many before it. So much is decoded and not given out.
const PRE_ROLL: Duration = Duration::from_secs(2);
/// The most channels of a recording.
const MOST_CHANNELS: usize = 16;

/// What a file is by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// MPEG layer 3.
    Mp3,
    /// RIFF.
    Wav,
    /// MPEG-4, QuickTime.
    Mp4,
    /// Audio Video Interleave.
    Avi,
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
    /// Mono samples at 16,000 Hz.
    pub samples: Vec<i16>,
    /// Whether nothing comes after them.
    pub is_last: bool,
    /// How long the file says that all of it is.
    pub declared: Option<Duration>,
}

/// The samples of a file from one on, `most` of them. This takes processor time, milliseconds a second of sound.
///
/// # Errors
/// When the file is damaged, has no sound, or sound of a kind that is not decoded.
pub fn read_window(
    file: &[u8],
    container: Container,
    from: u64,
    most: usize,
) -> Result<Window, MediaError> {
    // The libraries assert what a damaged file does not keep, and what they have made is gone with the panic.
    catch_unwind(AssertUnwindSafe(|| match container {
        Container::Avi => {
            let (container, sound) = avi::sound_of(file)?;
            read(&sound, container, from, most)
        }
        container => read(file, container, from, most),
    }))
    .unwrap_or_else(|_| Err(MediaError::Malformed("not to be decoded".to_owned())))
}

fn read(file: &[u8], container: Container, from: u64, most: usize) -> Result<Window, MediaError> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(file)), Default::default());
    let mut hint = Hint::new();
    hint.with_extension(match container {
        Container::Mp3 => "mp3",
        Container::Wav => "wav",
        Container::Mp4 | Container::Avi => "mp4",
    });
    let probed = get_probe().probe(
        &hint,
        source,
        FormatOptions::default(),
        MetadataOptions::default(),
    );
    let mut format = probed.map_err(|error| match error {
        Error::Unsupported(_) => MediaError::Malformed("it is not what its name says".to_owned()),
        error => error.into(),
    })?;
    let track = format.default_track(TrackType::Audio);
    let track = track.ok_or(MediaError::NoSound)?.clone();
    let parameters = track.codec_params.as_ref().and_then(|codec| codec.audio());
    let parameters =
        parameters.ok_or_else(|| MediaError::Unsupported("it is not named".to_owned()))?;
    let mut decoder =
        get_codecs().make_audio_decoder(parameters, &AudioDecoderOptions::default())?;
    let mut window = Window {
        declared: declared(&track),
        ..Window::default()
    };
    let start = seek(&mut *format, &mut *decoder, &track, from);
    if start == Start::Beyond {
        window.is_last = true;
        return Ok(window);
    }
    Reading {
        format,
        decoder,
        track,
        from,
        most,
        window,
    }
    .run()
}

fn declared(track: &Track) -> Option<Duration> {
    let time = track.time_base?.calc_duration(track.duration?)?;
    u64::try_from(time.as_millis())
        .ok()
        .map(Duration::from_millis)
}

/// Where a window begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// At a packet that stands before it.
    Before,
    /// Where nothing is any more.
    Beyond,
}

/// Goes to where a window begins, or stays at the beginning where the file does not let it.
fn seek(
    format: &mut dyn FormatReader,
    decoder: &mut dyn AudioDecoder,
    track: &Track,
    from: u64,
) -> Start {
    if from == 0 {
        return Start::Before;
    }
    let declared = declared(track);
    let begin = Duration::from_millis(from * 1_000 / u64::from(RATE_HZ));
    if declared.is_some_and(|declared| begin >= declared) {
        return Start::Beyond;
    }
    let Some(before) = begin.checked_sub(PRE_ROLL) else {
        return Start::Before;
    };
    let millis = u64::try_from(before.as_millis()).unwrap_or(u64::MAX);
    let to = SeekTo::Time {
        time: Time::from_millis_u64(millis),
        track_id: Some(track.id),
    };
    if format.seek(SeekMode::Accurate, to).is_ok() {
        decoder.reset();
    }
    Start::Before
}

/// The reading of a window.
struct Reading<'s> {
    format: Box<dyn FormatReader + 's>,
    decoder: Box<dyn AudioDecoder>,
    track: Track,
    from: u64,
    most: usize,
    window: Window,
}

impl Reading<'_> {
    fn run(mut self) -> Result<Window, MediaError> {
        let mut resampler: Option<Resampler> = None;
        // Samples of the file that stand before the window; known at the first packet.
        let mut skip: Option<u64> = None;
        let (mut interleaved, mut bad, mut is_sound) = (Vec::<i16>::new(), 0, false);
        while self.window.samples.len() < self.most {
            let packet = match self.format.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return self.end(resampler, is_sound),
                // What came of a recording that was cut off is better than nothing.
                Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                    return self.end(resampler, is_sound);
                }
                Err(error) => return Err(error.into()),
            };
            if packet.track_id != self.track.id {
                continue;
            }
            let sound = match self.decoder.decode(&packet) {
                Ok(sound) => sound,
                Err(Error::DecodeError(_) | Error::IoError(_)) if bad < MOST_BAD_PACKETS => {
                    bad += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let (rate_hz, channels) = (sound.spec().rate(), sound.spec().channels().count());
            if !(1..=MOST_CHANNELS).contains(&channels) {
                let channels = format!("{channels} channels");
                return Err(MediaError::Unsupported(channels));
            }
            let resampler = match &mut resampler {
                Some(resampler) if resampler.from_hz() == rate_hz => resampler,
                _ => resampler.insert(
                    Resampler::new(rate_hz, RATE_HZ)
                        .map_err(|error| MediaError::Unsupported(error.to_string()))?,
                ),
            };
            (bad, is_sound) = (0, true);
            sound.copy_to_vec_interleaved(&mut interleaved);
            let skip = skip.get_or_insert_with(|| {
                let at = self
                    .track
                    .time_base
                    .and_then(|base| base.calc_time(packet.pts));
                let at = at.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(0));
                let begin = self.from * 1_000_000 / u64::from(RATE_HZ);
                begin.saturating_sub(at) * u64::from(rate_hz) / 1_000_000
            });
            let frames = interleaved.chunks_exact(channels);
            let passed = usize::try_from(*skip)
                .unwrap_or(usize::MAX)
                .min(frames.len());
            *skip -= passed as u64;
            let mono = frames.skip(passed).map(|frame| {
                let sum: i32 = frame.iter().map(|sample| i32::from(*sample)).sum();
                (sum / frame.len() as i32) as i16
            });
            resampler.push(mono, &mut self.window.samples);
        }
        self.window.samples.truncate(self.most);
        Ok(self.window)
    }

    fn end(mut self, resampler: Option<Resampler>, is_sound: bool) -> Result<Window, MediaError> {
        if let Some(mut resampler) = resampler {
            resampler.finish(&mut self.window.samples);
        }
        if !is_sound && self.from == 0 {
            return Err(MediaError::NoSound);
        }
        self.window.samples.truncate(self.most);
        self.window.is_last = true;
        Ok(self.window)
    }
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
