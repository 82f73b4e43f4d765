// Budgets as bars.

import { Explained } from "../ui/explained";
import { formatPercent } from "../ui/format";
import { type Bar, type Measures, tightest } from "./budget";
import { reasonWords } from "./words";

const percent = (fraction: number) => `${(100 * fraction).toFixed(2)}%`;

/** The used and reserved parts of a limit. The text beside it has their numbers. */
export function BudgetBar({ of: { used, reserved, isFull } }: { of: Bar }) {
  return (
    <svg class={`budget-bar ${isFull ? "full" : ""}`} aria-hidden="true" focusable="false">
      <rect class="rest" width="100%" height="100%" />
      <rect class="reserved" x={percent(used)} width={percent(reserved)} height="100%" />
      <rect class="used" width={percent(used)} height="100%" />
    </svg>
  );
}

type CompactProps = { of: Measures & { blocked: boolean; blocking_reasons: readonly string[] } };

/** The limit that is used up first, in a line. */
export function CompactBudget({ of: budget }: CompactProps) {
  const found = tightest(budget);
  if (!found) return <span class="none">no limits</span>;
  const { measure, bar } = found;
  return (
    <div class="compact-budget">
      <BudgetBar of={bar} />
      <span>
        {formatPercent(bar.used + bar.reserved)} of {measure}
      </span>
      {budget.blocked && (
        <Explained as={budget.blocking_reasons.map(reasonWords).join(" ")}>
          <span class="state down">blocked</span>
        </Explained>
      )}
    </div>
  );
}
