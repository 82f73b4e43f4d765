// Checks a text while it is typed: after a pause, one check at a time, and only the newest text.

import type { Clock } from "../clock";

/** Time that a text rests before it is checked. */
export const PAUSE_MS = 400;

export type CheckerPorts<T, R> = {
  clock: Clock;
  check: (text: T, signal: AbortSignal) => Promise<R>;
  /** Called with the result for the newest text. */
  onResult: (result: R, of: T) => void;
  /** Called if the newest text could not be checked. */
  onFailure: (error: unknown) => void;
};

export class Checker<T, R> {
  #wanted: { text: T } | null = null;
  #pause = new AbortController();
  #running: AbortController | null = null;
  #isWorking = false;
  #isStopped = false;

  constructor(private readonly ports: CheckerPorts<T, R>) {}

  /** Checks a text soon, in place of those before it. */
  check(text: T, { atOnce = false } = {}): void {
    if (this.#isStopped) return;
    this.#wanted = { text };
    this.#running?.abort();
    // The pause begins again.
    this.#pause.abort();
    if (!this.#isWorking) void this.#work(atOnce);
  }

  stop(): void {
    this.#isStopped = true;
    this.#wanted = null;
    this.#running?.abort();
    this.#pause.abort();
  }

  async #work(atOnce: boolean): Promise<void> {
    this.#isWorking = true;
    let rests = atOnce;
    while (this.#wanted) {
      const wanted: { text: T } = this.#wanted;
      if (!rests) {
        this.#pause = new AbortController();
        await this.ports.clock.sleep(PAUSE_MS, this.#pause.signal);
        if (this.#wanted !== wanted) continue;
      }
      rests = false;
      await this.#run(wanted);
    }
    this.#isWorking = false;
  }

  async #run(wanted: { text: T }): Promise<void> {
    this.#wanted = null;
    const running = new AbortController();
    this.#running = running;
    try {
      const result = await this.ports.check(wanted.text, running.signal);
      if (!running.signal.aborted) this.ports.onResult(result, wanted.text);
    } catch (error) {
      if (!running.signal.aborted) this.ports.onFailure(error);
    }
    this.#running = null;
  }
}
