// Line ends of a text that is edited: each line keeps its own, which CodeMirror alone does not.

import { invertedEffects } from "@codemirror/commands";
import { type EditorState, type Extension, StateEffect, StateField, type Transaction } from "@codemirror/state";

/** The end of each line but the last: `\n`, `\r\n` or `\r`. */
type LineEnds = readonly string[];

const END = /\r\n|\n|\r/g;

/** Returns the line ends of a text. */
const lineEndsOf = (text: string): LineEnds => text.match(END) ?? [];

/** Returns the end that lines of a text mostly have; `\n` if there is none. */
function usualEnd(ends: LineEnds): string {
  const counts = new Map<string, number>();
  for (const end of ends) counts.set(end, (counts.get(end) ?? 0) + 1);
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best), ["\n", 0])[0];
}

/** A replacement of text: from the line end of index `start` on, `removed` ones give way to `added` ones. */
type Splice = { start: number; removed: number; added: number };

/** Returns the line ends after replacements, whose places are those before any of them. Added lines have the usual end. */
function spliced(ends: LineEnds, splices: readonly Splice[], usual: string): LineEnds {
  const parts: string[][] = [];
  let from = 0;
  for (const { start, removed, added } of splices) {
    // The lines that stay within a replacement keep their ends.
    const kept = ends.slice(start, start + Math.min(removed, added));
    parts.push(ends.slice(from, start), kept, new Array<string>(added - kept.length).fill(usual));
    from = start + removed;
  }
  return [...parts.flat(), ...ends.slice(from)];
}

/** Line ends that a change restores: those of before what is undone. */
const restored = StateEffect.define<LineEnds>();

/** Returns the replaced lines of a change, by their numbers from 0. */
function splicesOf({ changes, startState }: Transaction): Splice[] {
  const splices: Splice[] = [];
  changes.iterChanges((from, to, _begin, _end, inserted) => {
    const start = startState.doc.lineAt(from).number - 1;
    splices.push({ start, removed: startState.doc.lineAt(to).number - 1 - start, added: inserted.lines - 1 });
  }, true);
  return splices;
}

export type KeptLineEnds = {
  extension: Extension;
  /** Returns the text of a state, with the line ends that its lines had. */
  textOf: (state: EditorState) => string;
};

/** Keeps the line ends of a text. New lines get the usual one, and undone changes restore those of before. */
export function keepLineEnds(text: string): KeptLineEnds {
  const first = lineEndsOf(text);
  const usual = usualEnd(first);
  const field = StateField.define<LineEnds>({
    create: () => first,
    update: (ends, transaction) => {
      const given = transaction.effects.findLast((effect) => effect.is(restored));
      if (given) return given.value as LineEnds;
      if (!transaction.docChanged) return ends;
      const splices = splicesOf(transaction);
      return splices.some(({ removed, added }) => removed > 0 || added > 0) ? spliced(ends, splices, usual) : ends;
    },
  });
  const undoing = invertedEffects.of(({ startState, state }) => {
    const before = startState.field(field);
    return state.field(field) === before ? [] : [restored.of(before)];
  });
  const textOf = (state: EditorState) => {
    const ends = state.field(field);
    return state.doc.toJSON().map((line, index) => (index === 0 ? line : `${ends[index - 1] ?? usual}${line}`)).join("");
  };
  return { extension: [field, undoing], textOf };
}
