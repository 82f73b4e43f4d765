// What was spent today, and the limits that are nearly used up.

import { BASE, KNOWLEDGE, QUOTA, QUOTAS, address } from "../addresses";
import { api, may } from "../api";
import { nameOf } from "../calls/names";
import { tightest, tightestOf } from "../knowledge/budget";
import { BudgetBar, CompactBudget } from "../knowledge/budget-bar";
import { ask } from "../problem";
import { type Quota, LIMIT_NAMES, limitedOf, standingOf } from "../quotas/quota";
import { Link } from "../router";
import { formatPercent } from "../ui/format";
import { AsOf, asOf, useRecent } from "../ui/recent";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Today } from "./overview-today";

/** Number of limits that are shown of each kind. */
const SHOWN = 5;

/** The limit of a quota that is used up first, in a line. */
function CompactQuota({ of }: { of: Quota }) {
  const found = tightestOf(limitedOf(of).map((measure) => [measure, standingOf(of, measure)] as const));
  if (!found) return null;
  const { measure, bar } = found;
  return (
    <div class="compact-budget">
      <BudgetBar of={bar} />
      <span>
        {formatPercent(bar.used + bar.reserved)} of {LIMIT_NAMES[measure].toLowerCase().replace("us dollars", "dollars")}
      </span>
    </div>
  );
}

function ClosestQuotas({ partner }: { partner: string }) {
  const quotas = useRecent(
    useResource(
      (call) => asOf(ask(api.GET("/api/quotas/{partner}", { ...call, params: { path: { partner }, query: { sort: "limit", limit: SHOWN } } }))),
      [partner],
      { partner, kinds: ["call", "completion"] },
    ),
  );
  return (
    <Shown of={quotas}>
      {({ data: found, at }) => {
        const limited = found.filter((quota) => limitedOf(quota).length > 0 && !quota.revoked_at);
        if (limited.length === 0) return <p class="none">No quota has limits.</p>;
        return (
          <>
            <AsOf at={at} of={quotas} />
            <Table label="Limits of quotas">
              <thead>
                <tr>
                  <th scope="col">Quota</th>
                  <th scope="col">Used of the limit that is used up first</th>
                </tr>
              </thead>
              <tbody>
                {limited.map((quota) => (
                  <tr key={quota.id}>
                    <th scope="row" class="name" dir="auto">
                      <Link to={address(QUOTA, { partner, id: quota.id })}>{nameOf(quota)}</Link>
                    </th>
                    <td>
                      <CompactQuota of={quota} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
          </>
        );
      }}
    </Shown>
  );
}

function ClosestBases({ partner }: { partner: string }) {
  const bases = useResource(
    (call) => ask(api.GET("/api/kb-list/{partner}", { ...call, params: { path: { partner }, query: { sort: "limit", limit: SHOWN } } })),
    [partner],
    { partner, kinds: ["base", "budget", "document"] },
  );
  return (
    <Shown of={bases}>
      {({ knowledge_bases: found }) => {
        const limited = found.filter(({ budget }) => tightest(budget) !== null);
        return limited.length === 0 ? (
          <p class="none">No knowledge base has a budget.</p>
        ) : (
          <Table label="Budgets of knowledge bases">
            <thead>
              <tr>
                <th scope="col">Knowledge base</th>
                <th scope="col">Used of the limit that is used up first</th>
              </tr>
            </thead>
            <tbody>
              {limited.map(({ name, budget }) => (
                <tr key={name}>
                  <th scope="row" class="name" dir="auto">
                    <Link to={address(BASE, { partner, name })}>{name}</Link>
                  </th>
                  <td>
                    <CompactBudget of={budget} />
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
        );
      }}
    </Shown>
  );
}

/** The spending of all partners today, for administrators. */
export function SpendOfAll() {
  return (
    <section aria-labelledby="today-all">
      <h2 id="today-all">Spent today by all partners (UTC)</h2>
      <Today />
    </section>
  );
}

export function Spend({ partner }: { partner: string }) {
  return (
    <>
      {may("keys") && (
        <section aria-labelledby="today">
          <h2 id="today">Spent today (UTC)</h2>
          <Today partner={partner} />
        </section>
      )}
      {may("keys") && (
        <section aria-labelledby="closest-quotas">
          <h2 id="closest-quotas">Quotas closest to their limits</h2>
          <ClosestQuotas partner={partner} />
          <Link to={address(QUOTAS, { partner })}>All quotas</Link>
        </section>
      )}
      {may("knowledge") && (
        <section aria-labelledby="closest-bases">
          <h2 id="closest-bases">Knowledge bases closest to their budgets</h2>
          <ClosestBases partner={partner} />
          <Link to={address(KNOWLEDGE, { partner })}>All knowledge bases</Link>
        </section>
      )}
    </>
  );
}
