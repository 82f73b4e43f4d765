//! When frames go out, and their RTP header. Speech goes out in spurts of one frame each 20 ms; the RTP timestamp
//! follows the time of the call across the silence between them, so a receiver sees the gap as DTX.
//!
//! In silence nothing is sent but a constant 3-byte frame: five right after the path is up, so that the receiver's
//! jitter buffer and decoder are warm for the first word; one after each spurt, so that the receiver does not stretch
//! the last sound; and one each 400 ms, which keeps address translations and receivers awake.

use std::time::Duration;

use bytes::Bytes;

use super::encode::SILENCE;
use super::{FRAME, FRAME_SAMPLES};
use crate::interface::OutgoingFrame;

/// How often silence is sent in silence.
const KEEP_ALIVE: Duration = Duration::from_millis(400);
const WARM_UP_FRAMES: u32 = 5;
/// Frames that may go out at once when the timer was late; the rest of the delay is forgotten.
pub(crate) const MAX_BURST: u32 = 3;

pub(crate) struct Pacer {
    sequence: u16,
    timestamp_offset: u32,
    /// The RTP time of the next frame at the earliest, in samples since the call began.
    next_sample: u64,
    /// When the call began.
    epoch: Option<Duration>,
    connected: bool,
    in_spurt: bool,
    /// The next frame of speech goes out now or later.
    next_at: Duration,
    /// When silence is to be sent if there is no speech.
    silence_at: Duration,
    warm_up_left: u32,
}

impl Pacer {
    pub(crate) fn new(sequence: u16, timestamp_offset: u32) -> Self {
        Self {
            sequence,
            timestamp_offset,
            next_sample: 0,
            epoch: None,
            connected: false,
            in_spurt: false,
            next_at: Duration::ZERO,
            silence_at: Duration::ZERO,
            warm_up_left: 0,
        }
    }

    pub(crate) fn connect(&mut self, now: Duration) {
        self.epoch.get_or_insert(now);
        self.connected = true;
        self.silence_at = now;
        self.warm_up_left = WARM_UP_FRAMES;
    }

    pub(crate) fn disconnect(&mut self) {
        self.connected = false;
        self.in_spurt = false;
    }

    /// When there is something to do, given whether a frame of speech waits.
    pub(crate) fn deadline(&self, speech_ready: bool) -> Option<Duration> {
        if !self.connected {
            return None;
        }
        // A spurt without speech wants its end noticed when the last frame has been heard.
        Some(match speech_ready || self.in_spurt {
            true => self.next_at,
            false => self.silence_at.max(self.next_at),
        })
    }

    /// Whether a frame may go out now.
    pub(crate) fn may_send(&self, now: Duration) -> bool {
        self.connected && now >= self.next_at
    }

    /// Whether every frame that went out has been heard, as far as time goes.
    pub(crate) fn is_played_out(&self, now: Duration) -> bool {
        !self.in_spurt || now >= self.next_at
    }

    pub(crate) fn send_speech(&mut self, now: Duration, payload: Bytes) -> OutgoingFrame {
        let marker = !self.in_spurt;
        if marker {
            self.in_spurt = true;
            self.next_at = now;
            self.follow_time(now);
        }
        self.warm_up_left = 0;
        let frame = self.stamp(marker, payload);
        self.next_at += FRAME;
        // One frame of patience: a spurt often goes on, when the next sentence comes a moment late.
        self.silence_at = self.next_at + FRAME;
        frame
    }

    /// The silence that is due, if any.
    pub(crate) fn send_silence(&mut self, now: Duration) -> Option<OutgoingFrame> {
        if !self.may_send(now) || now < self.silence_at || self.in_spurt {
            return None;
        }
        self.follow_time(now);
        // Speech that comes now goes out at once all the same; it is ahead of RTP time by a frame at most.
        let frame = self.stamp(false, SILENCE);
        self.warm_up_left = self.warm_up_left.saturating_sub(1);
        self.silence_at = now
            + if self.warm_up_left == 0 {
                KEEP_ALIVE
            } else {
                FRAME
            };
        Some(frame)
    }

    /// The timer was so late that a burst was used up: what is left goes out at its own speed.
    pub(crate) fn forgive_delay(&mut self, now: Duration) {
        self.next_at = now + FRAME;
        self.silence_at = self.next_at + FRAME;
    }

    /// No speech was there when its time came.
    pub(crate) fn pause(&mut self) {
        self.in_spurt = false;
    }

    /// Speech was broken off: silence follows with the next frame.
    pub(crate) fn cut(&mut self) {
        if self.in_spurt {
            self.in_spurt = false;
            self.silence_at = self.next_at;
        }
    }

    fn stamp(&mut self, marker: bool, payload: Bytes) -> OutgoingFrame {
        let frame = OutgoingFrame {
            sequence: self.sequence,
            timestamp: self.timestamp_offset.wrapping_add(self.next_sample as u32),
            marker,
            payload,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.next_sample += FRAME_SAMPLES as u64;
        frame
    }

    /// Moves the RTP time on to that of the call, in whole frames: receivers like a grid.
    fn follow_time(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.epoch.unwrap_or(now));
        let frames = (elapsed.as_micros() / FRAME.as_micros()) as u64;
        self.next_sample = self.next_sample.max(frames * FRAME_SAMPLES as u64);
    }
}
