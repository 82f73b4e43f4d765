// Times, relative and absolute.

import { signal } from "@preact/signals";

import { formatAbsolute, formatRelative } from "./format";

/** Counts half minutes. Relative times are rendered again with each. */
const ticks = signal(0);
const tick = () => {
  if (!document.hidden) ticks.value += 1;
};
setInterval(tick, 30_000);
document.addEventListener("visibilitychange", tick);

/** A time: relative, and absolute on hover, on focus and on paper. */
export function Time({ at, otherwise = "never" }: { at: string | null | undefined; otherwise?: string }) {
  void ticks.value;
  if (!at) return <span class="none">{otherwise}</span>;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  const absolute = formatAbsolute(date);
  return (
    <time dateTime={at} title={absolute} data-absolute={absolute} tabIndex={0}>
      {formatRelative(date)}
    </time>
  );
}
