// The playground: a conversation with a draft in text, with what each reply took.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { type Style, type Turn, asText, isRetryable, withEvent } from "../characters/conversation";
import type { Content } from "../characters/draft";
import { reply } from "../characters/replies";
import { toProblem } from "../problem";
import { copy } from "../ui/clipboard";
import { Icon } from "../ui/icon";
import { notify, notifyFailure } from "../ui/toasts";
import { TurnDetails } from "./playground-details";
import { ModelChoice } from "./playground-model";
import { CallDraft } from "./talk-button";

type Bot = Extract<Turn, { role: "assistant" }>;

const STATES: Record<Bot["state"], string> = { running: "", done: "", stopped: "Stopped.", failed: "Failed." };

function Said({ of, name }: { of: Turn; name: string }) {
  if (of.role === "user") {
    return (
      <li class="user">
        <strong>You</strong>
        <p class="text" dir="auto">
          {of.text}
        </p>
      </li>
    );
  }
  const { text, state, failure } = of;
  return (
    <li class="bot" aria-busy={state === "running"}>
      <strong>{name}</strong>
      <p class="text" dir="auto">
        {text}
        {state === "running" && text === "" && <span class="hint">…</span>}
      </p>
      {(failure || STATES[state]) && <p class="field-errors">{failure ?? STATES[state]}</p>}
      <TurnDetails of={of} />
    </li>
  );
}

/** Sends turns, one at a time. */
function useConversation(partner: string, content: Content, values: Record<string, string>, style: Signal<Style>, model: Signal<string>) {
  const turns = useSignal<Turn[]>([]);
  const running = useRef<AbortController | null>(null);
  const isRunning = useSignal(false);
  useEffect(() => () => running.current?.abort(), []);
  const change = (changed: (turn: Bot) => Bot) => {
    const last = turns.peek().at(-1);
    if (last?.role === "assistant") turns.value = [...turns.peek().slice(0, -1), changed(last)];
  };
  const send = async (text: string, opening: string) => {
    if (isRunning.peek()) return;
    isRunning.value = true;
    const own = new AbortController();
    running.current = own;
    const greeting: Turn[] = turns.peek().length === 0 && opening !== "" ? [{ role: "assistant", text: opening, state: "done" }] : [];
    const before: Turn[] = [...greeting, ...turns.peek(), { role: "user", text }];
    turns.value = [...before, { role: "assistant", text: "", state: "running" }];
    try {
      await reply(partner, { content, values, turns: before, style: style.peek(), model: model.peek() }, own.signal, (event) => !own.signal.aborted && change((turn) => withEvent(turn, event)));
    } catch (error) {
      if (!own.signal.aborted) change((turn) => ({ ...turn, state: "failed", failure: toProblem(error).message }));
    }
    if (running.current === own) [running.current, isRunning.value] = [null, false];
  };
  const stop = () => {
    running.current?.abort();
    change((turn) => (turn.state === "running" ? { ...turn, state: "stopped" } : turn));
    [running.current, isRunning.value] = [null, false];
  };
  const clear = () => {
    stop();
    const cleared = turns.peek();
    turns.value = [];
    notify("The conversation is cleared", () => {
      if (turns.peek().length === 0) turns.value = cleared;
    });
  };
  /** Sends the last turn again, in place of a reply that failed or was stopped. */
  const retry = () => {
    const last = turns.peek().at(-2);
    if (isRunning.peek() || last?.role !== "user") return;
    turns.value = turns.peek().slice(0, -2);
    void send(last.text, "");
  };
  return { turns, isRunning, send, retry, stop, clear };
}

type PlaygroundProps = {
  partner: string;
  /** Name of the character in the conversation. */
  name: string;
  content: Content;
  /** The reference of the saved character that `content` is of; null for a draft or an older version. */
  reference?: string | null;
  values: Record<string, string>;
  /** The first greeting, filled in; empty if there is none. */
  greeting: string;
};

export function Playground({ partner, name, content, reference = null, values, greeting }: PlaygroundProps) {
  const style = useSignal<Style>("spoken");
  const model = useSignal("");
  const text = useSignal("");
  const field = useRef<HTMLTextAreaElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const { turns, isRunning, send, retry, stop, clear } = useConversation(partner, content, values, style, model);
  const opening = style.value === "spoken" ? greeting : "";
  const shown: Turn[] = turns.value.length === 0 && opening !== "" ? [{ role: "assistant", text: opening, state: "done" }] : turns.value;
  const last = turns.value.at(-1);
  const canRetry = last?.role === "assistant" && isRetryable(last);
  useEffect(() => list.current?.scrollTo({ top: list.current.scrollHeight }), [turns.value]);
  const submit = () => {
    const said = text.peek().trim();
    if (said === "" || isRunning.peek()) return;
    text.value = "";
    void send(said, opening);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  const copyAll = async () => {
    if (await copy(asText(shown, name), null, navigator.clipboard)) notify("The conversation is copied");
    else notifyFailure(new Error("The browser does not let this page copy."));
  };
  // Other fields of a version are no part of a character.
  const { personality, parameters } = content;
  return (
    <div class="playground">
      <p class="hint">Talk with the character as it stands on this page, unsaved changes included. Each reply is a paid request to the model, which counts as usage; quotas do not limit it.</p>
      <p>
        <CallDraft partner={partner} called={{ name, character: reference ?? { personality, parameters }, values }} />
      </p>
      {shown.length > 0 && (
        <div ref={list} class="conversation" role="log" aria-label="Conversation" tabIndex={0}>
          <ol class="transcript">
            {shown.map((turn, place) => (
              <Said key={place} of={turn} name={name} />
            ))}
          </ol>
        </div>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <textarea
          ref={field}
          name="message"
          rows={2}
          dir="auto"
          aria-label="Your words"
          placeholder="Type, and press Enter"
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={press}
        />
        <div class="actions">
          <label class="inline">
            Replies
            <select name="style" value={style.value} onChange={(event) => (style.value = event.currentTarget.value as Style)}>
              <option value="spoken">as in a call</option>
              <option value="written">as in text</option>
            </select>
          </label>
          <ModelChoice partner={partner} model={model} />
          {canRetry && (
            <button
              type="button"
              onClick={() => {
                field.current?.focus();
                retry();
              }}
            >
              <Icon name="refresh-cw" /> Try again
            </button>
          )}
          {shown.length > 0 && (
            <button type="button" onClick={() => void copyAll()}>
              <Icon name="copy" /> Copy
            </button>
          )}
          {turns.value.length > 0 && (
            <button
              type="button"
              onClick={() => {
                field.current?.focus();
                clear();
              }}
            >
              <Icon name="trash-2" /> Clear
            </button>
          )}
          {isRunning.value ? (
            <button type="button" class="primary" onClick={stop}>
              <Icon name="square" /> Stop
            </button>
          ) : (
            <button type="submit" class="primary" aria-disabled={text.value.trim() === ""}>
              Send
            </button>
          )}
        </div>
      </form>
    </div>
  );
}
