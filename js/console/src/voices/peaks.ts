// Waveforms: the loudest sample of each stretch of a sound, and the picture of them.

/** Size of the picture, in its own units. */
export const WIDTH = 600;
export const HEIGHT = 48;
/** Bars of a picture. */
export const BARS = 150;

/** Returns the loudest amplitude of each of `count` equal stretches of a sound, from 0 to 1. */
export function peaksOf(samples: Float32Array, count = BARS): number[] {
  return Array.from({ length: count }, (_, place) => {
    const begin = Math.floor((place * samples.length) / count);
    const end = Math.max(begin + 1, Math.floor(((place + 1) * samples.length) / count));
    let peak = 0;
    for (let at = begin; at < end; at += 1) peak = Math.max(peak, Math.abs(samples[at] ?? 0));
    return Math.min(1, peak);
  });
}

/** Returns an SVG path with a vertical bar for each peak; silence is a dot. The loudest bar has the full height. */
export function barsPath(peaks: readonly number[], from = 0, to = peaks.length): string {
  const loudest = Math.max(...peaks, 0.01);
  const step = WIDTH / peaks.length;
  const middle = HEIGHT / 2;
  const bars = peaks.slice(from, to).map((peak, place) => {
    const x = ((from + place + 0.5) * step).toFixed(1);
    const half = Math.max(0.5, (peak / loudest) * (middle - 1));
    return `M${x} ${(middle - half).toFixed(1)}V${(middle + half).toFixed(1)}`;
  });
  return bars.join("");
}

/** Returns how many bars have been played at a time. */
export function playedBars(seconds: number, duration: number, count = BARS): number {
  if (!(duration > 0)) return 0;
  return Math.min(count, Math.max(0, Math.round((seconds / duration) * count)));
}
