// Lists with sums over all of their entries, which come with the first page.

import { type Signal, useSignal } from "@preact/signals";

import type { After } from "../events/after";
import type { Page } from "../problem";
import { type Call, type Pages, usePages } from "../ui/resource";

/** A page with the summary of the whole list; null on later pages. */
export type SummedPage<T, S> = Page<T> & { summary: S | null };
export type SummedPages<T, S> = Pages<T> & { summary: Signal<S | undefined> };

export function useSummedPages<T, S>(
  read: (call: Call, cursor?: string) => Promise<SummedPage<T, S>>,
  on: readonly unknown[],
  after?: After,
): SummedPages<T, S> {
  const summary = useSignal<S | undefined>(undefined);
  const pages = usePages(
    async (call, cursor) => {
      const page = await read(call, cursor);
      // A list that was read for other values is no longer shown.
      if (page.summary !== null && !call.signal.aborted) summary.value = page.summary;
      return page;
    },
    on,
    after,
  );
  return { ...pages, summary };
}
