// The queues of jobs, and what else waits and why.

import { BASE, DELIVERIES, address } from "../addresses";
import { type Schemas, api } from "../api";
import { PARAMETERS } from "../documents/filter";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { Link } from "../router";
import { NodeName } from "../system/node-name";
import { JOBS, REASONS, WAITING } from "../system/words";
import { formatDuration, formatNumber } from "../ui/format";
import { AsOf, useRecent } from "../ui/recent";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Time } from "../ui/time";

/** Number of partners or knowledge bases that the API lists of each kind and reason. */
const MOST_LISTED = 50;

type Queue = Schemas["SystemQueue"];
type Waiting = Schemas["WaitingWorkView"];

/** Returns a count; one beyond the highest as such. */
const bounded = (count: number, most: number) => (count > most ? `${formatNumber(most)}+` : formatNumber(count));

function Row({ of, most }: { of: Queue; most: number }) {
  const { kind, due, later, failed, oldest_due_age_ms, next_at, running, failures } = of;
  return (
    <tr>
      <th scope="row">
        {JOBS[kind] ?? kind}
        <div class="hint">
          <code>{kind}</code>
        </div>
      </th>
      <td class="number">{bounded(due, most)}</td>
      <td class="number">{typeof oldest_due_age_ms === "number" ? formatDuration(oldest_due_age_ms / 1_000) : "—"}</td>
      <td class="number">{bounded(later, most)}</td>
      <td>
        <Time at={next_at} otherwise="—" />
      </td>
      <td>
        {running.length === 0
          ? "—"
          : running.map(({ node, jobs }) => (
              <div key={node}>
                {formatNumber(jobs)} by <NodeName>{node}</NodeName>
              </div>
            ))}
      </td>
      <td class="number">{bounded(failed, most)}</td>
      <td class="reasons">
        {failures.map(({ reason, jobs, attempts }) => (
          <div key={reason}>
            {counted(jobs, "job")}, up to {counted(attempts, "attempt")}: {reason}
          </div>
        ))}
      </td>
    </tr>
  );
}

/** Returns true if no job of a queue waits, runs or was given up. */
const isIdle = ({ due, later, failed, running }: Queue) => due + later + failed + running.length === 0;

/** The number of what waits, with a link to it. */
function Count({ of, most }: { of: Waiting; most: number }) {
  const { kind, reason, partner, base, count } = of;
  const noun = WAITING[kind];
  const plural = kind === "webhooks" ? "deliveries" : kind === "vectorstore_files" ? "files for a vector store" : `${noun}s`;
  const text = `${bounded(count, most)} ${count === 1 ? noun : plural}`;
  if (!partner) return <>{text}</>;
  if (kind === "webhooks") {
    return <Link to={address(DELIVERIES, { partner }, { state: reason === "failed" ? "failed" : "pending" })}>{text}</Link>;
  }
  if (!base) return <>{text}</>;
  return <Link to={address(BASE, { partner, name: base }, { [PARAMETERS.states]: kind === "documents" ? "blocked" : null })}>{text}</Link>;
}

function WaitingRow({ of, most }: { of: Waiting; most: number }) {
  const { partner, base, reason, detail, since, next_at } = of;
  return (
    <tr>
      <th scope="row" class="what">
        <Count of={of} most={most} />
      </th>
      <td>{partner ?? <span class="none">a deleted partner</span>}</td>
      <td class="name" dir="auto">
        {base ?? ""}
      </td>
      <td class="reasons">
        {REASONS[reason]}
        {detail && <div class="hint detail">{detail}</div>}
      </td>
      <td>
        <Time at={since} otherwise="—" />
      </td>
      <td>
        <Time at={next_at} otherwise="—" />
      </td>
    </tr>
  );
}

function WaitingWork({ of, most }: { of: Waiting[]; most: number }) {
  if (of.length === 0) return <p>Nothing waits for a budget, a receiver or a service.</p>;
  return (
    <Table label="What waits">
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col">Partner</th>
          <th scope="col">Base</th>
          <th scope="col">Why</th>
          <th scope="col">Since</th>
          <th scope="col">Next due</th>
        </tr>
      </thead>
      <tbody>
        {of.map((work) => (
          <WaitingRow key={`${work.kind} ${work.reason} ${work.partner} ${work.base}`} of={work} most={most} />
        ))}
      </tbody>
    </Table>
  );
}

/** The queues with jobs as a table, and the names of the others. */
function Jobs({ of: queues, most }: { of: Queue[]; most: number }) {
  const busy = queues.filter((queue) => !isIdle(queue));
  const idle = queues.filter(isIdle);
  return (
    <>
      {busy.length > 0 && (
        <Table label="Jobs">
          <thead>
            <tr>
              <th scope="col">Job</th>
              <th scope="col" class="number">
                Due
              </th>
              <th scope="col" class="number">
                Oldest
              </th>
              <th scope="col" class="number">
                Scheduled
              </th>
              <th scope="col">Next due</th>
              <th scope="col">Running</th>
              <th scope="col" class="number">
                Gave up
              </th>
              <th scope="col">Failed before</th>
            </tr>
          </thead>
          <tbody>
            {busy.map((queue) => (
              <Row key={queue.kind} of={queue} most={most} />
            ))}
          </tbody>
        </Table>
      )}
      {idle.length > 0 && (
        <p>
          Without jobs: <span class="hint">{idle.map(({ kind }) => JOBS[kind] ?? kind).join(" · ")}</span>
        </p>
      )}
    </>
  );
}

export function Queues() {
  const queues = useRecent(useResource((call) => ask(api.GET("/api/system/queues", call)), []));
  return (
    <Shown of={queues}>
      {({ answered_by, at, most_counted: most, queues: listed, waiting, has_more }) => (
        <>
          <AsOf at={at} node={answered_by.name} of={queues} />
          <h2>What waits</h2>
          <WaitingWork of={waiting} most={most} />
          {has_more && <p class="hint">More waits. Of each kind and reason, only the {formatNumber(MOST_LISTED)} with the most are shown.</p>}
          <h2>Jobs</h2>
          <Jobs of={listed} most={most} />
        </>
      )}
    </Shown>
  );
}
