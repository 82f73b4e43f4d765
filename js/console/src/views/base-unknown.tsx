// Requests whose outcome, tokens or cost are not known, and what was decided about them.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { type Schemas, api, sessions } from "../api";
import { OUTCOMES, PURPOSES, counted } from "../knowledge/words";
import { ask } from "../problem";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatNumber, formatUsd } from "../ui/format";
import { usePages } from "../ui/resource";
import { More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { notify } from "../ui/toasts";

type Request = Schemas["UnknownRequestView"];
type TakenFor = Schemas["TakenFor"];
type Base = { partner: string; base: string };

const TAKEN_FOR: Record<TakenFor, string> = { bound: "their upper bound", nothing: "nothing" };

/** Tokens and dollars, as far as they are known. */
function Amounts({ tokens, usd }: { tokens: number | null | undefined; usd: string | null | undefined }) {
  const known = [typeof tokens === "number" && counted(tokens, "token"), typeof usd === "string" && formatUsd(usd)].filter(Boolean);
  if (known.length === 0) return <span class="none">not known</span>;
  return (
    <>
      {known.map((amount) => (
        <div key={amount}>{amount}</div>
      ))}
    </>
  );
}

function knownTokens({ input_tokens: input, output_tokens: output }: Request): number | null {
  return typeof input === "number" || typeof output === "number" ? (input ?? 0) + (output ?? 0) : null;
}

function Row({ of, isDecided }: { of: Request; isDecided: boolean }) {
  return (
    <tr>
      <td>
        <Time at={of.created_at} />
      </td>
      <td>{PURPOSES[of.kind]}</td>
      <td class="name">{of.document_name ? <bdi>{of.document_name}</bdi> : <span class="none">{of.kind === "discover" ? "—" : "deleted"}</span>}</td>
      <td>{of.model}</td>
      <td>{OUTCOMES[of.outcome]}</td>
      <td>
        <Amounts tokens={of.bound_tokens} usd={of.bound_cost_usd} />
      </td>
      <td>
        <Amounts tokens={knownTokens(of)} usd={of.cost_usd} />
      </td>
      {isDecided && (
        <td>
          {of.taken_for ? TAKEN_FOR[of.taken_for] : ""} <Time at={of.decided_at} />
        </td>
      )}
    </tr>
  );
}

/** Requests that wait for a decision, or those that were decided about. */
function Requests({ partner, base, isDecided }: Base & { isDecided: boolean }) {
  const requests = usePages<Request>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base }, query: { decided: isDecided, ...(cursor !== undefined && { cursor }) } };
      const page = await ask(api.GET("/api/knowledgebases/{partner}/{kb}/limits/unknown", { ...call, params }));
      return { entries: page.requests, next: page.next_cursor ?? null };
    },
    [partner, base, isDecided],
    { partner, kinds: ["budget"], base },
  );
  return (
    <Shown of={requests}>
      {({ entries, next }) =>
        entries.length === 0 ? (
          <p class="none">{isDecided ? "Nothing was decided yet." : "Nothing waits for a decision."}</p>
        ) : (
          <>
            <Table label={isDecided ? "Requests that were decided about" : "Requests that wait for a decision"}>
              <thead>
                <tr>
                  <th scope="col">Sent</th>
                  <th scope="col">Purpose</th>
                  <th scope="col">Document</th>
                  <th scope="col">Model</th>
                  <th scope="col">Outcome</th>
                  <th scope="col">At most</th>
                  <th scope="col">{isDecided ? "Counted" : "Known"}</th>
                  {isDecided && <th scope="col">Taken for</th>}
                </tr>
              </thead>
              <tbody>
                {entries.map((request) => (
                  <Row key={request.id} of={request} isDecided={isDecided} />
                ))}
              </tbody>
            </Table>
            <More next={next} isLoading={requests.isLoading.value} more={requests.more} />
          </>
        )
      }
    </Shown>
  );
}

function Decide({ partner, base, onDecided, onClose }: Base & { onDecided: () => void; onClose: () => void }) {
  const decide = async (fields: FormData) => {
    const body = { taken_for: fields.get("taken_for") as TakenFor };
    await ask(api.POST("/api/knowledgebases/{partner}/{kb}/limits/unknown", { params: { path: { partner, kb: base } }, body }));
    onClose();
    notify(`The requests count as ${TAKEN_FOR[body.taken_for]}`);
    onDecided();
  };
  return (
    <Dialog title="Decide about the requests" onClose={onClose}>
      <p>All requests of this knowledge base whose usage is not known count from now on as what you choose. The bills of the providers tell which is right.</p>
      <Form action="Decide" busy="Deciding…" onSend={decide} onCancel={onClose}>
        <label>
          Count them as
          <select name="taken_for">
            <option value="bound">their upper bound</option>
            <option value="nothing">nothing</option>
          </select>
        </label>
        <p class="hint">Requests without an upper bound can only count as nothing. A decision cannot be undone.</p>
      </Form>
    </Dialog>
  );
}

type UnknownProps = Base & { budget: Schemas["BudgetView"]; onDecided: () => void };

export function UnknownRequests({ partner, base, budget, onDecided }: UnknownProps) {
  const { tokens, dollars, uncertain_operations: uncertain } = budget;
  const isUndecided = tokens.unknown_events + dollars.unknown_events + uncertain > 0;
  const isShown = useSignal(isUndecided);
  useEffect(() => {
    if (isUndecided) isShown.value = true;
  }, [isUndecided]);
  const isDeciding = useSignal(false);
  return (
    <details class="unknown" open={isShown.value} onToggle={(event) => (isShown.value = event.currentTarget.open)}>
      <summary>
        Requests of unknown usage:{" "}
        {isUndecided ? <strong>{uncertain > 0 ? `${formatNumber(uncertain)} of unknown outcome` : "to be decided about"}</strong> : "none"}
      </summary>
      {isShown.value && (
        <>
          {isUndecided && (
            <>
              <p>
                The outcome, the tokens or the cost of requests that were sent are not known. Under a limit of tokens or dollars, no charged request is
                sent until an administrator decides what they count as.
              </p>
              {sessions.current.value?.isAdmin && (
                <button type="button" onClick={() => (isDeciding.value = true)}>
                  Decide
                </button>
              )}
            </>
          )}
          <Requests partner={partner} base={base} isDecided={false} />
          <h3>Decided</h3>
          <Requests partner={partner} base={base} isDecided />
        </>
      )}
      {isDeciding.value && <Decide partner={partner} base={base} onDecided={onDecided} onClose={() => (isDeciding.value = false)} />}
    </details>
  );
}
