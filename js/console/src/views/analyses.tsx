// The dialog analyses of a partner, newest first.

import { ANALYSIS, address } from "../addresses";
import { api } from "../api";
import { shortId } from "../calls/names";
import { type Analysis, STATES, STATE_CLASSES, STATE_NAMES, type State } from "../jobs/analyses";
import { type JobFilter, filterParameters, isFiltered, jobId, jobQuery, readJobFilter, sentence } from "../jobs/filter";
import { ask } from "../problem";
import { Link, query } from "../router";
import { formatDuration } from "../ui/format";
import { usePages } from "../ui/resource";
import { Rows } from "../ui/rows";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { JobFilters } from "./job-filters";

export function AnalysisStateLabel({ state }: { state: State }) {
  return <span class={`state ${STATE_CLASSES[state]}`}>{STATE_NAMES[state]}</span>;
}

function Row({ partner, of, filter }: { partner: string; of: Analysis; filter: JobFilter<State> }) {
  const id = jobId(of.id);
  return (
    <tr>
      <th scope="row">
        <Link to={address(ANALYSIS, { partner, id }, filterParameters(filter))}>
          Analysis <code>{shortId(id)}</code>
        </Link>
      </th>
      <td>
        <AnalysisStateLabel state={of.state} />
        {of.error && <p class="reason job-error">{sentence(of.error.message)}</p>}
      </td>
      <td>
        <Time at={of.created_at} />
      </td>
      <td class="number">{typeof of.server_runtime === "number" ? formatDuration(of.server_runtime) : <span class="none">—</span>}</td>
    </tr>
  );
}

function Nothing({ filter }: { filter: JobFilter<State> }) {
  if (isFiltered(filter)) {
    return (
      <Empty icon="search" title="No analysis matches">
        <p>Change the filters above, or show all analyses.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="message-square-text" title="No dialog analyses">
      <p>
        <code>POST /v2/dialog_analyses</code> has a conversation analyzed. Analyses are kept for a day, unless the server is configured otherwise.
      </p>
    </Empty>
  );
}

export function Analyses({ partner }: { partner: string }) {
  const filter = readJobFilter(query.value, STATES);
  const analyses = usePages(
    async (call, cursor) => {
      const asked = { ...jobQuery(filter, partner, "state"), ...(cursor !== undefined && { cursor }) };
      const { data, next_cursor } = await ask(api.GET("/v2/dialog_analyses", { ...call, params: { query: asked } }));
      return { entries: data, next: next_cursor ?? null };
    },
    [partner, filter.states.join(), filter.from, filter.to],
    { partner, kinds: ["analysis"] },
  );
  return (
    <>
      <JobFilters label="Filter the analyses" states={STATES} names={STATE_NAMES} filter={filter} />
      <Shown of={analyses}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Nothing filter={filter} />
          ) : (
            <>
              <Table label="Dialog analyses">
                <thead>
                  <tr>
                    <th scope="col">Analysis</th>
                    <th scope="col">State</th>
                    <th scope="col">Created</th>
                    <th scope="col" class="number">
                      Took
                    </th>
                  </tr>
                </thead>
                <Rows of={entries} onView={analyses.view}>
                  {(analysis) => <Row key={analysis.id} partner={partner} of={analysis} filter={filter} />}
                </Rows>
              </Table>
              <More next={next} isLoading={analyses.isLoading.value} more={analyses.more} isEndless={!analyses.problem.value} />
            </>
          )
        }
      </Shown>
    </>
  );
}
