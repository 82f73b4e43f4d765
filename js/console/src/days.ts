// Days of filters, as `YYYY-MM-DD` in the time zone of the reader.

/** The first and the last day of a filter, both included. */
export type Days = { from: string | null; to: string | null };

/** Returns the beginning of a day, `after` days later; null if there is no such day. */
function dayBegin(text: string, after: number): Date | null {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return null;
  const at = (days: number) => {
    const date = new Date(2000, 0, 1);
    date.setFullYear(year, month - 1, day + days);
    return date;
  };
  const isReal = at(0).getMonth() === month - 1 && at(0).getDate() === day;
  return isReal ? at(after) : null;
}

/** Reads the days of an address. Those that do not exist are left out. */
export function readDays(query: URLSearchParams): Days {
  const day = (name: string) => {
    const text = query.get(name);
    return text !== null && dayBegin(text, 0) ? text : null;
  };
  return { from: day("from"), to: day("to") };
}

/** Returns the days from `count` - 1 days ago on: the last `count` days, today among them. */
export function lastDays(count: number, now = new Date()): Days {
  const first = new Date(now.getFullYear(), now.getMonth(), now.getDate() - count + 1);
  const two = (value: number) => String(value).padStart(2, "0");
  return { from: `${String(first.getFullYear()).padStart(4, "0")}-${two(first.getMonth() + 1)}-${two(first.getDate())}`, to: null };
}

/** Returns the days as the API takes them. */
export function daysQuery({ from, to }: Days): { created_from?: string; created_before?: string } {
  const begin = from === null ? null : dayBegin(from, 0);
  const end = to === null ? null : dayBegin(to, 1);
  return { ...(begin && { created_from: begin.toISOString() }), ...(end && { created_before: end.toISOString() }) };
}
