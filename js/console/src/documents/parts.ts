// Long texts in parts.

/** Length of a part, in UTF-16 units. */
export const PART_LENGTH = 200_000;
/** Distance from its end at which a part may end at a line break. */
const SLACK = 2_000;

/** Returns the end of the part that begins at `begin`: at a line break if one is near, and never within a character. */
export function partEnd(text: string, begin: number): number {
  const end = begin + PART_LENGTH;
  if (end >= text.length) return text.length;
  const line = text.lastIndexOf("\n", end - 1);
  if (line >= end - SLACK) return line + 1;
  const isWithin = /[\uD800-\uDBFF]/.test(text.charAt(end - 1));
  return isWithin ? end - 1 : end;
}

/** Returns the first `count` parts of a text, and the length of what follows. */
export function firstParts(text: string, count: number): { parts: string[]; rest: number } {
  const parts: string[] = [];
  let begin = 0;
  while (parts.length < count && begin < text.length) {
    const end = partEnd(text, begin);
    parts.push(text.slice(begin, end));
    begin = end;
  }
  return { parts, rest: text.length - begin };
}
