// The quality of a call's connection as a chart and a table show it.

import type { Schemas } from "../api";
import { formatNumber } from "../ui/format";

export type QualityPoint = Schemas["QualityPoint"];
/** A figure of each point. */
export type Figure = { name: string; meaning: string; of: (point: QualityPoint) => number | null; format: (value: number) => string };

const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const formatMs = (ms: number) => `${formatNumber(Math.round(ms))} ms`;
const formatPart = (part: number) => percent.format(part);

const ROUND_TRIP: Figure = {
  name: "Round trip",
  meaning: "The longest time that a packet took to the visitor and back.",
  of: ({ round_trip_ms: ms }) => ms ?? null,
  format: formatMs,
};
const JITTER: Figure = {
  name: "Jitter",
  meaning: "95 % of the visitor's packets arrived at most this much later than the fastest ones.",
  of: ({ jitter_ms: ms }) => ms ?? null,
  format: formatMs,
};
const LOSS_RECEIVED: Figure = {
  name: "Lost from the visitor",
  meaning: "Packets of the microphone that were lost.",
  of: ({ loss_received: part }) => part ?? null,
  format: formatPart,
};
const LOSS_SENT: Figure = {
  name: "Lost to the visitor",
  meaning: "Packets of the character's voice that were lost, as the page reports it.",
  of: ({ loss_sent: part }) => part ?? null,
  format: formatPart,
};

export const FIGURES: readonly Figure[] = [ROUND_TRIP, JITTER, LOSS_RECEIVED, LOSS_SENT];
/** Figures that share an axis. */
export const CHARTS = { times: { title: "Round trip and jitter", figures: [ROUND_TRIP, JITTER] }, losses: { title: "Losses", figures: [LOSS_RECEIVED, LOSS_SENT] } } as const;
export type ChartName = keyof typeof CHARTS;

/** Factor by which the time between two points is longer than usual where media was away. */
const GAP = 1.5;

/** Returns the points as columns: seconds of the call, and the values of each figure. Lines break where media was away. */
export function columns(points: readonly QualityPoint[], figures: readonly Figure[]): [number[], ...(number | null)[][]] {
  const steps = points.slice(1).map(({ at_ms: at }, place) => at - (points[place]?.at_ms ?? 0));
  // The last point may be one of a shorter time.
  const usual = Math.min(...(steps.length > 1 ? steps.slice(0, -1) : steps));
  const shown: (QualityPoint | { gap: number })[] = [];
  for (const [place, point] of points.entries()) {
    const before = points[place - 1];
    if (before && point.at_ms - before.at_ms > GAP * usual) shown.push({ gap: before.at_ms + usual / 2 });
    shown.push(point);
  }
  return [
    shown.map((it) => ("gap" in it ? it.gap : it.at_ms) / 1_000),
    ...figures.map(({ of }) => shown.map((it) => ("gap" in it ? null : of(it)))),
  ];
}

/** Returns the largest value of a figure; null if none is known. */
export function worst(points: readonly QualityPoint[], { of }: Figure): number | null {
  const known = points.map(of).filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}
