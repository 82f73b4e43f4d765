// Work that the other tabs of the browser would lose.

import type { Clock } from "./clock";
import type { Channel } from "./events/feed";

type Message = { type: "ask" } | { type: "lost"; words: readonly string[] };

export type OthersPorts = {
  /** Joins the channel of the tabs; null if the browser has none. */
  join: (name: string, receive: (message: unknown) => void) => Channel | null;
  /** Words for what this tab would lose. */
  own: () => readonly string[];
  clock: Clock;
};

/** Time that the other tabs are waited for. Those that the browser has suspended do not answer. */
const PATIENCE_MS = 300;

/** Asks the other tabs what they would lose, and answers them. */
export class Others {
  readonly #channel: Channel | null;
  #heard: string[] = [];

  constructor(private readonly ports: OthersPorts) {
    this.#channel = ports.join("colloquy-unfinished", (message) => this.#receive(message as Message));
  }

  /** Returns words for what the other tabs would lose. */
  async ask(): Promise<string[]> {
    if (!this.#channel) return [];
    this.#heard = [];
    this.#post({ type: "ask" });
    await this.ports.clock.sleep(PATIENCE_MS);
    return this.#heard;
  }

  #post(message: Message): void {
    this.#channel?.post(message);
  }

  #receive(message: Message): void {
    if (message.type === "lost") this.#heard.push(...message.words);
    else if (this.ports.own().length > 0) this.#post({ type: "lost", words: this.ports.own() });
  }
}
