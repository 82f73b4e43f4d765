//! MP3 by LAME: MPEG-2 Layer III, mono, constant 64 kb/s.
//!
//! What a decoder gives out begins [`DELAY`] samples late. The stream begins with the header frame that LAME invented for
//! this, so that players cut the delay off: all of them but those that know no such frame, which play it as silence. Its
//! count of bytes says "unknown", as the lengths of streamed WAV files do, since some decoders pass over a header without
//! any count. The end has no mark that could be written before it is known, so it is the number of frames that fits.

use mp3lame_encoder::{
    Bitrate, Builder, Encoder, FlushNoGap, MonoPcm, Quality, max_required_buffer_size,
};

use crate::encode::{EncodeError, RATE_HZ};

/// Samples of a frame.
const FRAME_SAMPLES: usize = 576;
/// Bytes of a frame: 24 ms at 64 kb/s.
const FRAME_BYTES: usize = 192;
/// The samples that LAME puts in front, as the header frame says.
const ENCODER_DELAY: usize = 576;
/// The same with what every decoder adds.
const DELAY: usize = ENCODER_DELAY + 529;
/// Samples that may be missing at the end so that no frame is made for them: 4 ms. Without it the file could be 24 ms too
/// long, and with it 20.
const SPARE: usize = 96;
/// LAME encodes its first frame when it has this many samples, and each further one with [`FRAME_SAMPLES`] more.
const FIRST_FRAME_AT: usize = 800;

/// An MP3 file in the making.
pub(super) struct Mp3 {
    lame: Encoder,
    begun: bool,
    samples: usize,
}

impl Mp3 {
    pub(super) fn new() -> Result<Self, EncodeError> {
        let mut lame = Builder::new().ok_or_else(|| EncodeError::Mp3("no memory".to_owned()))?;
        lame.set_num_channels(1).map_err(failed)?;
        lame.set_sample_rate(RATE_HZ).map_err(failed)?;
        lame.set_brate(Bitrate::Kbps64).map_err(failed)?;
        lame.set_quality(Quality::Good).map_err(failed)?;
        // It would be a frame of zeros to be filled in at the end.
        lame.set_to_write_vbr_tag(false).map_err(failed)?;
        Ok(Self {
            lame: lame.build().map_err(failed)?,
            begun: false,
            samples: 0,
        })
    }

    pub(super) fn push(&mut self, samples: &[i16]) -> Result<Vec<u8>, EncodeError> {
        let mut bytes = Vec::with_capacity(FRAME_BYTES + max_required_buffer_size(samples.len()));
        if !self.begun && !samples.is_empty() {
            self.begun = true;
            bytes.extend_from_slice(&header_frame());
        }
        self.samples += samples.len();
        self.lame
            .encode_to_vec(MonoPcm(samples), &mut bytes)
            .map_err(failed)?;
        Ok(bytes)
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>, EncodeError> {
        let frames = (self.samples + DELAY - SPARE).div_ceil(FRAME_SAMPLES);
        let needed = FIRST_FRAME_AT + (frames - 1) * FRAME_SAMPLES;
        let mut bytes = self.push(&vec![0; needed.saturating_sub(self.samples)])?;
        // Without frames of its own, which its usual end would add.
        bytes.reserve(max_required_buffer_size(0));
        self.lame
            .flush_to_vec::<FlushNoGap>(&mut bytes)
            .map_err(failed)?;
        Ok(bytes)
    }
}

fn failed(error: impl std::fmt::Display) -> EncodeError {
    EncodeError::Mp3(error.to_string())
}

/// A frame of silence that says how much to cut off in front: the "Info" tag with LAME's extension.
fn header_frame() -> [u8; FRAME_BYTES] {
    const UNKNOWN: [u8; 4] = [0xff; 4];
    let mut frame = [0; FRAME_BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&[0xff, 0xf3, 0x84, 0xc4]); // MPEG-2 Layer III, 64 kb/s, 24,000 Hz, mono, original
    put(&[0; 9]); // side information: no sound
    put(b"Info");
    put(&[0, 0, 0, 2]); // what follows: the count of bytes alone
    put(&UNKNOWN);
    put(b"LAME3.100");
    put(&[0x01]); // revision 0, constant bitrate
    put(&[0; 10]); // low-pass, peak, replay gains, flags: not said
    put(&[64]); // kb/s
    put(&[
        (ENCODER_DELAY >> 4) as u8,
        ((ENCODER_DELAY & 0xf) << 4) as u8,
        0,
    ]); // delay, no padding known
    put(&[0; 10]); // noise shaping, gain, preset, length, checksum of the music: not said
    let checksum = crc16(&frame[..at]);
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// CRC-16 as the tag uses it (polynomial 0x8005, reflected).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xa001
            } else {
                crc >> 1
            }
        })
    })
}
