// Filters of the audit log: as the address holds them, and as the API takes them.

import { type Days, daysQuery, readDays } from "../days";
import { ACTIONS, type Action } from "./words";

/** A filter as the address holds it. */
export type AuditFilter = { action: Action | null; key: string | null; subject: string | null } & Days;

export const NO_FILTER = { action: null, key: null, subject: null, from: null, to: null } as const satisfies AuditFilter;

/** Reads the filter of an address. Actions that do not exist are left out. */
export function readFilter(query: URLSearchParams): AuditFilter {
  const text = (name: string) => query.get(name)?.trim() || null;
  const action = text("action");
  return { action: action !== null && Object.hasOwn(ACTIONS, action) ? (action as Action) : null, key: text("key"), subject: text("subject"), ...readDays(query) };
}

export const isFiltered = (filter: AuditFilter) => Object.values(filter).some((value) => value !== null);

/** Returns the query of the API. */
export function auditQuery({ action, key, subject, ...days }: AuditFilter) {
  const { created_from: from, created_before: until } = daysQuery(days);
  return { ...(action && { action }), ...(key && { key }), ...(subject && { subject }), ...(from && { from }), ...(until && { until }) };
}
