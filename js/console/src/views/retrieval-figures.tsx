// The state of an evaluation, and its figures beside earlier ones.

import type { Schemas } from "../api";
import { EVALUATION_CLASSES, EVALUATION_NAMES, formatDifference, formatFigure } from "../knowledge/retrieval";
import { formatNumber } from "../ui/format";

/** Differences that show as 0 with three decimals. */
const SAME = 0.0005;

/** The state of an evaluation, and its progress. */
export function EvaluationStatus({ of: { status, asked, questions, error } }: { of: Schemas["EvaluationView"] }) {
  const isOver = status === "done" || status === "failed";
  return (
    <span class={`state ${EVALUATION_CLASSES[status]}`} role={isOver ? undefined : "status"}>
      {EVALUATION_NAMES[status]}
      {isOver ? error && `: ${error}` : `, ${formatNumber(asked)} of ${formatNumber(questions)}`}
    </span>
  );
}

/** A figure, and its difference from an earlier one. */
export function Compared({ now, before }: { now: number; before: number | undefined }) {
  const difference = before === undefined ? 0 : now - before;
  const kind = Math.abs(difference) < SAME ? "same" : difference > 0 ? "better" : "worse";
  return (
    <>
      {formatFigure(now)}
      {before !== undefined && <span class={`difference ${kind}`}> {formatDifference(kind === "same" ? 0 : difference)}</span>}
    </>
  );
}
