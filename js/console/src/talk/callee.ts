// Whom the page calls. The editor of a draft may be closed meanwhile: its draft of before can be called, but nobody calls it unawares.

import { signal } from "@preact/signals";

import { Problem } from "../problem";
import type { Called } from "./handover";

export type CalleePorts = {
  /** Reads who is called; null if the editor of the draft is closed. */
  read: () => Promise<Called | null>;
  now: () => Date;
};

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

const EDITOR_CLOSED = new Problem(0, "editor_closed", "The page on which the character was written is closed or shows something else. Open its playground, and call from there.");

/** Says that the editor of a draft is closed, and which draft is called. */
export const closedWords = (since: Date): string => `The editor is closed: this is the draft of ${clock.format(since)}. Open the editor again, and call from there, to call a newer one.`;

export class Callee {
  readonly called = signal<Called | null>(null);
  /** The time of the draft that is called since its editor was closed; null while that is open. */
  readonly closedSince = signal<Date | null>(null);
  #readAt: Date | null = null;

  constructor(private readonly ports: CalleePorts) {}

  /** Reads who is called now. */
  async read(): Promise<Called> {
    const newest = await this.ports.read();
    const called = newest ?? this.called.peek();
    if (!called) throw EDITOR_CLOSED;
    if (newest) this.#readAt = this.ports.now();
    [this.called.value, this.closedSince.value] = [called, newest ? null : this.#readAt];
    return called;
  }

  /** Returns who is to be called. Throws if it would be the draft of a closed editor, and nobody was told yet. */
  async toCall(): Promise<Called> {
    const isTold = this.closedSince.peek() !== null;
    const called = await this.read();
    const since = this.closedSince.peek();
    if (since && !isTold) throw new Problem(0, "editor_closed", "The call has not begun, since the editor is closed. Press “Call” again to call the draft of before.");
    return called;
  }
}
