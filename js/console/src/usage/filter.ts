// Which usage is shown: as the address holds it, and as the API takes it.

import { MEASURES, type Measure } from "./measures";

export const GROUPS = ["day", "model", "character", "key"] as const;
export type Group = (typeof GROUPS)[number];

export const GROUP_NAMES: Record<Group, string> = { day: "Day", model: "Model", character: "Character", key: "Key" };

/** Ranges that move with the present day. */
export const RANGES = ["7-days", "30-days", "90-days", "365-days", "month", "last-month"] as const;
export type Range = (typeof RANGES)[number];

export const RANGE_NAMES: Record<Range, string> = {
  "7-days": "7 days",
  "30-days": "30 days",
  "90-days": "90 days",
  "365-days": "365 days",
  month: "this month",
  "last-month": "last month",
};

const DEFAULT_RANGE: Range = "30-days";
const DAY_MS = 86_400_000;

/** Days are `YYYY-MM-DD` in UTC, as the server sums them; both are included. `range` is null for days that were chosen. */
export type UsageFilter = { range: Range | null; from: string; to: string; groups: Group[]; measure: Measure; isLargestFirst: boolean };

const dayOf = (at: Date) => at.toISOString().slice(0, 10);

/** Returns the present day. */
export const today = (now = new Date()) => dayOf(now);

/** Returns the day `days` later. */
export const later = (day: string, days: number) => dayOf(new Date(Date.parse(day) + days * DAY_MS));

/** Returns all days from one to another. */
export function daysBetween(from: string, to: string): string[] {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  return Array.from({ length: Math.max(0, count) }, (_, place) => later(from, place));
}

function daysOf(range: Range, now: string): { from: string; to: string } {
  const monthBegin = `${now.slice(0, 8)}01`;
  if (range === "month") return { from: monthBegin, to: now };
  if (range === "last-month") {
    const to = later(monthBegin, -1);
    return { from: `${to.slice(0, 8)}01`, to };
  }
  return { from: later(now, 1 - Number.parseInt(range, 10)), to: now };
}

function readDay(text: string | null): string | null {
  if (text === null || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const at = new Date(text);
  return !Number.isNaN(at.getTime()) && dayOf(at) === text ? text : null;
}

/** Reads the filter of an address. Values that mean nothing are left out. `groups` are those that there are. */
export function readUsageFilter(query: URLSearchParams, groups: readonly Group[], now = today()): UsageFilter {
  const [from, to] = [readDay(query.get("from")), readDay(query.get("to"))];
  const named = (query.get("by") ?? "").split(",");
  const chosen = groups.filter((group) => named.includes(group));
  const range = RANGES.find((range) => range === query.get("range")) ?? DEFAULT_RANGE;
  return {
    ...(from !== null && to !== null ? { range: null, from, to } : { range, ...daysOf(range, now) }),
    groups: chosen.length > 0 ? chosen : ["day"],
    measure: MEASURES.find((measure) => measure === query.get("measure")) ?? "requests",
    isLargestFirst: query.get("order") === "largest",
  };
}

/** Returns the parameters of the address for a range. */
export function rangeChanges(range: Range): Record<string, string | null> {
  return { range: range === DEFAULT_RANGE ? null : range, from: null, to: null };
}

/** Returns the parameters of the address with a group added or removed. The last group stays. */
export function groupChanges(groups: readonly Group[], toggled: Group): Record<string, string | null> {
  const next = GROUPS.filter((group) => (group === toggled ? !groups.includes(group) : groups.includes(group)));
  if (next.length === 0) return {};
  return { by: next.join() === "day" ? null : next.join() };
}

/** Returns the query of the API. */
export function usageQuery({ from, to, groups }: UsageFilter): { from: string; to: string; group_by: string } {
  return { from, to, group_by: groups.join() };
}
