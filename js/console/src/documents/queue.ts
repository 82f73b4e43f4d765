// Sends uploads a few at a time, waits while the server has no capacity, and keeps what failed.

import { type Signal, computed, signal } from "@preact/signals";

import type { Clock } from "../clock";
import type { Problem } from "../problem";

/** Result of sending an upload once. */
export type Outcome =
  | { kind: "created"; document: string; duplicates: string[] }
  /** The server has no capacity; `waitMs` is its `Retry-After`, if it said one. */
  | { kind: "busy"; waitMs: number | null; problem: Problem }
  /** The session has ended; sent again after the next sign-in. */
  | { kind: "signed-out" }
  | { kind: "failed"; problem: Problem };

export type UploadState =
  | { name: "queued" }
  /** `share` of the file that was sent, from 0 to 1. */
  | { name: "sending"; share: number }
  | { name: "waiting" }
  | { name: "done"; document: string; duplicates: string[] }
  | { name: "failed"; problem: Problem };

export type Upload<S> = { id: number; source: S; state: Signal<UploadState> };
export type Counts = Record<UploadState["name"], number>;

export type QueuePorts<S> = {
  /** Sends an upload. Must not throw. */
  send: (source: S, onProgress: (share: number) => void, signal: AbortSignal) => Promise<Outcome>;
  clock: Clock;
};

const AT_ONCE = 3;
/** Attempts of an upload that the server has no capacity for. */
const MAX_ATTEMPTS = 8;
/** The wait without a `Retry-After`, doubled with each attempt. */
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

export class UploadQueue<S> {
  readonly uploads = signal<Upload<S>[]>([]);
  /** Numbers of uploads by their state. */
  readonly counts = computed<Counts>(() => {
    const counts: Counts = { queued: 0, sending: 0, waiting: 0, done: 0, failed: 0 };
    for (const { state } of this.uploads.value) counts[state.value.name] += 1;
    return counts;
  });
  /** True while something is sent or waits to be. */
  readonly isActive = computed(() => {
    const { queued, sending, waiting } = this.counts.value;
    return queued + sending + waiting > 0;
  });
  #made = 0;
  #attempts = new Map<number, number>();
  #running = new Map<number, AbortController>();
  /** While the session has ended, nothing is sent. */
  #isHeld = false;
  #pausedUntil = 0;
  #pause: AbortController | null = null;

  constructor(private readonly ports: QueuePorts<S>) {}

  add(sources: readonly S[]): void {
    const added = sources.map((source) => ({ id: ++this.#made, source, state: signal<UploadState>({ name: "queued" }) }));
    this.uploads.value = [...this.uploads.value, ...added];
    this.#pump();
  }

  /** Sends again what failed: one upload, or all. */
  retry(id?: number): void {
    for (const upload of this.uploads.peek()) {
      if (upload.state.peek().name !== "failed" || (id !== undefined && upload.id !== id)) continue;
      this.#attempts.delete(upload.id);
      upload.state.value = { name: "queued" };
    }
    this.#pump();
  }

  /** Removes an upload. One that is being sent is aborted. */
  remove(id: number): void {
    this.#forget((upload) => upload.id === id);
  }

  /** Aborts and removes what is not done. What failed stays. */
  cancel(): void {
    this.#forget(({ state }) => !["done", "failed"].includes(state.peek().name));
  }

  /** Removes what is done or failed. */
  dismiss(): void {
    this.#forget(({ state }) => ["done", "failed"].includes(state.peek().name));
  }

  clear(): void {
    this.#forget(() => true);
  }

  /** Goes on after a sign-in. */
  resume(): void {
    this.#isHeld = false;
    this.#pump();
  }

  #forget(isForgotten: (upload: Upload<S>) => boolean): void {
    const forgotten = this.uploads.peek().filter(isForgotten);
    this.uploads.value = this.uploads.peek().filter((upload) => !forgotten.includes(upload));
    for (const { id } of forgotten) {
      this.#attempts.delete(id);
      this.#running.get(id)?.abort();
    }
    this.#pump();
  }

  #pump(): void {
    if (this.#isHeld || this.#pause) return;
    if (this.ports.clock.now() < this.#pausedUntil) return void this.#sleep();
    for (const upload of this.uploads.peek()) {
      if (this.#running.size >= AT_ONCE) return;
      const { name } = upload.state.peek();
      if (name === "queued" || name === "waiting") void this.#send(upload);
    }
  }

  async #sleep(): Promise<void> {
    const pause = new AbortController();
    this.#pause = pause;
    await this.ports.clock.sleep(this.#pausedUntil - this.ports.clock.now(), pause.signal);
    this.#pause = null;
    this.#pump();
  }

  async #send({ id, source, state }: Upload<S>): Promise<void> {
    const abort = new AbortController();
    this.#running.set(id, abort);
    state.value = { name: "sending", share: 0 };
    const progress = (share: number) => {
      const now = state.peek();
      // A percent at a time, since each step renders.
      if (now.name === "sending" && share - now.share >= 0.01) state.value = { name: "sending", share };
    };
    const outcome = await this.ports.send(source, progress, abort.signal);
    this.#running.delete(id);
    if (!abort.signal.aborted) state.value = this.#next(id, outcome);
    this.#pump();
  }

  /** Returns the state after an outcome. */
  #next(id: number, outcome: Outcome): UploadState {
    switch (outcome.kind) {
      case "created":
        return { name: "done", document: outcome.document, duplicates: outcome.duplicates };
      case "failed":
        return { name: "failed", problem: outcome.problem };
      case "signed-out":
        this.#isHeld = true;
        return { name: "waiting" };
      case "busy": {
        const attempt = (this.#attempts.get(id) ?? 0) + 1;
        this.#attempts.set(id, attempt);
        if (attempt >= MAX_ATTEMPTS) return { name: "failed", problem: outcome.problem };
        const waitMs = outcome.waitMs ?? Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (attempt - 1));
        this.#pausedUntil = Math.max(this.#pausedUntil, this.ports.clock.now() + waitMs);
        return { name: "waiting" };
      }
    }
  }
}
