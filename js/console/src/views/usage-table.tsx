// Usage as a table, with its total.

import { useSignal } from "@preact/signals";

import { QUOTA, address } from "../addresses";
import type { Schemas } from "../api";
import { BudgetBar } from "../knowledge/budget-bar";
import { Link } from "../router";
import { GROUP_NAMES, type Group, type UsageFilter } from "../usage/filter";
import { MEASURES, MEASURE_NAMES, amountOf, formatAmount } from "../usage/measures";
import { type UsageRow, groupText, ordered, rowKey } from "../usage/series";
import { More, Table } from "../ui/states";

/** Beginning of the id of the budget that replies of drafts are counted in, which is no quota. */
const DRAFTS = "drafts:";

/** Rows that are rendered at a time. */
const STEP = 200;

function GroupCell({ partner, of, group, isFirst }: { partner: string; of: UsageRow; group: Group; isFirst: boolean }) {
  const text = groupText(of, group);
  const isNone = group === "character" && !of.character;
  const id = group === "key" && !of.quota_id?.startsWith(DRAFTS) ? of.quota_id : null;
  const shown = id ? <Link to={address(QUOTA, { partner, id })}>{text}</Link> : isNone ? <span class="none">{text}</span> : text;
  if (isFirst) return <th scope="row" class={group === "day" ? "day" : "name"} dir="auto">{shown}</th>;
  return <td class="name" dir="auto">{shown}</td>;
}

type Props = { partner: string; report: Schemas["UsageReport"]; filter: UsageFilter };

export function UsageTable({ partner, report: { rows, total }, filter: { groups, measure, isLargestFirst } }: Props) {
  const most = useSignal(STEP);
  const all = ordered(rows, measure, isLargestFirst);
  const shown = all.slice(0, most.value);
  const largest = Math.max(...rows.map((row) => amountOf(row, measure)));
  return (
    <>
      <Table label="Rows of usage">
        <thead>
          <tr>
            {groups.map((group) => (
              <th key={group} scope="col">
                {GROUP_NAMES[group]}
              </th>
            ))}
            {MEASURES.map((name) => (
              <th key={name} scope="col" class="number" aria-sort={isLargestFirst && name === measure ? "descending" : undefined}>
                {MEASURE_NAMES[name]}
              </th>
            ))}
            <td class="share" />
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={rowKey(row, groups)}>
              {groups.map((group, place) => (
                <GroupCell key={group} partner={partner} of={row} group={group} isFirst={place === 0} />
              ))}
              {MEASURES.map((name) => (
                <td key={name} class={`number ${amountOf(row, name) === 0 ? "none" : ""}`}>
                  {formatAmount(name, row[name])}
                </td>
              ))}
              <td class="share">{largest > 0 && <BudgetBar of={{ used: amountOf(row, measure) / largest, reserved: 0, isFull: false }} />}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colSpan={groups.length}>
              Total
            </th>
            {MEASURES.map((name) => (
              <td key={name} class="number">
                {formatAmount(name, total[name])}
              </td>
            ))}
            <td class="share" />
          </tr>
        </tfoot>
      </Table>
      <More
        next={all.length > shown.length ? String(shown.length) : null}
        isLoading={false}
        more={async () => {
          most.value += STEP;
        }}
      />
    </>
  );
}
