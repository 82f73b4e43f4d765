// Turns of a conversation.

import type { Schemas } from "../api";

export type Line = Schemas["CallLineView"];
export type Reply = Schemas["ReplyRecord"];
/** Lines of one speaker that follow each other. */
export type Turn = { originator: string; lines: Line[] };

/** Groups lines by turns. Lines without text are left out. */
export function turns(lines: readonly Line[]): Turn[] {
  const found: Turn[] = [];
  for (const line of lines) {
    if (line.text.trim() === "") continue;
    const last = found.at(-1);
    if (last?.originator === line.originator) last.lines.push(line);
    else found.push({ originator: line.originator, lines: [line] });
  }
  return found;
}

const seconds = new Intl.NumberFormat(undefined, { style: "unit", unit: "second", unitDisplay: "short", minimumFractionDigits: 1, maximumFractionDigits: 1 });

const inSeconds = (ms: number) => seconds.format(ms / 1_000);

/** Returns how long the visitor waited for a reply, and what took how long. */
export function timing({ waited_ms, transcription_ms, model_ms, synthesis_ms }: Reply): string {
  const stages = [
    ["words", transcription_ms],
    ["model", model_ms],
    ["voice", synthesis_ms],
  ] as const;
  const known = stages.flatMap(([name, ms]) => (typeof ms === "number" ? [`${name} ${inSeconds(ms)}`] : []));
  const waited = typeof waited_ms === "number" ? [`heard after ${inSeconds(waited_ms)}`] : [];
  return [...waited, ...(known.length > 0 ? [known.join(", ")] : [])].join(": ");
}
