//! From decoded packets to the samples of a window: mono, at the rate that is wanted, each where its time is.

use std::{mem, slice::ChunksExact, time::Duration};

use colloquy_voice::Resampler;

use super::{MediaError, Span, mixer::Mixer};

/// What stays away for so long between packets is a pause: times are not told more exactly.
const SHORTEST_GAP: Duration = Duration::from_millis(60);

/// What comes out of a window.
pub(super) struct Output {
    pub(super) samples: Vec<i16>,
    resampler: Option<Resampler>,
    mixer: Mixer,
    span: Span,
    /// When the window begins.
    begin: Duration,
    /// When what comes next would follow what came, nothing having come yet.
    next: Option<Duration>,
    /// Whether anything came.
    pub(super) is_sound: bool,
}

impl Output {
    pub(super) fn new(span: Span, begin: Duration) -> Self {
        Self {
            samples: Vec::new(),
            resampler: None,
            mixer: Mixer::default(),
            span,
            begin,
            next: None,
            is_sound: false,
        }
    }

    /// Takes what a packet holds that is heard at this time. Where nothing was heard before, there is silence.
    pub(super) fn take(
        &mut self,
        time: Duration,
        rate_hz: u32,
        frames: ChunksExact<'_, i16>,
    ) -> Result<(), MediaError> {
        self.is_sound = true;
        let next = *self.next.get_or_insert(time.min(self.begin));
        let gap = time.saturating_sub(next);
        if gap >= SHORTEST_GAP {
            let room = self.span.most.saturating_sub(self.samples.len()) as u64;
            // More than that is behind the window.
            let most = room.saturating_mul(1_000) / u64::from(self.span.rate_hz.max(1));
            let most = Duration::from_millis(most) + SHORTEST_GAP;
            let gap = gap.min(self.begin.saturating_sub(next).saturating_add(most));
            let silence = samples_of(gap, rate_hz);
            self.push(rate_hz, silence, std::iter::repeat_n(0, silence))?;
        }
        let mut mixer = mem::take(&mut self.mixer);
        let count = frames.len();
        let mono = frames.map(|frame| mixer.mix(rate_hz, frame));
        self.push(rate_hz, count, mono)?;
        self.mixer = mixer;
        Ok(())
    }

    /// Adds so many samples, without those that stand before the window.
    fn push(
        &mut self,
        rate_hz: u32,
        count: usize,
        mono: impl Iterator<Item = i16>,
    ) -> Result<(), MediaError> {
        let resampler = match &mut self.resampler {
            Some(resampler) if resampler.from_hz() == rate_hz => resampler,
            other => {
                if let Some(other) = other {
                    other.finish(&mut self.samples);
                }
                let resampler = Resampler::new(rate_hz, self.span.rate_hz)
                    .map_err(|error| MediaError::Unsupported(error.to_string()))?;
                other.insert(resampler)
            }
        };
        let next = self.next.unwrap_or(self.begin);
        let before = samples_of(self.begin.saturating_sub(next), rate_hz);
        resampler.push(mono.skip(before), &mut self.samples);
        let lasts = count as u64 * 1_000_000_000 / u64::from(rate_hz);
        self.next = Some(next + Duration::from_nanos(lasts));
        Ok(())
    }

    /// Nothing comes any more.
    pub(super) fn finish(&mut self) {
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(&mut self.samples);
        }
    }
}

fn samples_of(time: Duration, rate_hz: u32) -> usize {
    let samples = time.as_nanos() * u128::from(rate_hz) / 1_000_000_000;
    usize::try_from(samples).unwrap_or(usize::MAX)
}
