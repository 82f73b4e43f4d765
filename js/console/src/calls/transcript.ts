// Turns of a transcript.

export type Line = { text: string; originator: string };
/** Lines of one speaker that follow each other. */
export type Turn = { originator: string; lines: string[] };

/** Groups lines by turns. Lines without text are left out. */
export function turns(lines: readonly Line[]): Turn[] {
  const found: Turn[] = [];
  for (const { text, originator } of lines) {
    if (text.trim() === "") continue;
    const last = found.at(-1);
    if (last?.originator === originator) last.lines.push(text);
    else found.push({ originator, lines: [text] });
  }
  return found;
}
