// The budget of a knowledge base: what is used, why it blocks, and what is not known.

import { useSignal } from "@preact/signals";

import { BASE, address } from "../addresses";
import type { Schemas } from "../api";
import { PARAMETERS } from "../documents/filter";
import type { Measure, Standing } from "../knowledge/budget";
import { LimitCard } from "../knowledge/limit-card";
import { counted, reasonWords } from "../knowledge/words";
import { Link } from "../router";
import { formatNumber, formatUsd } from "../ui/format";
import { Icon } from "../ui/icon";
import { ChangeLimits } from "./base-limits";
import { UnknownRequests } from "./base-unknown";

type Budget = Schemas["BudgetView"];

const TITLES: Record<Measure, string> = { characters: "Characters of text", tokens: "Tokens used", dollars: "Dollars used" };
const MEANINGS: Record<Measure, string> = {
  characters: "Accepted text of the documents that there are. Deleting documents frees characters.",
  tokens: "Input and output of rewriting and embedding, also for documents that were deleted.",
  dollars: "Charges of all requests, also for documents that were deleted.",
};

const formatAmount = (measure: Measure, amount: string | number) => (measure === "dollars" ? formatUsd(amount) : formatNumber(Number(amount)));

function Card({ measure, of }: { measure: Measure; of: Standing & { unknown_events: number } }) {
  const { unknown_events: unknown } = of;
  return (
    <LimitCard title={TITLES[measure]} meaning={MEANINGS[measure]} of={of} format={(amount) => formatAmount(measure, amount)}>
      {unknown > 0 && <span>{counted(unknown, "request")} of unknown usage</span>}
    </LimitCard>
  );
}

type BlockedProps = { partner: string; base: string; budget: Budget; waiting: number };

/** Why the budget blocks, and how many documents wait for it. */
function Blocked({ partner, base, budget: of, waiting }: BlockedProps) {
  if (!of.blocked && waiting === 0) return null;
  return (
    <div class="notice" role="status">
      <Icon name="triangle-alert" />
      <div>
        {of.blocked && (
          <>
            <strong>Blocked.</strong> {of.blocking_reasons.map(reasonWords).join(" ")}{" "}
          </>
        )}
        {waiting > 0 && (
          <>
            <strong>{counted(waiting, "document")}</strong> {waiting === 1 ? "waits" : "wait"} for the budget
            {of.blocked ? "." : ": what is left is less than the next step needs."}
          </>
        )}
      </div>
      {waiting > 0 && <Link to={address(BASE, { partner, name: base }, { [PARAMETERS.states]: "blocked" })}>Show {waiting === 1 ? "it" : "them"}</Link>}
    </div>
  );
}

type SectionProps = {
  partner: string;
  base: string;
  budget: Budget;
  /** Documents that wait for the budget. */
  waiting: number;
  isOpen: boolean;
  onChanged: () => void;
};

export function BudgetSection({ partner, base, budget, waiting, isOpen, onChanged }: SectionProps) {
  const isChanging = useSignal(false);
  return (
    <section aria-labelledby="budget">
      <div class="toolbar">
        <h2 id="budget">Budget</h2>
        {isOpen && (
          <button type="button" onClick={() => (isChanging.value = true)}>
            <Icon name="sliders-horizontal" /> Change the limits
          </button>
        )}
      </div>
      <Blocked partner={partner} base={base} budget={budget} waiting={waiting} />
      <div class="budget-cards">
        <Card measure="characters" of={budget.characters} />
        <Card measure="tokens" of={budget.tokens} />
        <Card measure="dollars" of={budget.dollars} />
      </div>
      <UnknownRequests partner={partner} base={base} budget={budget} onDecided={onChanged} />
      {isChanging.value && (
        <ChangeLimits partner={partner} base={base} budget={budget} onChanged={onChanged} onClose={() => (isChanging.value = false)} />
      )}
    </section>
  );
}
