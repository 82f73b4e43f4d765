// The parts of a character that versions are compared by.

import { type Content, isSame } from "./draft";

/** A part of a character, as text. */
export type Part = { title: string; text: string };
/** A part in two versions; an empty text for one that it does not have. */
export type ChangedPart = { title: string; before: string; after: string };

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, sorted(inner)]));
}

/** Returns the parts: the personality, the parameters one by one, and each document. */
export function partsOf({ personality, parameters }: Content): Part[] {
  const { documents = [], ...others } = parameters;
  // Without its braces, and without the commas: a line that becomes the last one stays as it was.
  const settings = JSON.stringify(sorted(others), null, 2).slice(2, -2).replaceAll(/,$/gm, "");
  const names = new Map<string, number>();
  const texts = documents.map(({ title, text }) => {
    const count = (names.get(title) ?? 0) + 1;
    names.set(title, count);
    return { title: count === 1 ? `Document “${title}”` : `Document “${title}” (${count})`, text };
  });
  return [{ title: "Personality", text: personality }, { title: "Settings", text: settings }, ...texts];
}

/** Returns the parts that differ. */
export function changedParts(before: Content, after: Content): ChangedPart[] {
  if (isSame(before, after)) return [];
  const [olds, news] = [partsOf(before), partsOf(after)];
  const textOf = (parts: Part[], wanted: string) => parts.find(({ title }) => title === wanted)?.text ?? "";
  const titles = [...new Set([...olds, ...news].map(({ title }) => title))];
  const pairs = titles.map((title) => ({ title, before: textOf(olds, title), after: textOf(news, title) }));
  return pairs.filter((pair) => pair.before !== pair.after);
}
