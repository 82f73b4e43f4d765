// Filters of lists of jobs, such as transcripts: as the address holds them, and as the API takes them.

import { type Days, daysQuery, readDays } from "../days";

/** A filter as the address holds it. */
export type JobFilter<S extends string> = { states: S[] } & Days;

/** Reads the filter of an address. Values that mean nothing are left out. */
export function readJobFilter<S extends string>(query: URLSearchParams, known: readonly S[]): JobFilter<S> {
  const states = (query.get("state") ?? "").split(",");
  return { states: known.filter((state) => states.includes(state)), ...readDays(query) };
}

export const isFiltered = ({ states, from, to }: JobFilter<string>) => states.length > 0 || from !== null || to !== null;

/** Returns the parameters of an address that holds a filter. */
export const filterParameters = ({ states, from, to }: JobFilter<string>) => ({ state: states.join(",") || null, from, to });

/** Returns the query of the API. `name` is the parameter that takes the states. */
export function jobQuery<N extends string>({ states, ...days }: JobFilter<string>, partner: string, name: N) {
  const chosen = (states.length > 0 ? { [name]: states.join(",") } : {}) as { [K in N]?: string };
  return { partner, ...chosen, ...daysQuery(days) };
}

/** Returns the id of a job, of the path that the API names it by. */
export const jobId = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** Returns a reason that the API gives as a sentence. */
export function sentence(reason: string): string {
  const text = reason.trim();
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) || text === "" ? "" : ".");
}
