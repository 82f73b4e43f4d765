// Knowledge bases with documents that failed or wait for a budget.

import { BASE, address } from "../addresses";
import { api } from "../api";
import { PARAMETERS } from "../documents/filter";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { Link } from "../router";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";

/** Number of knowledge bases that are shown. */
const SHOWN = 10;

export function UnfinishedKnowledge({ partner }: { partner: string }) {
  const bases = useResource(
    (call) => ask(api.GET("/api/kb-list/{partner}", { ...call, params: { path: { partner }, query: { state: "failed,blocked", limit: SHOWN } } })),
    [partner],
    { partner, kinds: ["base", "folder", "document"] },
  );
  return (
    <section aria-labelledby="unfinished-knowledge">
      <h2 id="unfinished-knowledge">Documents that failed or are blocked</h2>
      <Shown of={bases}>
        {({ knowledge_bases: found, total }) =>
          found.length === 0 ? (
            <p class="none">None.</p>
          ) : (
            <>
              <Table label="Knowledge bases with such documents">
                <thead>
                  <tr>
                    <th scope="col">Knowledge base</th>
                    <th scope="col">Failed</th>
                    <th scope="col">Blocked by a budget</th>
                  </tr>
                </thead>
                <tbody>
                  {found.map(({ name, failed, blocked }) => (
                    <tr key={name}>
                      <th scope="row">
                        <Link to={address(BASE, { partner, name })}>{name}</Link>
                      </th>
                      <td>{failed > 0 && <Link to={address(BASE, { partner, name }, { [PARAMETERS.states]: "failed" })}>{counted(failed, "document")}</Link>}</td>
                      <td>{blocked > 0 && <Link to={address(BASE, { partner, name }, { [PARAMETERS.states]: "blocked" })}>{counted(blocked, "document")}</Link>}</td>
                    </tr>
                  ))}
                </tbody>
              </Table>
              {(total ?? 0) > found.length && <p class="hint">And {counted((total ?? 0) - found.length, "knowledge base")} more.</p>}
            </>
          )
        }
      </Shown>
    </section>
  );
}
