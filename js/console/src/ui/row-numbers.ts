// Numbers of the rows of a table whose rows are not all in the page, as `aria-rowindex` and `aria-rowcount` take them.

/** Returns the number of the first row of each group, from 1. `counts` holds the rows of each group, `head` the rows before the first. */
export function firstRows(counts: readonly number[], head: number): number[] {
  let next = head + 1;
  return counts.map((count) => {
    const first = next;
    next += count;
    return first;
  });
}

/** Returns the number of all rows of a table; -1 while it is unknown. */
export function rowCount(counts: readonly number[], head: number, foot: number, hasMore: boolean): number {
  return hasMore ? -1 : counts.reduce((sum, count) => sum + count, head + foot);
}
