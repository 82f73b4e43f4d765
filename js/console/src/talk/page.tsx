// The page for calls: a voice call with a character, saved or not.

import { useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { CALL, address } from "../addresses";
import { api, may, sessions } from "../api";
import { timing } from "../calls/transcript";
import { ask } from "../problem";
import { Icon } from "../ui/icon";
import { useKept } from "../ui/kept";
import { useResource } from "../ui/resource";
import { Loading, Shown } from "../ui/states";
import type { Target } from "./address";
import type { Call } from "./call";
import { type Callee, closedWords } from "./callee";
import type { Called } from "./handover";
import { MAX_SECONDS } from "./target";
import { stateWords } from "./words";

/** Links to the console open beside this page, which would end its call by leaving. */
const BESIDE = { target: "_blank", rel: "noreferrer noopener" };

/** The loudness at which the level of the microphone is full: that of speech nearby. */
const FULL_LEVEL = 0.3;

function Level({ of }: { of: Call }) {
  const level = useComputed(() => Math.min(1, Math.sqrt(of.level.value / FULL_LEVEL)));
  return (
    <label class="talk-level">
      Microphone level
      <meter min={0} max={1} value={level.value} />
    </label>
  );
}

/** The choice of a microphone, where there are several. */
function Microphones({ of }: { of: Call }) {
  const { microphones, microphone } = of;
  if (microphones.value.length < 2) return null;
  return (
    <label class="talk-device">
      Microphone
      <select name="microphone" value={microphone.value} onChange={(event) => void of.choose(event.currentTarget.value)}>
        {microphones.value.map(({ deviceId, label }) => (
          <option key={deviceId} value={deviceId}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

function Controls({ of }: { of: Call }) {
  const { state, agent, end, isOver, isMuted, isBlocked, failure } = of;
  return (
    <>
      <div class="talk-controls">
        <p class="talk-state" role="status">
          {stateWords(state.value, agent.value, end.value)}
        </p>
        <button type="button" class={`talk-call ${isOver.value ? "primary" : "danger"}`} onClick={() => (of.isOver.peek() ? void of.start() : of.hangUp())}>
          <Icon name={isOver.value ? "phone" : "phone-off"} /> {isOver.value ? "Call" : "Hang up"}
        </button>
        <button type="button" aria-pressed={isMuted.value} onClick={() => of.mute(!of.isMuted.peek())}>
          <Icon name="mic" /> Mute
        </button>
        {isBlocked.value && (
          <button type="button" onClick={() => void of.play()}>
            <Icon name="play" /> Play the sound
          </button>
        )}
        <Level of={of} />
        <Microphones of={of} />
      </div>
      <p class="error" role="alert">
        {failure.value}
      </p>
    </>
  );
}

/** The words of both sides, as they are understood and spoken. */
function Captions({ of, name }: { of: Call; name: string }) {
  const list = useRef<HTMLDivElement>(null);
  const lines = of.lines.value;
  useEffect(() => list.current?.scrollTo({ top: list.current.scrollHeight }), [lines]);
  if (lines.length === 0) return null;
  return (
    <div ref={list} class="conversation" role="log" aria-label="Conversation" tabIndex={0}>
      <ol class="transcript">
        {lines.map(({ id, originator, text, final }) => (
          <li key={id} class={originator === "user" ? "user" : "bot"} aria-busy={!final}>
            <strong>{originator === "user" ? "You" : name}</strong>
            <p class={final ? "text" : "text interim"} dir="auto">
              {text}
            </p>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** The stages of the last reply with their times, as the server has measured them. */
function LastReply({ partner, id, isOver }: { partner: string; id: string; isOver: boolean }) {
  const lines = useKept(useResource(
    (call) => ask(api.GET("/v2/calls/{call_id}/lines", { ...call, params: { path: { call_id: id } } })),
    [id, isOver],
    { partner, kinds: ["call_lines"], id },
  ));
  const reply = lines.data.value?.data.lines.findLast((line) => line.reply)?.reply;
  const time = reply ? timing(reply) : "";
  const documents = reply?.documents ?? [];
  if (!time) return null;
  return (
    <section class="talk-reply" aria-label="Last reply">
      <h2>Last reply</h2>
      <p>{time}</p>
      {documents.length > 0 && (
        <p class="hint" dir="auto">
          Passages from {documents.join(", ")}
        </p>
      )}
    </section>
  );
}

type TalkProps = { target: Target; called: Called; closedSince: Date | null; call: Call };

function Talk({ target, called, closedSince, call }: TalkProps) {
  const { partner } = target;
  const id = call.id.value;
  const { name, character } = called;
  useEffect(() => {
    document.title = `Talk with ${name} · Colloquy`;
  }, [name]);
  return (
    <>
      <h1 tabIndex={-1} dir="auto">
        Talk with {name}
      </h1>
      <p class="hint">
        {typeof character === "string" ? "The newest version of the character." : "draft" in target ? "The character as it is written when you press “Call”, saved or not." : "An older version of the character."}{" "}
        A call costs what the models of the server cost, no quota limits it, and it ends after {MAX_SECONDS / 60} minutes.
      </p>
      {closedSince && (
        <p class="notice" role="status">
          <Icon name="triangle-alert" />
          <span>{closedWords(closedSince)}</span>
        </p>
      )}
      <Controls of={call} />
      <Captions of={call} name={name} />
      {id && <LastReply key={id} partner={partner} id={id} isOver={call.isOver.value} />}
      {id && (
        <p>
          <a href={`/console${address(CALL, { partner, id })}`} {...BESIDE}>
            View the call in the console
          </a>
        </p>
      )}
    </>
  );
}

export type PageProps = { target: Target | null; call: Call; callee: Callee | null };

function Content({ target, call, callee }: { target: Target; call: Call; callee: Callee }) {
  const first = useResource(() => callee.read(), []);
  useEffect(() => {
    if (!("draft" in target)) return;
    // Whoever comes back from the editor sees before the next call if that is closed now.
    const look = () => void (call.isOver.peek() && callee.called.peek() && callee.read().catch(() => {}));
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  }, []);
  return <Shown of={first}>{(found) => <Talk target={target} called={callee.called.value ?? found} closedSince={callee.closedSince.value} call={call} />}</Shown>;
}

function SignedOut() {
  return (
    <div class="notice" role="alert">
      <Icon name="user-round" />
      <span>
        You are not signed in.{" "}
        <a href="/console/" {...BESIDE}>
          Sign in to the console
        </a>
        ; then this page goes on.
      </span>
    </div>
  );
}

export function TalkPage({ target, call, callee }: PageProps) {
  const { current, isEnded } = sessions;
  // Whoever signs out, here or elsewhere, is not heard any more.
  useSignalEffect(() => {
    if (current.value === null && !call.isOver.peek()) call.hangUp();
  });
  const isKnown = current.value !== undefined;
  return (
    <main class="talk">
      {(isEnded.value || current.value === null) && <SignedOut />}
      {!isKnown && <Loading />}
      {current.value &&
        (!target || !callee ? (
          <p>The address names no character. Open this page from a character of the console.</p>
        ) : may("calls") ? (
          <Content target={target} call={call} callee={callee} />
        ) : (
          <p>Your key does not allow calls.</p>
        ))}
    </main>
  );
}
