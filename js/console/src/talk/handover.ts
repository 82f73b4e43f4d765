// Hands a character that is being edited over to the page that calls it: on a channel of this origin whose name nobody else knows.

import type { Channel } from "../events/feed";
import { type Clock, within } from "../clock";

/** Who is called: a saved character by its reference, or what one holds. */
export type Called = {
  /** Name of the character. */
  name: string;
  character: string | { personality: string; parameters: Record<string, unknown> };
  /** The values of placeholders. */
  values: Record<string, string>;
};

export type Join = (name: string, receive: (message: unknown) => void) => Channel | null;

type Message = "wanted" | { called: Called };

/** The time that the page of the editor has to answer. */
const ANSWER_MS = 2_000;

const nameOf = (id: string) => `colloquy-talk-${id}`;

/** Returns an id that nobody can guess. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Answers pages that ask for the newest state of what is edited. Returns a function that ends this. */
export function offer(join: Join, id: string, newest: () => Called): () => void {
  const channel = join(nameOf(id), (message) => {
    if ((message as Message) === "wanted") channel?.post({ called: newest() } satisfies Message);
  });
  return () => channel?.close();
}

/** Returns the newest state of what is edited; null if its editor is closed. */
export async function request(join: Join, id: string, clock: Clock): Promise<Called | null> {
  let channel: Channel | null = null;
  try {
    return await within(
      new Promise<Called>((resolve) => {
        channel = join(nameOf(id), (message) => {
          if (typeof message === "object" && message !== null && "called" in message) resolve(message.called as Called);
        });
        channel?.post("wanted" satisfies Message);
      }),
      ANSWER_MS,
      clock,
    );
  } catch {
    return null;
  } finally {
    (channel as Channel | null)?.close();
  }
}
