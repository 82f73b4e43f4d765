// The webhook deliveries of a partner, newest first.

import { DELIVERY, address } from "../addresses";
import { shortId } from "../calls/names";
import { type Days, daysQuery, readDays } from "../days";
import { Link, query, setQuery } from "../router";
import { DaysFilter, Filters, StateFilter } from "../ui/filters";
import { formatNumber } from "../ui/format";
import { usePages } from "../ui/resource";
import { RowAction } from "../ui/row-action";
import { Rows } from "../ui/rows";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { notifyFailure } from "../ui/toasts";
import { Subject } from "./call-names";
import { DELIVERY_STATES, type Delivery, type DeliveryState, DeliveryStateLabel, readDeliveries, resend } from "./delivery";

/** A filter as the address holds it. */
type DeliveryFilter = { state: DeliveryState | null } & Days;

type RowProps = { partner: string; of: Delivery; filter: DeliveryFilter; onSent: () => void };

function Row({ partner, of, filter, onSent }: RowProps) {
  const { id, event, subject, url, state, attempt_count, created_at, next_attempt_at } = of;
  const sendAgain = () => resend(partner, id).then(onSent, notifyFailure);
  return (
    <tr>
      <th scope="row">
        <Link to={address(DELIVERY, { partner, id }, filter)}>
          {event} <code>{shortId(id)}</code>
        </Link>
      </th>
      <td>
        <Subject partner={partner} subject={subject} />
      </td>
      <td>
        <DeliveryStateLabel state={state} />
      </td>
      <td>
        <Time at={created_at} />
      </td>
      <td class="number">{formatNumber(attempt_count)}</td>
      <td>
        <Time at={next_attempt_at} otherwise="—" />
      </td>
      <td class="url">{url}</td>
      <td>
        {state !== "pending" && <RowAction icon="refresh-cw" label={`Send ${shortId(id)} again`} onClick={() => void sendAgain()} />}
      </td>
    </tr>
  );
}

function Nothing({ filter: { state, from, to } }: { filter: DeliveryFilter }) {
  if (from !== null || to !== null) return <Empty icon="webhook" title={`No delivery of these days${state ? ` is ${state}` : ""}`} />;
  if (state) return <Empty icon="webhook" title={`No delivery is ${state}`} />;
  return (
    <Empty icon="webhook" title="No deliveries yet">
      <p>
        A call that is created with <code>on_completion_webhook</code> sends a webhook when it has completed.
      </p>
    </Empty>
  );
}

export function Webhooks({ partner }: { partner: string }) {
  const filter: DeliveryFilter = { state: DELIVERY_STATES.find((state) => state === query.value.get("state")) ?? null, ...readDays(query.value) };
  const deliveries = usePages(
    (call, cursor) => readDeliveries(call, partner, { ...(filter.state && { state: filter.state }), ...daysQuery(filter) }, cursor),
    [partner, ...Object.values(filter)],
    { partner, kinds: ["delivery"] },
  );
  const reload = () => void deliveries.reload();
  return (
    <>
      <Filters label="Filter the deliveries">
        <StateFilter states={DELIVERY_STATES} value={filter.state} onSet={(state) => setQuery({ state })} />
        <DaysFilter from={filter.from} to={filter.to} onSet={setQuery} />
      </Filters>
      <Shown of={deliveries}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Nothing filter={filter} />
          ) : (
            <>
              <Table label="Deliveries">
                <thead>
                  <tr>
                    <th scope="col">Delivery</th>
                    <th scope="col">About</th>
                    <th scope="col">State</th>
                    <th scope="col">Created</th>
                    <th scope="col" class="number">
                      Attempts
                    </th>
                    <th scope="col">Next attempt</th>
                    <th scope="col">Receiver</th>
                    <th scope="col">
                      <span class="hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <Rows of={entries} hasMore={next !== null} onView={deliveries.view}>
                  {(delivery) => <Row key={delivery.id} partner={partner} of={delivery} filter={filter} onSent={reload} />}
                </Rows>
              </Table>
              <More next={next} isLoading={deliveries.isLoading.value} more={deliveries.more} isEndless={!deliveries.problem.value} />
            </>
          )
        }
      </Shown>
    </>
  );
}
