// Filters of the list of calls: as the address holds them, and as the API takes them.

import { type Days, daysQuery, readDays } from "../days";

export const CALL_STATES = ["starting", "ongoing", "completed", "error"] as const;
export type CallState = (typeof CALL_STATES)[number];

/** A filter as the address holds it. */
export type CallFilter = { state: CallState | null; character: string | null } & Days;

/** A filter as the API takes it. */
export type CallQuery = { partner: string; state?: CallState; character?: string; created_from?: string; created_before?: string };

/** Reads the filter of an address. Values that mean nothing are left out. */
export function readFilter(query: URLSearchParams): CallFilter {
  return {
    state: CALL_STATES.find((state) => state === query.get("state")) ?? null,
    character: query.get("character")?.trim() || null,
    ...readDays(query),
  };
}

export const isFiltered = (filter: CallFilter) => Object.values(filter).some((value) => value !== null);

/** Returns the query of the API. A character without a partner is one of `partner`. */
export function callQuery({ state, character, ...days }: CallFilter, partner: string): CallQuery {
  return {
    partner,
    ...(state && { state }),
    ...(character && { character: character.includes("/") ? character : `repo:${partner}/${character}` }),
    ...daysQuery(days),
  };
}
