// One call: its state, what is said in it, its end, and its webhook delivery.

import { useSignal } from "@preact/signals";

import { CALLS, address } from "../addresses";
import { type Schemas, api, may } from "../api";
import { readFilter } from "../calls/filter";
import { Cost } from "../knowledge/figures";
import { ask } from "../problem";
import { query } from "../router";
import { Back } from "../ui/back";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatDuration } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { notify } from "../ui/toasts";
import { Values } from "../ui/value";
import { CallLines } from "./call-lines";
import { CallCharacter, CallStateLabel, characterName } from "./call-names";
import { CallQuality } from "./call-quality";
import { CallVisitor } from "./call-visitor";
import { DeliveryDetails, readDeliveries } from "./delivery";

type CallView = Schemas["CallView"];
type Props = { partner: string; id: string };

/** Meanings of the error codes of calls. */
const REASONS: Record<string, string> = {
  BAD_OFFER: "The browser of the visitor offered a connection that the server cannot use.",
  CANCELLED: "It was ended before the visitor was connected.",
  INTERNAL: "The server failed. Its log has the reason.",
  NODE_LOST: "The server that ran the call stopped unexpectedly.",
  NOT_CONNECTED: "The microphone was not allowed, or no sound came through.",
  NOT_JOINED: "Nobody joined before the signed URL expired.",
  PROTOCOL: "The page did not follow the protocol of calls.",
};

const isOver = (state: CallView["state"]) => state === "completed" || state === "error";

function Facts({ partner, id, of }: Props & { of: CallView }) {
  const { call_seconds: seconds, server_runtime_seconds: serverSeconds } = of.duration;
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
      {of.joined_at && (
        <>
          <dt>Joined</dt>
          <dd>
            <Time at={of.joined_at} />
          </dd>
        </>
      )}
      {of.ended_at && (
        <>
          <dt>Ended</dt>
          <dd>
            <Time at={of.ended_at} />
          </dd>
        </>
      )}
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
      {of.cost && (
        <>
          <dt>Cost</dt>
          <dd>
            <Cost
              usd={of.cost.dollars}
              isLowerBound={of.cost.is_lower_bound}
              why="no price of calls is set (calls.usd_per_hour), and the price of outside services for a call is not known"
            />
          </dd>
        </>
      )}
      <dt>Id</dt>
      <dd>
        <code>{id}</code>
      </dd>
    </dl>
  );
}

type EndProps = { id: string; state: CallView["state"]; onEnded: () => void; onClose: () => void };

function EndCall({ id, state, onEnded, onClose }: EndProps) {
  const end = async () => {
    const { data } = await ask(api.POST("/v2/calls/{call_id}/end", { params: { path: { call_id: id } } }));
    onClose();
    notify(isOver(data.state) ? "The call has ended" : "The call ends within seconds");
    onEnded();
  };
  return (
    <Dialog title="End the call?" onClose={onClose}>
      <p>{state === "ongoing" ? "The visitor hears no more, as if the character had hung up." : "Nobody can join it any more."}</p>
      <Form action="End the call" busy="Ending…" isDanger onSend={end} onCancel={onClose} />
    </Dialog>
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

const NO_LINES: Partial<Record<CallView["state"], string>> = {
  starting: "Nobody has joined yet.",
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
  const isEnding = useSignal(false);
  return (
    <>
      <Back to={address(CALLS, { partner }, readFilter(query.value))}>All calls</Back>
      <Shown of={call}>
        {({ data }) => {
          const { state, metadata } = data;
          return (
            <>
              {!isOver(state) && (
                <div class="actions">
                  <button type="button" onClick={() => (isEnding.value = true)}>
                    <Icon name="phone-off" /> End the call
                  </button>
                </div>
              )}
              {isEnding.value && !isOver(state) && (
                <EndCall id={id} state={state} onEnded={() => void call.reload()} onClose={() => (isEnding.value = false)} />
              )}
              <Facts partner={partner} id={id} of={data} />
              <h2>Transcript</h2>
              {state === "completed" || state === "ongoing" ? (
                <CallLines partner={partner} id={id} character={characterName(data.character, partner)} isOver={isOver(state)} />
              ) : (
                <p class="none">{NO_LINES[state]}</p>
              )}
              {state === "completed" && (
                <>
                  <h2>What the visitor told</h2>
                  <CallVisitor partner={partner} id={id} />
                </>
              )}
              {state !== "starting" && (
                <>
                  <h2>Quality of the connection</h2>
                  <CallQuality partner={partner} id={id} isOver={isOver(state)} />
                </>
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
