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
import { Icon } from "../ui/icon";
import { Reload } from "../ui/reload";
import { usePages } from "../ui/resource";
import { Empty, More, Shown, Table } from "../ui/states";
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

function Row({ partner, of }: { partner: string; of: Quota }) {
  return (
    <tr class={of.revoked_at ? "over" : ""}>
      <th scope="row" class="name" dir="auto">
        <Link to={address(QUOTA, { partner, id: of.id })}>{nameOf(of)}</Link>
      </th>
      <td>
        <Limits of={of} />
      </td>
      <td>
        <QuotaStateLabel of={of} />
      </td>
      <td>{of.kinds.map((kind) => KIND_NAMES[kind]).join(", ")}</td>
      <td>{of.period_end ? <Time at={of.period_end} /> : <span class="none">{PERIOD_NAMES[of.period]}</span>}</td>
      <td>
        <Time at={of.last_used_at} />
      </td>
      <td>
        {of.revoked_at ? (
          <>
            revoked <Time at={of.revoked_at} />
          </>
        ) : (
          <Time at={of.expires_at} />
        )}
      </td>
    </tr>
  );
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
      <Shown of={quotas}>
        {({ entries, next }) => (
          <>
            <div class="actions">
              <Reload of={quotas} />
              <button type="button" class="primary" onClick={() => (isCreating.value = true)}>
                <Icon name="plus" /> Create a quota
              </button>
            </div>
            {entries.length === 0 ? (
              <Empty icon="gauge" title="No quotas yet">
                <p>A quota is a key for an application, with limits. Create one for text, speech, calls or transcripts.</p>
              </Empty>
            ) : (
              <Table label="Quotas">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Used of the limits</th>
                    <th scope="col">State</th>
                    <th scope="col">For</th>
                    <th scope="col">Resets</th>
                    <th scope="col">Last used</th>
                    <th scope="col">Expires</th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((quota) => (
                    <Row key={quota.id} partner={partner} of={quota} />
                  ))}
                </tbody>
              </Table>
            )}
            <More next={next} isLoading={quotas.isLoading.value} more={quotas.more} />
          </>
        )}
      </Shown>
      {isCreating.value && <NewQuota partner={partner} onCreated={() => void quotas.reload()} onClose={() => (isCreating.value = false)} />}
    </>
  );
}
