// Calls in progress, and calls and webhooks that went wrong lately.

import { CALL, CALLS, DELIVERIES, DELIVERY, address } from "../addresses";
import { type Schemas, api } from "../api";
import { callId, shortId } from "../calls/names";
import { type Days, daysQuery, lastDays } from "../days";
import { ask } from "../problem";
import { Link } from "../router";
import { type Call, useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { CallCharacter, Subject } from "./call-names";
import { readDeliveries } from "./delivery";

/** Number of entries that are shown of each list. */
const SHOWN = 10;
/** Number of days whose failures are shown, today among them. */
const DAYS = 7;
const ALL: Days = { from: null, to: null };

type CallView = Schemas["CallView"];

async function readCalls(call: Call, partner: string, state: CallView["state"], days: Days) {
  const { data, next_cursor } = await ask(api.GET("/v2/calls", { ...call, params: { query: { partner, state, limit: SHOWN, ...daysQuery(days) } } }));
  return { entries: data, hasMore: Boolean(next_cursor) };
}

type RowsProps = { partner: string; calls: CallView[]; label: string };

function CallRows({ partner, calls, label }: RowsProps) {
  const hasReasons = calls.some(({ error_code: code }) => code);
  return (
    <Table label={label}>
      <thead>
        <tr>
          <th scope="col">Call</th>
          <th scope="col">Character</th>
          <th scope="col">Created</th>
          {hasReasons && <th scope="col">Reason</th>}
        </tr>
      </thead>
      <tbody>
        {calls.map(({ id, character, created_at, error_code }) => (
          <tr key={id}>
            <th scope="row">
              <Link to={address(CALL, { partner, id: callId(id) ?? id })}>
                Call <code>{shortId(callId(id) ?? id)}</code>
              </Link>
            </th>
            <td>
              <CallCharacter partner={partner} reference={character} />
            </td>
            <td>
              <Time at={created_at} />
            </td>
            {hasReasons && (
              <td>
                <code>{error_code}</code>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

type CallsProps = { partner: string; title: string; state: CallView["state"]; none: string; isRecent?: boolean };

/** The newest calls in a state; with `isRecent`, those of the last days alone. */
export function CallsInState({ partner, title, state, none, isRecent = false }: CallsProps) {
  const days = isRecent ? lastDays(DAYS) : ALL;
  const calls = useResource((call) => readCalls(call, partner, state, days), [partner, state, days.from], { partner, kinds: ["call"] });
  const id = `calls-${state}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <Shown of={calls}>
        {({ entries, hasMore }) => (
          <>
            {entries.length === 0 ? <p class="none">{none}</p> : <CallRows partner={partner} calls={entries} label={`The newest: ${title}`} />}
            {hasMore && <Link to={address(CALLS, { partner }, { state, ...days })}>All of them</Link>}
          </>
        )}
      </Shown>
    </section>
  );
}

export function FailedDeliveries({ partner }: { partner: string }) {
  const days = lastDays(DAYS);
  const deliveries = useResource((call) => readDeliveries(call, partner, { state: "failed", limit: SHOWN, ...daysQuery(days) }), [partner, days.from], {
    partner,
    kinds: ["delivery"],
  });
  return (
    <section aria-labelledby="failed-deliveries">
      <h2 id="failed-deliveries">Webhooks of the last 7 days that failed</h2>
      <Shown of={deliveries}>
        {({ entries, next }) => (
          <>
            {entries.length === 0 ? (
              <p class="none">None.</p>
            ) : (
              <Table label="Deliveries that failed">
                <thead>
                  <tr>
                    <th scope="col">Delivery</th>
                    <th scope="col">About</th>
                    <th scope="col">Created</th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map(({ id, event, subject, created_at }) => (
                    <tr key={id}>
                      <th scope="row">
                        <Link to={address(DELIVERY, { partner, id })}>
                          {event} <code>{shortId(id)}</code>
                        </Link>
                      </th>
                      <td>
                        <Subject partner={partner} subject={subject} />
                      </td>
                      <td>
                        <Time at={created_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </Table>
            )}
            {next !== null && <Link to={address(DELIVERIES, { partner }, { state: "failed", ...days })}>All of them</Link>}
          </>
        )}
      </Shown>
    </section>
  );
}
