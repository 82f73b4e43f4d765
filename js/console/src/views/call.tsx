// One call: its state, its transcript, and its webhook delivery.

import { CALLS, address } from "../addresses";
import { type Schemas, api, may } from "../api";
import { readFilter } from "../calls/filter";
import { turns } from "../calls/transcript";
import { ask } from "../problem";
import { query } from "../router";
import { Back } from "../ui/back";
import { formatDuration } from "../ui/format";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { Values } from "../ui/value";
import { CallCharacter, CallStateLabel, characterName } from "./call-names";
import { DeliveryDetails, readDeliveries } from "./delivery";

type CallView = Schemas["CallView"];
type Props = { partner: string; id: string };

/** What error codes of calls mean. */
const REASONS: Record<string, string> = {
  NODE_LOST: "The server that ran the call stopped unexpectedly.",
  NOT_JOINED: "Nobody joined before the signed URL expired.",
};

function Facts({ partner, id, of }: Props & { of: CallView }) {
  const { call_seconds: seconds, server_runtime_seconds: serverSeconds } = of.duration;
  const isOver = of.state === "completed" || of.state === "error";
  return (
    <dl>
      <dt>State</dt>
      <dd>
        <CallStateLabel state={of.state} />
      </dd>
      {of.error_code && (
        <>
          <dt>Reason</dt>
          <dd>
            {REASONS[of.error_code]} <code>{of.error_code}</code>
          </dd>
        </>
      )}
      <dt>Character</dt>
      <dd>
        <CallCharacter partner={partner} reference={of.character} />
      </dd>
      <dt>Created</dt>
      <dd>
        <Time at={of.created_at} />
      </dd>
      <dt>{isOver ? "Ended" : "Last change"}</dt>
      <dd>
        <Time at={of.updated_at} />
      </dd>
      {typeof seconds === "number" && (
        <>
          <dt>Duration</dt>
          <dd>{formatDuration(seconds)}</dd>
        </>
      )}
      {typeof serverSeconds === "number" && (
        <>
          <dt>Server time</dt>
          <dd>{formatDuration(serverSeconds)}</dd>
        </>
      )}
      <dt>Id</dt>
      <dd>
        <code>{id}</code>
      </dd>
    </dl>
  );
}

function Transcript({ id, character }: { id: string; character: string }) {
  const transcript = useResource((call) => ask(api.GET("/v2/calls/{call_id}/transcript", { ...call, params: { path: { call_id: id } } })), [id]);
  return (
    <Shown of={transcript}>
      {({ data }) => {
        const found = turns(data.transcript ?? []);
        if (found.length === 0) return <p class="none">Nothing was said.</p>;
        return (
          <ol class="transcript">
            {found.map(({ originator, lines }, place) => (
              <li key={place} class={originator === "user" ? "user" : "bot"}>
                <strong>{originator === "user" ? "Visitor" : character}</strong>
                {lines.map((line, at) => (
                  <p key={at} class="text" dir="auto">
                    {line}
                  </p>
                ))}
              </li>
            ))}
          </ol>
        );
      }}
    </Shown>
  );
}

function Delivery({ partner, of }: { partner: string; of: CallView }) {
  const deliveries = useResource((call) => readDeliveries(call, partner, { subject: of.id, limit: 1 }), [partner, of.id], {
    partner,
    kinds: ["delivery"],
  });
  return (
    <Shown of={deliveries}>
      {({ entries: [newest] }) =>
        newest ? (
          <DeliveryDetails partner={partner} id={newest.id} />
        ) : (
          <p class="none">No webhook. A call has one if it was created with on_completion_webhook.</p>
        )
      }
    </Shown>
  );
}

const NO_TRANSCRIPT: Partial<Record<CallView["state"], string>> = {
  starting: "Nobody has joined yet.",
  ongoing: "The transcript appears here when the call has ended.",
  error: "A call that failed has no transcript.",
};
const NO_DELIVERY: Partial<Record<CallView["state"], string>> = {
  starting: "A webhook is sent when the call has completed.",
  ongoing: "A webhook is sent when the call has completed.",
  error: "A call that failed sends no webhook.",
};

export function Call({ partner, id }: Props) {
  const call = useResource(
    (options) => ask(api.GET("/v2/calls/{call_id}", { ...options, params: { path: { call_id: id } } })),
    [id],
    { partner, kinds: ["call"], id },
  );
  return (
    <>
      <Back to={address(CALLS, { partner }, readFilter(query.value))}>All calls</Back>
      <Shown of={call}>
        {({ data }) => {
          const { state, metadata } = data;
          return (
            <>
              <Facts partner={partner} id={id} of={data} />
              <h2>Transcript</h2>
              {state === "completed" ? (
                <Transcript id={id} character={characterName(data.character, partner)} />
              ) : (
                <p class="none">{NO_TRANSCRIPT[state]}</p>
              )}
              {metadata && Object.keys(metadata).length > 0 && (
                <>
                  <h2>Metadata of the page</h2>
                  <Values of={metadata} />
                </>
              )}
              {may("webhooks") && (
                <>
                  <h2>Webhook</h2>
                  {state === "completed" ? <Delivery partner={partner} of={data} /> : <p class="none">{NO_DELIVERY[state]}</p>}
                </>
              )}
            </>
          );
        }}
      </Shown>
    </>
  );
}
