// Rows of a long table: groups of those near the window, and empty space in place of the others.

import { signal, useSignal } from "@preact/signals";
import { type ComponentChildren, options } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Span } from "../pages";

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

type GroupProps = { children: ComponentChildren; onNear: (isNear: boolean) => void };

function Group({ children, onNear }: GroupProps) {
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

type RowsProps<T> = {
  of: readonly T[];
  /** Renders an entry as one or more rows. */
  children: (entry: T) => ComponentChildren;
  /** Gets the places of the entries near the window. */
  onView?: (span: Span) => void;
};

/** The body of a table that may have thousands of rows. */
export function Rows<T>({ of, children, onView }: RowsProps<T>) {
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
        <Group key={place} onNear={(isNear) => tell(place, isNear)}>
          {entries.map(children)}
        </Group>
      ))}
    </>
  );
}
