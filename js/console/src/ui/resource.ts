// Data of a view: read from the API when the view appears, and again after events.

import { type Signal, batch, useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";

import { BACKGROUND, FOREGROUND, sessions } from "../api";
import { systemClock } from "../clock";
import { watch } from "../events";
import { type After, isOutdatedBy } from "../events/after";
import { type Page, type Problem, readPages, toProblem } from "../problem";
import { type Reason, Reloader } from "./reloader";

/** Options of a request, to be passed on to `api`. */
export type Call = { headers: Record<string, string>; signal: AbortSignal };
type Read<T> = (call: Call, reason: Reason) => Promise<T>;

export type Resource<T> = {
  /** The result of the last read that succeeded. */
  data: Signal<T | undefined>;
  /** Why the last read failed; undefined if it succeeded. */
  problem: Signal<Problem | undefined>;
  isLoading: Signal<boolean>;
  /** Reads again. Resolves when that is done. */
  reload: () => Promise<void>;
};

/** Reads a resource. `on` lists the values that the read depends on, `after` the events that outdate it. */
export function useResource<T>(read: Read<T>, on: readonly unknown[], after?: After): Resource<T> {
  const data = useSignal<T | undefined>(undefined);
  const problem = useSignal<Problem | undefined>(undefined);
  const isLoading = useSignal(true);
  const latest = useRef(read);
  latest.current = read;
  const reloader = useRef<Reloader | null>(null);

  const { partner, kinds, base, id } = after ?? {};
  useEffect(() => {
    const stopped = new AbortController();
    const run = async (reason: Reason) => {
      isLoading.value = true;
      const call = { headers: reason.isBackground ? BACKGROUND : FOREGROUND, signal: stopped.signal };
      try {
        const found = await latest.current(call, reason);
        if (stopped.signal.aborted) return;
        batch(() => {
          data.value = found;
          problem.value = undefined;
        });
      } catch (error) {
        if (stopped.signal.aborted) return;
        const failure = toProblem(error);
        // Read again after the next sign-in.
        if (failure.status === 401 && sessions.isEnded.peek()) return;
        problem.value = failure;
      }
      isLoading.value = false;
    };
    batch(() => {
      data.value = undefined;
      problem.value = undefined;
    });
    const own = new Reloader(run, systemClock);
    reloader.current = own;

    let isStale = false;
    const soon = () => {
      isStale = document.hidden;
      if (!isStale) own.reloadSoon();
    };
    const shown = () => {
      if (isStale) soon();
    };
    document.addEventListener("visibilitychange", shown);
    const unwatch = after && watch(after.partner, (event) => isOutdatedBy(event, after, problem.peek() !== undefined) && soon());
    const count = sessions.signInCount.peek();
    const unsubscribe = sessions.signInCount.subscribe((now) => {
      if (now !== count && sessions.current.peek()) void own.reload();
    });
    void own.reload();
    return () => {
      stopped.abort();
      own.stop();
      document.removeEventListener("visibilitychange", shown);
      unwatch?.();
      unsubscribe();
    };
  }, [...on, partner, kinds?.join(), base, id]);

  const reload = useCallback(() => reloader.current?.reload() ?? Promise.resolve(), []);
  return { data, problem, isLoading, reload };
}

export type Pages<T> = Resource<Page<T>> & {
  /** Reads the next page and appends it. */
  more: () => Promise<void>;
};

/** Reads a list page by page. A reload reads as many pages as are shown. */
export function usePages<T>(read: (call: Call, cursor?: string) => Promise<Page<T>>, on: readonly unknown[], after?: After): Pages<T> {
  const shown = useRef(1);
  const wanted = useRef(0);
  useEffect(() => {
    shown.current = 1;
  }, on);
  const resource: Resource<Page<T>> = useResource<Page<T>>(
    async (call, { isFromEvent }) => {
      const known = resource.data.peek();
      const added = known ? wanted.current : 0;
      wanted.current = 0;
      const one = (cursor?: string) => read(call, cursor);
      const isAdding = known !== undefined && added > 0 && !isFromEvent;
      const page = await (isAdding ? readPages(one, added, known) : readPages(one, shown.current + added));
      shown.current += added;
      return page;
    },
    on,
    after,
  );
  const more = useCallback(() => {
    wanted.current = 1;
    return resource.reload();
  }, []);
  return { ...resource, more };
}
