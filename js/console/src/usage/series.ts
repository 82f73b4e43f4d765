// Rows of usage as a chart and a table show them.

import type { Schemas } from "../api";
import { nameOf } from "../calls/names";
import { type Group, daysBetween } from "./filter";
import { type Measure, amountOf } from "./measures";

export type UsageRow = Schemas["UsageView"];

/** Most series of a chart. The smallest share the last one. */
export const MAX_SERIES = 6;

/** Returns what a row stands for in a column. */
export function groupText(row: UsageRow, group: Group): string {
  if (group === "day") return row.day ?? "";
  if (group === "model") return row.model ?? "";
  if (group === "character") return row.character ?? "no saved character";
  return nameOf({ name: row.quota_name ?? "", id: row.quota_id ?? "" });
}

/** Returns what tells rows apart. Quotas may share a name. */
export function rowKey(row: UsageRow, groups: readonly Group[]): string {
  return JSON.stringify(groups.map((group) => (group === "key" ? row.quota_id : group === "character" ? (row.character ?? null) : groupText(row, group))));
}

/** Returns rows in the order of the server, or the largest amounts first. */
export function ordered(rows: readonly UsageRow[], measure: Measure, isLargestFirst: boolean): readonly UsageRow[] {
  return isLargestFirst ? [...rows].sort((a, b) => amountOf(b, measure) - amountOf(a, measure)) : rows;
}

export type Series = { label: string; values: number[] };
export type Chart = { days: string[]; series: Series[] };

/** Returns a series for each combination of groups besides the day, the largest first. All days are there, also those without usage. */
export function chartOf(rows: readonly UsageRow[], { from, to, groups, measure }: { from: string; to: string; groups: readonly Group[]; measure: Measure }): Chart {
  const days = daysBetween(from, to);
  const places = new Map(days.map((day, place) => [day, place]));
  const others = groups.filter((group) => group !== "day");
  const found = new Map<string, Series & { sum: number }>();
  for (const row of rows) {
    const place = places.get(row.day ?? "");
    if (place === undefined) continue;
    const key = rowKey(row, others);
    const label = others.map((group) => groupText(row, group)).join(" · ");
    const series = found.get(key) ?? { label, values: days.map(() => 0), sum: 0 };
    const amount = amountOf(row, measure);
    series.values[place] = (series.values[place] ?? 0) + amount;
    series.sum += amount;
    found.set(key, series);
  }
  const sorted = [...found.values()].filter(({ sum }) => sum > 0).sort((a, b) => b.sum - a.sum);
  const isMuch = sorted.length > MAX_SERIES;
  const shown = sorted.slice(0, isMuch ? MAX_SERIES - 1 : MAX_SERIES);
  const rest = sorted.slice(shown.length);
  const series: Series[] = shown.map(({ label, values }) => ({ label, values }));
  if (isMuch) series.push({ label: `${rest.length} others`, values: days.map((_, place) => rest.reduce((sum, { values }) => sum + (values[place] ?? 0), 0)) });
  return { days, series };
}

/** Returns the series added up, each on top of those before it. */
export function stacked(series: readonly Series[]): number[][] {
  let below: number[] = [];
  return series.map(({ values }) => (below = values.map((value, place) => value + (below[place] ?? 0))));
}
