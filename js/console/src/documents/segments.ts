// What was heard in a recording, with its times.

import { type Schemas, api } from "../api";
import { ask } from "../problem";
import type { Call } from "../ui/resource";
import type { DocumentAt } from "./contents";

export type Segment = Schemas["SegmentView"];

/** Segments that are read: more than 20 hours of speech. */
const MAX_SEGMENTS = 5_000;

/** Reads the segments of a recording, up to {@link MAX_SEGMENTS}. */
export async function readSegments({ partner, base, id }: DocumentAt, call: Call): Promise<Segment[]> {
  const segments: Segment[] = [];
  let cursor: string | null | undefined;
  do {
    const params = { path: { partner, kb: base, doc_id: id }, query: { ...(cursor && { cursor }) } };
    const page = await ask(api.GET("/api/document-transcript/{partner}/{kb}/{doc_id}", { ...call, params }));
    segments.push(...page.segments);
    cursor = page.next_cursor;
  } while (cursor && segments.length < MAX_SEGMENTS);
  return segments;
}

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

/** Returns a time as `mm:ss`, or as `h:mm:ss` from an hour on. */
export function mark(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${two(minutes)}:${two(seconds % 60)}`;
}
