// Filters of the list of calls: as the address holds them, and as the API takes them.

export const CALL_STATES = ["starting", "ongoing", "completed", "error"] as const;
export type CallState = (typeof CALL_STATES)[number];

/** A filter as the address holds it. Days are `YYYY-MM-DD`, in the time zone of the reader, and both are included. */
export type CallFilter = { state: CallState | null; character: string | null; from: string | null; to: string | null };

/** A filter as the API takes it. */
export type CallQuery = { partner: string; state?: CallState; character?: string; created_from?: string; created_before?: string };

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

/** Reads the filter of an address. Values that mean nothing are left out. */
export function readFilter(query: URLSearchParams): CallFilter {
  const day = (name: string) => {
    const text = query.get(name);
    return text !== null && dayBegin(text, 0) ? text : null;
  };
  return {
    state: CALL_STATES.find((state) => state === query.get("state")) ?? null,
    character: query.get("character")?.trim() || null,
    from: day("from"),
    to: day("to"),
  };
}

export const isFiltered = (filter: CallFilter) => Object.values(filter).some((value) => value !== null);

/** Returns the query of the API. A character without a partner is one of `partner`. */
export function callQuery({ state, character, from, to }: CallFilter, partner: string): CallQuery {
  const begin = from === null ? null : dayBegin(from, 0);
  const end = to === null ? null : dayBegin(to, 1);
  return {
    partner,
    ...(state && { state }),
    ...(character && { character: character.includes("/") ? character : `repo:${partner}/${character}` }),
    ...(begin && { created_from: begin.toISOString() }),
    ...(end && { created_before: end.toISOString() }),
  };
}
