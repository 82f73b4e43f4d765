// The quotas of a partner: their limits, and what is left of them.

import { useSignal } from "@preact/signals";

import { QUOTA, address } from "../addresses";
import { api } from "../api";
import { nameOf } from "../calls/names";
import { barOf } from "../knowledge/budget";
import { BudgetBar } from "../knowledge/budget-bar";
import { askPage } from "../problem";
import {
  KIND_NAMES, LIMIT_UNITS, PERIOD_NAMES, type Quota, type QuotaState, limitedOf, standingOf, stateOf,
} from "../quotas/quota";
import { Link } from "../router";
import { formatAmount } from "../usage/measures";
import { Expiry } from "../ui/expiry";
import { Icon } from "../ui/icon";
import { type Column, List } from "../ui/list";
import { Reload } from "../ui/reload";
import { usePages } from "../ui/resource";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";
import { NewQuota } from "./quota-form";

const STATE_CLASSES: Record<QuotaState, string> = { active: "ok", "used up": "down", "switched off": "plain", expired: "plain", revoked: "plain" };

export function QuotaStateLabel({ of }: { of: Quota }) {
  const state = stateOf(of);
  return <span class={`state ${STATE_CLASSES[state]}`}>{state}</span>;
}

/** Each limit with its bar. */
function Limits({ of }: { of: Quota }) {
  const limited = limitedOf(of);
  if (limited.length === 0) return <span class="none">no limits</span>;
  return (
    <div class="quota-limits">
      {limited.map((measure) => {
        const standing = standingOf(of, measure);
        const bar = barOf(standing);
        return (
          <div key={measure}>
            {bar && <BudgetBar of={bar} />}
            <span>
              {formatAmount(measure, standing.consumed)} of {formatAmount(measure, standing.limit ?? 0)}
              <span class="none">
                {LIMIT_UNITS[measure]}
                {Number(standing.reserved) > 0 && `, ${formatAmount(measure, standing.reserved)} reserved`}
              </span>
            </span>
          </div>
        );
      })}
    </div>
  );
}

function columnsOf(partner: string): Column<Quota>[] {
  return [
    {
      title: "Name",
      class: "name",
      cell: (quota) => (
        <Link to={address(QUOTA, { partner, id: quota.id })}>
          <bdi>{nameOf(quota)}</bdi>
        </Link>
      ),
    },
    { title: "Used of the limits", cell: (quota) => <Limits of={quota} /> },
    { title: "State", cell: (quota) => <QuotaStateLabel of={quota} /> },
    { title: "For", cell: ({ kinds }) => kinds.map((kind) => KIND_NAMES[kind]).join(", ") },
    { title: "Resets", cell: ({ period, period_end: at }) => (at ? <Time at={at} /> : <span class="none">{PERIOD_NAMES[period]}</span>) },
    { title: "Last used", cell: ({ last_used_at: at }) => <Time at={at} /> },
    { title: "Expires", cell: (quota) => <Expiry of={quota} /> },
  ];
}

export function Quotas({ partner }: { partner: string }) {
  const quotas = usePages(
    (call, cursor) =>
      askPage(api.GET("/api/quotas/{partner}", { ...call, params: { path: { partner }, query: { ...(cursor !== undefined && { cursor }) } } })),
    [partner],
  );
  const isCreating = useSignal(false);
  return (
    <>
      <div class="actions">
        <Reload of={quotas} />
        <button type="button" class="primary" onClick={() => (isCreating.value = true)}>
          <Icon name="plus" /> Create a quota
        </button>
      </div>
      <List of={quotas} label="Quotas" columns={columnsOf(partner)} keyOf={({ id }) => id} isOver={({ revoked_at: at }) => Boolean(at)}>
        <Empty icon="gauge" title="No quotas yet">
          <p>A quota is a key for an application, with limits. Create one for text, speech, calls or transcripts.</p>
        </Empty>
      </List>
      {isCreating.value && <NewQuota partner={partner} onCreated={() => void quotas.reload()} onClose={() => (isCreating.value = false)} />}
    </>
  );
}
