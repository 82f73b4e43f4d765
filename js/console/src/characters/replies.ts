// Replies of a draft, as they are made: the events of `POST /api/character_drafts/{partner}/replies`.

import { FOREGROUND, api } from "../api";
import { SseParser } from "../events/sse";
import { type Answer, Problem, problemOf, received } from "../problem";
import { type ReplyEvent, type Style, type Turn, messagesOf } from "./conversation";
import type { Content } from "./draft";
import { given } from "./problems";

export type Conversation = { content: Content; values: Record<string, string>; turns: readonly Turn[]; style: Style; model: string };

/** Has a draft reply, and passes the events on until the last one. Throws if the reply does not begin, or breaks off. */
export async function reply(partner: string, { content, values, turns, style, model }: Conversation, signal: AbortSignal, onEvent: (event: ReplyEvent) => void): Promise<void> {
  // Other fields of a version are no part of a character.
  const { personality, parameters } = content;
  const body = { character: { personality, parameters }, character_params: given(values), messages: messagesOf(turns), style, ...(model !== "" && { model }) };
  const params = { path: { partner } };
  const asked = api.POST("/api/character_drafts/{partner}/replies", { headers: FOREGROUND, signal, params, body, parseAs: "stream" });
  const answer = await received(asked as Promise<Answer<ReadableStream<Uint8Array>>>);
  if (!answer.response.ok || !answer.data) throw problemOf(answer);
  const parser = new SseParser();
  const reader = answer.data.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Problem(0, "cut", "The reply broke off.");
    for (const item of parser.push(value)) {
      if (item.type !== "event") continue;
      const event = JSON.parse(item.data) as ReplyEvent;
      onEvent(event);
      if (event.type === "reply.done" || event.type === "reply.failed") return;
    }
  }
}
