// The state of an evaluation, and its figures beside earlier ones.

import type { Schemas } from "../api";
import { formatDifference, formatFigure } from "../knowledge/retrieval";
import { formatNumber } from "../ui/format";

/** Differences that show as 0 with three decimals. */
const SAME = 0.0005;

/** How far an evaluation is. */
export function EvaluationStatus({ of: { status, asked, questions, error } }: { of: Schemas["EvaluationView"] }) {
  if (status === "done") return <span class="state ok">done</span>;
  if (status === "failed") return <span class="state down">failed{error && `: ${error}`}</span>;
  return (
    <span class="state busy" role="status">
      {status}, {formatNumber(asked)} of {formatNumber(questions)}
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
