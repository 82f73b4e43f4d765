// Pages of a list that are shown, one after the other. Each is read again by its own cursor, so that a long list need not be read as a whole.

import { type Page, identityOf } from "./problem";

/** A page that was read. */
export type ReadPage<T> = Page<T> & {
  /** Cursor of the page; undefined for the first. */
  cursor: string | undefined;
  /** True if it may have changed since. */
  isStale: boolean;
};

export type ReadOne<T> = (cursor?: string) => Promise<Page<T>>;

/** Places of entries in a list, both inclusive. */
export type Span = { first: number; last: number };

/** All entries. */
export const WHOLE: Span = { first: 0, last: Number.POSITIVE_INFINITY };

/** Lists with so many pages are read again as a whole, longer ones where they are looked at. */
export const MAX_WHOLE = 3;

async function readAt<T>(read: ReadOne<T>, cursor: string | undefined): Promise<ReadPage<T>> {
  return { ...(await read(cursor)), cursor, isStale: false };
}

/** Reads the page after the last one. */
export async function appended<T>(pages: readonly ReadPage<T>[], read: ReadOne<T>): Promise<ReadPage<T>[]> {
  const last = pages.at(-1);
  if (last?.next === null) return [...pages];
  return [...pages, await readAt(read, last?.next)];
}

/** Reads all entries of a list that is short. */
export async function readAll<T>(read: ReadOne<T>): Promise<T[]> {
  let pages: ReadPage<T>[] = [];
  do pages = await appended(pages, read);
  while (pages.at(-1)?.next !== null);
  return listed(pages).entries;
}

export function outdated<T>(pages: readonly ReadPage<T>[]): ReadPage<T>[] {
  return pages.map((page) => ({ ...page, isStale: true }));
}

/** Returns the places of the pages that have entries of a span. */
function pagesIn<T>(pages: readonly ReadPage<T>[], { first, last }: Span): Span {
  const found = { first: 0, last: 0 };
  let begin = 0;
  pages.forEach(({ entries }, place) => {
    if (begin <= first) found.first = place;
    if (begin <= last) found.last = place;
    begin += entries.length;
  });
  return found;
}

/** Returns true if a page with entries of a span may be out of date. */
export function isStaleIn<T>(pages: readonly ReadPage<T>[], span: Span): boolean {
  const { first, last } = pagesIn(pages, span);
  return pages.slice(first, last + 1).some(({ isStale }) => isStale);
}

/**
 * Reads the stale pages with entries of a span again, and the first one, which has the sums of the list. A page that ends elsewhere than before moves the
 * beginning of the next one.
 */
export async function refreshed<T>(pages: readonly ReadPage<T>[], span: Span, read: ReadOne<T>): Promise<ReadPage<T>[]> {
  const all = [...pages];
  const within = pages.length > MAX_WHOLE ? pagesIn(pages, span) : pagesIn(pages, WHOLE);
  for (let place = 0; place <= within.last; place += 1) {
    if (place > 0 && place < within.first) continue;
    const before = all[place];
    if (!before) break;
    if (!before.isStale) continue;
    const page = await readAt(read, before.cursor);
    all[place] = page;
    const following = all[place + 1];
    if (!following) continue;
    if (page.next === null) all.length = place + 1;
    else if (following.cursor !== page.next) all[place + 1] = { ...following, cursor: page.next, isStale: true };
  }
  return all;
}

/** Returns the entries of all pages. One that moved while pages were read is listed once: from a page that was read since, else where it comes last. */
export function listed<T>(pages: readonly ReadPage<T>[]): Page<T> {
  const chosen = new Map<unknown, ReadPage<T>>();
  for (const page of pages) {
    for (const entry of page.entries) {
      const identity = identityOf(entry);
      const known = chosen.get(identity);
      if (!known || known.isStale || !page.isStale) chosen.set(identity, page);
    }
  }
  const entries = pages.flatMap((page) => page.entries.filter((entry) => chosen.get(identityOf(entry)) === page));
  return { entries, next: pages.at(-1)?.next ?? null };
}
