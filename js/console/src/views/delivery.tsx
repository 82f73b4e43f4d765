// One webhook delivery: its attempts, its payload, and sending it again.

import { DELIVERIES, address } from "../addresses";
import { type Schemas, api } from "../api";
import { readDays } from "../days";
import { type Page, ask } from "../problem";
import { query } from "../router";
import { Action } from "../ui/action";
import { Back } from "../ui/back";
import { formatNumber } from "../ui/format";
import { type Call, useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { notify } from "../ui/toasts";
import { Text } from "../ui/value";
import { Subject } from "./call-names";

export type Delivery = Schemas["DeliveryView"];
type Props = { partner: string; id: string };

export const DELIVERY_STATES = ["pending", "succeeded", "failed"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

const STATE_CLASSES: Record<string, string> = { succeeded: "ok", failed: "down" };

export function DeliveryStateLabel({ state }: { state: string }) {
  return <span class={`state ${STATE_CLASSES[state] ?? ""}`}>{state}</span>;
}

/** Which deliveries to read. */
type DeliveryFilter = { state?: DeliveryState; subject?: string; limit?: number; created_from?: string; created_before?: string };

/** Reads a page of deliveries, newest first. */
export async function readDeliveries(call: Call, partner: string, filter: DeliveryFilter, cursor?: string): Promise<Page<Delivery>> {
  const params = { path: { partner }, query: { ...filter, ...(cursor !== undefined && { cursor }) } };
  const { deliveries, next_cursor } = await ask(api.GET("/api/webhooks/{partner}/deliveries", { ...call, params }));
  return { entries: deliveries, next: next_cursor ?? null };
}

/** Sends a delivery again. */
export async function resend(partner: string, id: string): Promise<void> {
  await ask(api.POST("/api/webhooks/{partner}/deliveries/{id}/resend", { params: { path: { partner, id } } }));
  notify("The webhook is sent again");
}

function Attempts({ attempts }: { attempts: Schemas["AttemptView"][] }) {
  if (attempts.length === 0) return <p class="none">Not attempted yet.</p>;
  return (
    <Table label="Attempts">
      <thead>
        <tr>
          <th scope="col">Attempt</th>
          <th scope="col">Began</th>
          <th scope="col" class="number">
            Took
          </th>
          <th scope="col">Answer</th>
        </tr>
      </thead>
      <tbody>
        {attempts.map(({ number, started_at, duration_ms, status, error }) => (
          <tr key={number}>
            <th scope="row">{formatNumber(number)}</th>
            <td>
              <Time at={started_at} />
            </td>
            <td class="number">{formatNumber(duration_ms)} ms</td>
            <td>{[status, error].filter((part) => part !== null && part !== undefined).join(": ")}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** A delivery, as part of a view. */
export function DeliveryDetails({ partner, id }: Props) {
  const delivery = useResource(
    (call) => ask(api.GET("/api/webhooks/{partner}/deliveries/{id}", { ...call, params: { path: { partner, id } } })),
    [partner, id],
    { partner, kinds: ["delivery"], id },
  );
  const sendAgain = async () => {
    await resend(partner, id);
    await delivery.reload();
  };
  return (
    <Shown of={delivery}>
      {({ event, subject, url, state, next_attempt_at, created_at, attempts, attempt_count, payload }) => (
        <>
          <dl>
            <dt>State</dt>
            <dd>
              <DeliveryStateLabel state={state} />
            </dd>
            <dt>Event</dt>
            <dd>
              {event} of <Subject partner={partner} subject={subject} />
            </dd>
            <dt>Receiver</dt>
            <dd>{url}</dd>
            <dt>Created</dt>
            <dd>
              <Time at={created_at} />
            </dd>
            {next_attempt_at && (
              <>
                <dt>Next attempt</dt>
                <dd>
                  <Time at={next_attempt_at} />
                </dd>
              </>
            )}
            <dt>Id</dt>
            <dd>
              <code>{id}</code>
            </dd>
          </dl>
          <div class="actions">
            <Action icon="refresh-cw" label="Send again" busy="Sending…" onRun={sendAgain} />
          </div>
          <Attempts attempts={attempts} />
          {attempt_count > attempts.length && (
            <p class="hint">
              The newest {formatNumber(attempts.length)} of {formatNumber(attempt_count)} attempts.
            </p>
          )}
          <details>
            <summary>Payload</summary>
            <Text>{JSON.stringify(payload, null, 2)}</Text>
          </details>
        </>
      )}
    </Shown>
  );
}

export function DeliveryPage({ partner, id }: Props) {
  return (
    <>
      <Back to={address(DELIVERIES, { partner }, { state: query.value.get("state"), ...readDays(query.value) })}>All deliveries</Back>
      <DeliveryDetails partner={partner} id={id} />
    </>
  );
}
