// A conversation with a draft, turn by turn.

import type { Schemas } from "../api";

export type ReplyEvent = Schemas["DraftReplyEvent"];
export type Prepared = Extract<ReplyEvent, { type: "reply.prepared" }>;
export type Done = Extract<ReplyEvent, { type: "reply.done" }>;
export type Style = Schemas["DraftStyle"];

/** A turn of the conversation. A reply has what was looked up for it and, once complete, what it took. */
export type Turn =
  | { role: "user"; text: string }
  | { role: "assistant"; text: string; state: "running" | "done" | "stopped" | "failed"; prepared?: Prepared; done?: Done; failure?: string };

/** Adds an event to a reply. */
export function withEvent(turn: Extract<Turn, { role: "assistant" }>, event: ReplyEvent): Extract<Turn, { role: "assistant" }> {
  switch (event.type) {
    case "reply.prepared":
      return { ...turn, prepared: event };
    case "reply.delta":
      return { ...turn, text: turn.text + event.text };
    case "reply.retracted":
      return { ...turn, text: "" };
    case "reply.done":
      return { ...turn, done: event, state: "done" };
    case "reply.failed":
      return { ...turn, failure: event.message, state: "failed" };
  }
}

/** Returns true if a reply failed or was stopped, so that its turn can be sent again. */
export const isRetryable = (turn: Extract<Turn, { role: "assistant" }>) => turn.state === "failed" || turn.state === "stopped";

/** Returns the turns that the API gets: those with words, the last 200 at most. */
export const messagesOf = (turns: readonly Turn[]) =>
  turns
    .filter(({ text }) => text.trim() !== "")
    .slice(-200)
    .map(({ role, text }) => ({ role, content: text }));

/** Returns a conversation as text. */
export const asText = (turns: readonly Turn[], name: string) => turns.map(({ role, text }) => `${role === "user" ? "Visitor" : name}: ${text}`).join("\n\n");
