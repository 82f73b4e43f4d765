// Differences of two texts, line by line, with bounds on the work.
//
// These are shown as text rather than by the merge view of CodeMirror: screen readers say of each line that it was added or removed, a print has all of
// them, and the views of characters need no editor.

import { diffLines } from "diff";

export type Line = { kind: "same" | "added" | "removed"; text: string };
/** Lines that follow each other, or a number of equal ones that are left out. */
export type Hunk = { lines: Line[] } | { skipped: number };
export type Difference =
  | { kind: "equal" }
  | { kind: "different"; hunks: Hunk[]; added: number; removed: number }
  /** Comparing takes too much time or memory. */
  | { kind: "too-large" };

export type Bounds = { characters: number; lines: number; edits: number; ms: number };
export const BOUNDS: Bounds = { characters: 4_000_000, lines: 50_000, edits: 4_000, ms: 2_000 };

/** Equal lines that are shown around a change. */
const CONTEXT = 3;

const split = (text: string) => (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** Returns the hunks of lines: equal ones that are far from any change are left out. */
export function hunks(lines: readonly Line[]): Hunk[] {
  const near = new Set<number>();
  for (const [place, { kind }] of lines.entries()) {
    if (kind === "same") continue;
    for (let at = place - CONTEXT; at <= place + CONTEXT; at += 1) near.add(at);
  }
  const found: Hunk[] = [];
  for (const [place, line] of lines.entries()) {
    const last = found.at(-1);
    if (near.has(place)) {
      if (last && "lines" in last) last.lines.push(line);
      else found.push({ lines: [line] });
    } else if (last && "skipped" in last) last.skipped += 1;
    else found.push({ skipped: 1 });
  }
  return found;
}

/** Compares two texts. */
export function difference(before: string, after: string, bounds: Bounds = BOUNDS): Difference {
  if (before === after) return { kind: "equal" };
  if (before.length + after.length > bounds.characters) return { kind: "too-large" };
  if (countLines(before) + countLines(after) > bounds.lines) return { kind: "too-large" };
  const parts = diffLines(before, after, { maxEditLength: bounds.edits, timeout: bounds.ms });
  if (!parts) return { kind: "too-large" };
  const lines: Line[] = [];
  let [added, removed] = [0, 0];
  for (const part of parts) {
    const kind = part.added ? "added" : part.removed ? "removed" : "same";
    const texts = split(part.value);
    if (kind === "added") added += texts.length;
    if (kind === "removed") removed += texts.length;
    for (const text of texts) lines.push({ kind, text });
  }
  return { kind: "different", hunks: hunks(lines), added, removed };
}
