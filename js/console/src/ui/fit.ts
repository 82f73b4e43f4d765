// Fuzzy search.

/**
 * Returns the cost of a match: 0 if the title begins with what was typed, more the later and the farther apart the letters stand. Null if the title
 * does not match.
 */
export function fit(typed: string, title: string): number | null {
  const [sought, text] = [typed.toLowerCase().replaceAll(" ", ""), title.toLowerCase()];
  let at = -1;
  let cost = 0;
  for (const letter of sought) {
    const next = text.indexOf(letter, at + 1);
    if (next === -1) return null;
    cost += next - at - 1;
    at = next;
  }
  return cost;
}
