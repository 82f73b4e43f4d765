// Rows of a long table: groups of those near the window, and empty space in place of the others.

import { signal, useSignal } from "@preact/signals";
import { type ComponentChildren, options } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import type { Span } from "../pages";
import { firstRows, rowCount } from "./row-numbers";

/** Rows of a group. */
const GROUP = 50;
/** Rows are there before they come into view. */
const MARGIN = "1200px 0px";

/** True while the page is printed, which has all rows. */
const isPrinted = signal(false);

/** Renders before the browser makes the paper: it waits for no task. */
function setPrinted(value: boolean): void {
  const { debounceRendering } = options;
  options.debounceRendering = (render) => render();
  isPrinted.value = value;
  if (debounceRendering) options.debounceRendering = debounceRendering;
  else delete (options as Partial<typeof options>).debounceRendering;
}
addEventListener("beforeprint", () => setPrinted(true));
addEventListener("afterprint", () => setPrinted(false));

type GroupProps = {
  children: ComponentChildren;
  onNear: (isNear: boolean) => void;
  /** Gets the body after each render, null while its rows are left out. */
  onRendered: (body: HTMLTableSectionElement | null) => void;
};

function Group({ children, onNear, onRendered }: GroupProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  /** Height of the rows while they are left out. */
  const height = useSignal<number | null>(null);
  const tell = useRef(onNear);
  tell.current = onNear;
  useEffect(() => {
    const group = body.current;
    if (!group) return;
    const observer = new IntersectionObserver(
      (entries) => {
        const latest = entries.at(-1);
        if (!latest) return;
        tell.current(latest.isIntersecting);
        const isKept = latest.isIntersecting || group.contains(document.activeElement);
        height.value = isKept ? null : latest.boundingClientRect.height;
      },
      { rootMargin: MARGIN },
    );
    observer.observe(group);
    return () => {
      observer.disconnect();
      tell.current(false);
    };
  }, []);
  const isLeftOut = height.value !== null && !isPrinted.value;
  useLayoutEffect(() => onRendered(isLeftOut ? null : body.current));
  return (
    <tbody ref={body}>
      {isLeftOut ? (
        <tr aria-hidden="true">
          <td class="left-out" style={{ blockSize: `${height.value}px` }} />
        </tr>
      ) : (
        children
      )}
    </tbody>
  );
}

/** Numbers the rows of a table while some are left out or unknown, for people who hear it. Returns the function that takes the body of a group. */
function useNumbers(groups: number, hasMore: boolean) {
  const counts = useRef<number[]>([]);
  const bodies = useRef<(HTMLTableSectionElement | null)[]>([]);
  const isQueued = useRef(false);
  const latest = useRef({ groups, hasMore });
  latest.current = { groups, hasMore };
  const number = () => {
    isQueued.current = false;
    const { groups, hasMore } = latest.current;
    bodies.current.length = counts.current.length = groups;
    const table = bodies.current.find((body) => body?.isConnected)?.closest("table");
    if (!table) return;
    const isWhole = !hasMore && bodies.current.every((body) => body);
    const head = table.tHead?.rows.length ?? 0;
    const first = firstRows(counts.current, head);
    const mark = (rows: Iterable<HTMLTableRowElement>, from: number) => {
      for (const row of rows) {
        if (isWhole) row.removeAttribute("aria-rowindex");
        else row.setAttribute("aria-rowindex", String(from));
        from += 1;
      }
    };
    const foot = table.tFoot?.rows ?? [];
    const count = rowCount(counts.current, head, foot.length, hasMore);
    if (isWhole) table.removeAttribute("aria-rowcount");
    else table.setAttribute("aria-rowcount", String(count));
    mark(table.tHead?.rows ?? [], 1);
    bodies.current.forEach((body, place) => body && mark(body.rows, first[place] ?? 1));
    // The place of the foot is unknown while more is.
    if (hasMore) for (const row of foot) row.removeAttribute("aria-rowindex");
    else mark(foot, count - foot.length + 1);
  };
  return (place: number, body: HTMLTableSectionElement | null) => {
    if (body) counts.current[place] = body.rows.length;
    bodies.current[place] = body;
    // All groups that changed are numbered in one task.
    if (!isQueued.current) queueMicrotask(number);
    isQueued.current = true;
  };
}

type RowsProps<T> = {
  of: readonly T[];
  /** True if the list goes on after these entries. */
  hasMore: boolean;
  /** Renders an entry as one or more rows. */
  children: (entry: T) => ComponentChildren;
  /** Gets the places of the entries near the window. */
  onView?: (span: Span) => void;
};

/** The body of a table that may have thousands of rows. */
export function Rows<T>({ of, hasMore, children, onView }: RowsProps<T>) {
  const rendered = useNumbers(Math.ceil(of.length / GROUP), hasMore);
  const near = useRef(new Set<number>());
  const told = useRef("");
  const tell = (place: number, isNear: boolean) => {
    if (isNear) near.current.add(place);
    else near.current.delete(place);
    // All groups that moved are told of in one task.
    queueMicrotask(() => {
      const places = [...near.current];
      if (places.length === 0) return;
      const span = { first: Math.min(...places) * GROUP, last: (Math.max(...places) + 1) * GROUP - 1 };
      if (told.current === `${span.first}-${span.last}`) return;
      told.current = `${span.first}-${span.last}`;
      onView?.(span);
    });
  };
  const groups = Array.from({ length: Math.ceil(of.length / GROUP) }, (_, place) => of.slice(place * GROUP, (place + 1) * GROUP));
  return (
    <>
      {groups.map((entries, place) => (
        <Group key={place} onNear={(isNear) => tell(place, isNear)} onRendered={(body) => rendered(place, body)}>
          {entries.map(children)}
        </Group>
      ))}
    </>
  );
}
