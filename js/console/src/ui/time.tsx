// Times, relative and absolute.

import { signal } from "@preact/signals";

import { kept } from "../storage";
import { formatAbsolute, formatRelative } from "./format";

/** Counts half minutes. Relative times are rendered again with each. */
const ticks = signal(0);
const tick = () => {
  if (!document.hidden) ticks.value += 1;
};
setInterval(tick, 30_000);
document.addEventListener("visibilitychange", tick);

const CHOSEN = "colloquy-times";
const isAbsolute = signal(kept.get(CHOSEN) === "absolute");

/** Shows all times as absolute ones, or as relative ones again. */
export function toggleTimes(): void {
  isAbsolute.value = !isAbsolute.peek();
  kept.set(CHOSEN, isAbsolute.peek() ? "absolute" : "relative");
}

/** A time: relative, and absolute on hover, on a tap, on paper, or everywhere if that was chosen. No tab stop: tables have hundreds of them. */
export function Time({ at, otherwise = "never" }: { at: string | null | undefined; otherwise?: string }) {
  void ticks.value;
  if (!at) return <span class="none">{otherwise}</span>;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  const absolute = formatAbsolute(date);
  return (
    <time dateTime={at} title={absolute} data-absolute={isAbsolute.value ? undefined : absolute} tabIndex={-1}>
      {isAbsolute.value ? absolute : formatRelative(date)}
    </time>
  );
}
