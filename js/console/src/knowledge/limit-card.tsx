// A limit as a card: what is used, reserved and left.

import type { ComponentChildren } from "preact";

import { type Amount, type Standing, barOf } from "./budget";
import { BudgetBar } from "./budget-bar";

type Props = {
  title: string;
  /** Explanation of what counts, shown on hover. */
  meaning?: string;
  of: Standing;
  format: (amount: Amount) => string;
  /** Further facts. */
  children?: ComponentChildren;
};

export function LimitCard({ title, meaning, of, format, children }: Props) {
  const bar = barOf(of);
  const { limit, consumed, reserved, remaining } = of;
  return (
    <div class="panel budget-card">
      <h3 title={meaning}>{title}</h3>
      <p>
        <strong>{format(consumed)}</strong> {limit === null || limit === undefined ? <span class="none">no limit</span> : `of ${format(limit)}`}
      </p>
      {bar && <BudgetBar of={bar} />}
      <p class="hint">
        {remaining !== null && remaining !== undefined && <span>{format(remaining)} left</span>}
        {Number(reserved) > 0 && <span class="reserved-key">{format(reserved)} reserved</span>}
        {children}
      </p>
    </div>
  );
}
