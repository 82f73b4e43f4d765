// Figures of knowledge bases and folders.

import { Explained } from "../ui/explained";
import { formatNumber, formatUsd } from "../ui/format";
import { type StateCounts, stateWords } from "./words";

const MARKS = { active: "plain", blocked: "", failed: "down" } as const;

/** Counts of documents that are not done, as words. */
export function StateWords({ of }: { of: StateCounts }) {
  return (
    <>
      {stateWords(of).map(({ kind, text }) => (
        <span key={kind} class={`state ${MARKS[kind]}`}>
          {text}
        </span>
      ))}
    </>
  );
}

/** A number of documents with the counts of those that are not done. */
export function DocumentCounts({ documents, of }: { documents: number; of: StateCounts }) {
  return (
    <div class="counts">
      <span class="total">{formatNumber(documents)}</span>
      <StateWords of={of} />
    </div>
  );
}

const UNKNOWN_REQUESTS = "the cost or the outcome of some requests is not known";

/** Dollars; a lower bound has `≥` and says why. */
export function Cost({ usd, isLowerBound, why = UNKNOWN_REQUESTS }: { usd: string; isLowerBound: boolean; why?: string }) {
  if (!isLowerBound) return <>{formatUsd(usd)}</>;
  return <Explained as={`Lower bound: ${why}`}>≥ {formatUsd(usd)}</Explained>;
}
