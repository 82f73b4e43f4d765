// Usage of today.

import type { Schemas } from "../api";

/** Returns the day of the server, which counts in UTC. */
export const todayUtc = (now = new Date()) => now.toISOString().slice(0, 10);

/** Returns true if something was used that cost nothing: the settings of the server may lack its price. */
export const isLowerBound = ({ rows }: Pick<Schemas["UsageReport"], "rows">) =>
  rows.some(({ dollars, tokens, characters, seconds }) => Number(dollars) === 0 && tokens + characters + seconds > 0);

export const PART_MEASURES = ["dollars", "requests", "tokens", "seconds", "characters"] as const;

type Report = Pick<Schemas["UsageReport"], "rows" | "total" | "knowledge_bases" | "all">;

/** A part of the usage, or all of it. `isLower` is true if its dollars are a lower bound. */
export type SpentPart = { name: string; used: Schemas["UsageView"]; isLower: boolean };

/** Returns all that was used, and its parts. Rows of the report are made for models. */
export function spentParts(report: Report): SpentPart[] {
  const { total, knowledge_bases: bases, all } = report;
  const quotas = { name: "Quotas and playgrounds", used: total, isLower: isLowerBound(report) };
  if (!bases || !all) return [quotas];
  const knowledge = { name: "Knowledge bases", used: bases.total, isLower: isLowerBound({ rows: bases.models }) };
  return [{ name: "All", used: all, isLower: quotas.isLower || knowledge.isLower }, quotas, knowledge];
}
