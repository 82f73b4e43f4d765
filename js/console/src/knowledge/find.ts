// Finds one entry of a list. The API has no request for one folder or one knowledge base with its figures.

import type { Page } from "../problem";

/** Returns the first entry that is sought, reading page by page; null if there is none. */
export async function findEntry<T>(read: (cursor?: string) => Promise<Page<T>>, isSought: (entry: T) => boolean): Promise<T | null> {
  for (let cursor: string | undefined; ; ) {
    const { entries, next } = await read(cursor);
    const found = entries.find(isSought);
    if (found !== undefined) return found;
    if (next === null) return null;
    cursor = next;
  }
}
