// Finds the webhook delivery of a call. The API lists deliveries, newest first, and does not filter them by their subject.

import type { Page } from "../problem";

/** Maximum difference between the clocks of servers. */
const SKEW_MS = 60_000;

type Delivery = { subject: string; created_at: string };

/** A delivery, or null if none was found. `isComplete` is false if older deliveries were not searched. */
export type Found<D> = { delivery: D | null; searched: number; isComplete: boolean };

/** Searches up to `pages` pages for a delivery about `subject`, which is not older than `since`. */
export async function findDelivery<D extends Delivery>(
  read: (cursor?: string) => Promise<Page<D>>,
  subject: string,
  since: string,
  pages: number,
): Promise<Found<D>> {
  const oldest = Date.parse(since) - SKEW_MS;
  let cursor: string | undefined;
  let searched = 0;
  for (let page = 0; page < pages; page += 1) {
    const { entries, next } = await read(cursor);
    searched += entries.length;
    const delivery = entries.find((entry) => entry.subject === subject);
    if (delivery) return { delivery, searched, isComplete: true };
    const last = entries.at(-1);
    if (next === null || (last && Date.parse(last.created_at) < oldest)) return { delivery: null, searched, isComplete: true };
    cursor = next;
  }
  return { delivery: null, searched, isComplete: false };
}
