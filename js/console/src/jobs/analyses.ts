// Dialog analyses: their states, and their results as rows.

import type { Schemas } from "../api";

export type Analysis = Schemas["DialogAnalysis"];
export type State = Schemas["AnalysisState"];
export type Input = Schemas["DialogAnalysisInput"];

export const STATES = ["in-progress", "completed", "failed"] as const satisfies readonly State[];
export const STATE_NAMES: Record<State, string> = { "in-progress": "in progress", completed: "completed", failed: "failed" };
export const STATE_CLASSES: Record<State, string> = { "in-progress": "busy", completed: "ok", failed: "down" };

/** A field of a result; `value` is null if nothing is known. */
export type Fact = { name: string; value: string | null };

/** Returns the fields of a result, those that are known first. */
export function factsOf(fields: Record<string, unknown>): Fact[] {
  const facts = Object.entries(fields).map(([name, value]) => ({
    name,
    value: value === null || value === undefined ? null : typeof value === "string" ? value : JSON.stringify(value),
  }));
  return [...facts.filter(({ value }) => value !== null), ...facts.filter(({ value }) => value === null)];
}
