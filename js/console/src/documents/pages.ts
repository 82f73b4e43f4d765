// Which pages of a file are in sight, and how large they are shown.

/** Scales that the user can choose, in pixels of CSS for 1/96 inch. */
const STEPS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4];
/** Pages that are drawn at once, at most. */
export const MAX_DRAWN = 8;

/** Returns the next step above (1) or below (-1) a scale, or the scale itself at the end of the steps. */
export function nextScale(scale: number, direction: 1 | -1): number {
  // A scale that fits the width lies between steps, or hardly beside one.
  const slack = 0.01;
  const found = direction > 0 ? STEPS.find((step) => step > scale + slack) : STEPS.findLast((step) => step < scale - slack);
  return found ?? scale;
}

/** A page of a list: its distance from the begin of the list, and its height. */
export type Placed = { offsetTop: number; offsetHeight: number };

/** Returns the index of the first page whose end is below `top`; the last index if there is none. */
export function indexAt(pages: ArrayLike<Placed>, top: number): number {
  let [low, high] = [0, pages.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    const { offsetTop, offsetHeight } = pages[middle] as Placed;
    if (offsetTop + offsetHeight > top) high = middle;
    else low = middle + 1;
  }
  return Math.max(low, 0);
}

/** Returns the first and the last index of the pages to draw for a part of the list that is in sight: those, and one before and behind. */
export function drawnRange(pages: ArrayLike<Placed>, top: number, height: number): [number, number] {
  const first = Math.max(indexAt(pages, top) - 1, 0);
  const last = Math.min(indexAt(pages, top + height) + 1, pages.length - 1, first + MAX_DRAWN - 1);
  return [first, last];
}
