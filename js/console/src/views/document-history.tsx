// The history of a document: its steps, and the requests to services for it.

import type { ComponentChildren } from "preact";

import { type Schemas, api } from "../api";
import type { DocumentAt } from "../documents/contents";
import { STEP_NAMES, STEP_STATES, reasonInWords } from "../documents/words";
import { useSummedPages } from "../knowledge/summed";
import { OUTCOMES, PURPOSES } from "../knowledge/words";
import { ask } from "../problem";
import { formatDuration, formatNumber, formatUsd } from "../ui/format";
import { More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";

type Step = Schemas["HistoryStepView"];
type Request = Schemas["HistoryRequestView"];

function useHistory({ partner, base, id }: DocumentAt) {
  return useSummedPages<Request, Step[]>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base, doc_id: id }, query: { ...(cursor !== undefined && { cursor }) } };
      const page = await ask(api.GET("/api/document-history/{partner}/{kb}/{doc_id}", { ...call, params }));
      return { entries: page.requests, next: page.next_cursor ?? null, summary: page.steps ?? null };
    },
    [partner, base, id],
    { partner, kinds: ["document"], base, id },
  );
}

function Steps({ of }: { of: Step[] }) {
  if (of.length === 0) return <p class="none">No steps are kept of this document.</p>;
  return (
    <Table label="Steps">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Step</th>
          <th scope="col">State</th>
          <th scope="col">Reason</th>
        </tr>
      </thead>
      <tbody>
        {of.map(({ at, step, state, reason }, place) => (
          <tr key={of.length - place}>
            <td>
              <Time at={at} />
            </td>
            <td>{STEP_NAMES[step]}</td>
            <td>
              <span class={`state ${STEP_STATES[state].mark}`}>{STEP_STATES[state].text}</span>
            </td>
            <td class="name" dir="auto">
              {reason && reasonInWords(reason)}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** A figure of a request. What is null is not known, or not known yet. */
function Figure({ of, isPending, children }: { of: unknown; isPending: boolean; children: () => ComponentChildren }) {
  if (of !== null && of !== undefined) return <>{children()}</>;
  return <span class="none">{isPending ? "pending" : "not known"}</span>;
}

function RequestRow({ of }: { of: Request }) {
  const { kind, input_tokens: input, output_tokens: output, seconds, cost_usd: cost } = of;
  const isPending = !of.outcome;
  return (
    <tr>
      <td>
        <Time at={of.created_at} />
      </td>
      <td>{PURPOSES[kind]}</td>
      <td class="name">{of.model}</td>
      <td>{of.outcome ? OUTCOMES[of.outcome] : "pending"}</td>
      <td class="number">
        {kind === "transcribe" ? (
          <Figure of={seconds} isPending={isPending}>{() => formatDuration(seconds ?? 0)}</Figure>
        ) : (
          <Figure of={input ?? output} isPending={isPending}>{() => `${formatNumber(input ?? 0)} in, ${formatNumber(output ?? 0)} out`}</Figure>
        )}
      </td>
      <td class="number">
        <Figure of={cost} isPending={isPending}>{() => formatUsd(cost ?? 0)}</Figure>
      </td>
    </tr>
  );
}

function Requests({ of }: { of: Request[] }) {
  if (of.length === 0) return <p class="none">No service was asked for this document.</p>;
  return (
    <Table label="Requests to services">
      <thead>
        <tr>
          <th scope="col">Sent</th>
          <th scope="col">Purpose</th>
          <th scope="col">Model</th>
          <th scope="col">Outcome</th>
          <th scope="col" class="number">
            Tokens or time
          </th>
          <th scope="col" class="number">
            Cost
          </th>
        </tr>
      </thead>
      <tbody>
        {of.map((request) => (
          <RequestRow key={request.id} of={request} />
        ))}
      </tbody>
    </Table>
  );
}

export function History({ at }: { at: DocumentAt }) {
  const history = useHistory(at);
  return (
    <Shown of={history}>
      {({ entries, next }) => (
        <>
          <h2>Steps</h2>
          <Steps of={history.summary.value ?? []} />
          <h2>Requests to services</h2>
          <Requests of={entries} />
          <More next={next} isLoading={history.isLoading.value} more={history.more} />
        </>
      )}
    </Shown>
  );
}
