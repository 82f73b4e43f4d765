// Schedules the reads of a resource: one at a time, in the background at most one a second, and fewer while events keep coming.

import type { Clock } from "../clock";

/** Minimum time between the starts of background reads. It grows with each that follows another soon, up to the maximum. */
const BACKGROUND_EVERY_MS = 1_000;
const MAX_EVERY_MS = 5_000;
const GROWTH = 1.5;
/** Minimum wait after an event, so that a burst causes one read. Doubled at random, so that not all consoles read at once. */
const SETTLE_MS = 100;

/** Cause of a read: `isBackground` if no user asked for it, `isFromEvent` if an event did, even if a user did, too. */
export type Reason = { isBackground: boolean; isFromEvent: boolean };
type Pending = Reason & { promise: Promise<void>; done: () => void };

export class Reloader {
  #pending: Pending | null = null;
  #isRunning = false;
  #began = Number.NEGATIVE_INFINITY;
  #everyMs = BACKGROUND_EVERY_MS;
  /** Ends the wait before a background read. */
  #hurry = new AbortController();
  #isStopped = false;

  /** `read` must not throw. */
  constructor(
    private readonly read: (reason: Reason) => Promise<void>,
    private readonly clock: Clock,
  ) {}

  /** Reads now, or after the running read. Resolves when done. */
  reload(): Promise<void> {
    return this.#request(false);
  }

  /** Reads soon, in the background. */
  reloadSoon(): void {
    void this.#request(true);
  }

  stop(): void {
    this.#isStopped = true;
    this.#hurry.abort();
    this.#pending?.done();
    this.#pending = null;
  }

  #request(isBackground: boolean): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    if (!this.#pending) {
      let done = () => {};
      const promise = new Promise<void>((resolve) => (done = resolve));
      this.#pending = { isBackground, isFromEvent: false, promise, done };
    }
    const { promise } = this.#pending;
    if (isBackground) this.#pending.isFromEvent = true;
    else {
      this.#pending.isBackground = false;
      this.#hurry.abort();
    }
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#pending) {
      if (this.#pending.isBackground) {
        this.#hurry = new AbortController();
        const sinceMs = this.clock.now() - this.#began;
        const settleMs = SETTLE_MS * (1 + this.clock.random());
        const waitMs = Math.max(settleMs, this.#everyMs - sinceMs);
        const isQuiet = sinceMs >= 2 * this.#everyMs;
        this.#everyMs = isQuiet ? BACKGROUND_EVERY_MS : Math.min(MAX_EVERY_MS, GROWTH * this.#everyMs);
        await this.clock.sleep(waitMs, this.#hurry.signal);
      }
      const pending: Pending | null = this.#pending;
      if (!pending) break;
      this.#pending = null;
      this.#began = this.clock.now();
      await this.read(pending);
      pending.done();
    }
    this.#isRunning = false;
  }
}
