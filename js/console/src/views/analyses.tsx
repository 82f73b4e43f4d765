// The dialog analyses of a partner, newest first.

import { ANALYSIS, address } from "../addresses";
import { api } from "../api";
import { shortId } from "../calls/names";
import { type Analysis, STATES, STATE_CLASSES, STATE_NAMES, type State } from "../jobs/analyses";
import { type JobFilter, filterParameters, jobId, jobQuery, readJobFilter, sentence } from "../jobs/filter";
import { ask } from "../problem";
import { Link, query } from "../router";
import { formatDuration } from "../ui/format";
import { ABSENT, type Column, List } from "../ui/list";
import { usePages } from "../ui/resource";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";
import { NoJobs } from "./job-facts";
import { JobFilters } from "./job-filters";

export function AnalysisStateLabel({ state }: { state: State }) {
  return <span class={`state ${STATE_CLASSES[state]}`}>{STATE_NAMES[state]}</span>;
}

type Props = { partner: string };

function columnsOf(partner: string, filter: JobFilter<State>): Column<Analysis>[] {
  return [
    {
      title: "Analysis",
      cell: ({ id }) => (
        <Link to={address(ANALYSIS, { partner, id: jobId(id) }, filterParameters(filter))}>
          Analysis <code>{shortId(jobId(id))}</code>
        </Link>
      ),
    },
    {
      title: "State",
      cell: ({ state, error }) => (
        <>
          <AnalysisStateLabel state={state} />
          {error && <p class="reason job-error">{sentence(error.message)}</p>}
        </>
      ),
    },
    { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
    { title: "Took", isNumber: true, cell: ({ server_runtime: took }) => (typeof took === "number" ? formatDuration(took) : ABSENT) },
  ];
}

export function Analyses({ partner }: Props) {
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
      <List of={analyses} label="Dialog analyses" columns={columnsOf(partner, filter)} keyOf={({ id }) => id}>
        <NoJobs filter={filter} noun="analysis" plural="analyses">
          <Empty icon="message-square-text" title="No dialog analyses">
            <p>
              <code>POST /v2/dialog_analyses</code> has a conversation analyzed. Analyses are kept for a day, unless the server is configured otherwise.
            </p>
          </Empty>
        </NoJobs>
      </List>
    </>
  );
}
