// Data of a view: read from the API when the view appears, and again after events.

import { type Signal, batch, useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";

import { BACKGROUND, FOREGROUND, sessions } from "../api";
import { systemClock } from "../clock";
import { watch } from "../events";
import { type After, isOutdatedBy } from "../events/after";
import { MAX_WHOLE, type ReadPage, type Span, WHOLE, appended, isStaleIn, listed, outdated, refreshed } from "../pages";
import { type Page, type Problem, toProblem } from "../problem";
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
  /** Tells which entries are near the window. Those that may be out of date are read again. */
  view: (span: Span) => void;
};

const NOTHING = { all: false, more: false, view: false };

/** Reads a list page by page. A reload reads what is shown again; of a long list, what is in view, and the rest when that comes into view. */
export function usePages<T>(read: (call: Call, cursor?: string) => Promise<Page<T>>, on: readonly unknown[], after?: After): Pages<T> {
  const pages = useRef<ReadPage<T>[]>([]);
  const inView = useRef(WHOLE);
  /** Reasons for the next read, besides events. */
  const wants = useRef(NOTHING);
  useEffect(() => {
    pages.current = [];
  }, on);
  const resource: Resource<Page<T>> = useResource<Page<T>>(
    async (call, { isFromEvent }) => {
      const { all, more: isMore, view: isView } = wants.current;
      wants.current = NOTHING;
      const one = (cursor?: string) => read(call, cursor);
      const isPartial = (isMore || isView) && !all && !isFromEvent;
      let found = isPartial ? pages.current : outdated(pages.current);
      found = await refreshed(found, inView.current, one);
      if (isMore || found.length === 0) found = await appended(found, one);
      if (!call.signal.aborted) {
        pages.current = found;
        // Something else may have come into view meanwhile.
        view(inView.current);
      }
      return listed(found);
    },
    on,
    after,
  );
  const want = (what: Partial<typeof NOTHING>) => {
    wants.current = { ...wants.current, ...what };
    return resource.reload();
  };
  const reload = useCallback(() => want({ all: true }), []);
  const more = useCallback(() => want({ more: true }), []);
  const view = useCallback((span: Span) => {
    inView.current = span;
    if (pages.current.length > MAX_WHOLE && isStaleIn(pages.current, span)) void want({ view: true });
  }, []);
  return { ...resource, reload, more, view };
}
