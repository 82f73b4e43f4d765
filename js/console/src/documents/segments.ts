// The words of a recording, with their times.

import type { Schemas } from "../api";
import type { Page } from "../problem";

export type Segment = Schemas["SegmentView"];

/** Returns the index of the segment that is heard at a time; -1 between segments. */
export function segmentAt(segments: readonly Segment[], ms: number): number {
  let [low, high] = [0, segments.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((segments[middle] as Segment).begin_ms <= ms) low = middle + 1;
    else high = middle;
  }
  const found = segments[low - 1];
  return found && ms < found.end_ms ? low - 1 : -1;
}

/** Returns true if a time is behind the segments that are loaded, and there are more. */
export function isBeyond(loaded: Page<Segment> | undefined, ms: number): boolean {
  const last = loaded?.entries.at(-1);
  return loaded !== undefined && loaded.next !== null && (!last || ms >= last.end_ms);
}

/** Returns a time as `mm:ss`, or as `h:mm:ss` from an hour on. */
export function mark(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${two(minutes)}:${two(seconds % 60)}`;
}
