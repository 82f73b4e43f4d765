// All that was spent today, and its parts.

import { USAGE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { ask } from "../problem";
import { Link } from "../router";
import { MEASURE_NAMES, formatAmount } from "../usage/measures";
import { PART_MEASURES, type SpentPart, spentParts, todayUtc } from "../usage/today";
import { Explained } from "../ui/explained";
import { AsOf, asOf, useRecent } from "../ui/recent";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";

const UNPRICED = "Lower bound: something was used that cost nothing, and the settings of the server may lack its price";

/** Kinds of events after which something may have been spent. Requests with quotas have none. */
const SPENDING = ["call", "completion", "base", "budget", "document"];

function Parts({ of }: { of: SpentPart[] }) {
  return (
    <Table label="Spent today">
      <thead>
        <tr>
          <th scope="col">By</th>
          {PART_MEASURES.map((measure) => (
            <th key={measure} scope="col" class="number">
              {MEASURE_NAMES[measure]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {of.map(({ name, used, isLower }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            {PART_MEASURES.map((measure) => {
              const amount = formatAmount(measure, used[measure]);
              return (
                <td key={measure} class="number">
                  {measure === "dollars" && isLower ? <Explained as={UNPRICED}>≥ {amount}</Explained> : amount}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** The usage of today of a partner, or of all partners: quotas, playgrounds and knowledge bases. */
export function Today({ partner }: { partner?: string }) {
  const usage = useRecent(
    useResource(
      async (call) => {
        const day = todayUtc();
        const query = { from: day, to: day, group_by: "model", include: "knowledge_bases" };
        const report =
          partner === undefined
            ? ask(api.GET("/api/usage", { ...call, params: { query } }))
            : ask(api.GET("/api/usage/{partner}", { ...call, params: { path: { partner }, query } }));
        // A text is the CSV file, which was not asked for.
        return asOf(report as Promise<Schemas["UsageReport"]>);
      },
      [partner],
      partner === undefined ? undefined : { partner, kinds: SPENDING },
    ),
  );
  return (
    <>
      <Shown of={usage}>
        {({ data, at }) => (
          <>
            <AsOf at={at} of={usage} />
            <Parts of={spentParts(data)} />
          </>
        )}
      </Shown>
      {partner !== undefined && <Link to={address(USAGE, { partner })}>Usage of other days</Link>}
    </>
  );
}
