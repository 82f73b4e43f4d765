// Measures of usage, as people read them.

import type { Schemas } from "../api";
import { formatCompact, formatDuration, formatNumber, formatUsd } from "../ui/format";

const shortUsd = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", notation: "compact", maximumSignificantDigits: 3 });

export const MEASURES = ["requests", "tokens", "dollars", "seconds", "characters"] as const;
export type Measure = (typeof MEASURES)[number];

export const MEASURE_NAMES: Record<Measure, string> = {
  requests: "Requests",
  tokens: "Tokens",
  dollars: "US dollars",
  seconds: "Time of calls",
  characters: "Characters spoken",
};

/** Returns an amount with all its digits. */
export function formatAmount(measure: Measure, amount: number | string): string {
  if (measure === "dollars") return formatUsd(amount);
  return measure === "seconds" ? formatDuration(Number(amount)) : formatNumber(Number(amount));
}

/** Returns an amount as short as an axis needs it. */
export function formatShort(measure: Measure, amount: number): string {
  if (measure === "seconds") return formatDuration(amount);
  return measure === "dollars" ? shortUsd.format(amount) : formatCompact(amount);
}

type Amounts = Pick<Schemas["UsageView"], Measure>;

/** Returns an amount as a number. Dollars lose what a double cannot hold, which no chart shows. */
export const amountOf = (row: Amounts, measure: Measure) => Number(row[measure]);
