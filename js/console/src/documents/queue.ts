// Sends uploads a few at a time, waits while the server has no capacity, and keeps what failed.

import { type Signal, batch, computed, signal } from "@preact/signals";

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
/** Numbers of uploads by their state. Those that are done include the duplicates. */
export type Counts = Record<UploadState["name"] | "duplicates", number>;

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

/** Uploads that are shown together, those first that need attention. */
const GROUPS = ["failed", "sending", "waiting", "queued", "duplicate", "done"] as const;
type Group = (typeof GROUPS)[number];

const groupOf = (state: UploadState): Group => (state.name === "done" && state.duplicates.length > 0 ? "duplicate" : state.name);

const NONE: Counts = { queued: 0, sending: 0, waiting: 0, done: 0, failed: 0, duplicates: 0 };

/** The uploads. What one of them does takes the same time however many there are. */
export class UploadQueue<S> {
  readonly uploads = signal<readonly Upload<S>[]>([]);
  readonly counts = signal<Counts>(NONE);
  /** True while something is sent or waits to be. */
  readonly isActive = computed(() => {
    const { queued, sending, waiting } = this.counts.value;
    return queued + sending + waiting > 0;
  });
  readonly #groups = Object.fromEntries(GROUPS.map((group) => [group, new Set()])) as Record<Group, Set<Upload<S>>>;
  /** Passes the queued uploads, also those that are queued later; undefined after the last. */
  #queued: SetIterator<Upload<S>> | undefined;
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
    for (const upload of added) this.#groups.queued.add(upload);
    batch(() => {
      this.uploads.value = [...this.uploads.peek(), ...added];
      this.#count();
    });
    this.#pump();
  }

  /** Returns up to `most` uploads, those first that need attention. */
  first(most: number): Upload<S>[] {
    const found: Upload<S>[] = [];
    for (const group of GROUPS) {
      for (const upload of this.#groups[group]) {
        if (found.length >= most) return found;
        found.push(upload);
      }
    }
    return found;
  }

  /** Sends again what failed: one upload, or all. */
  retry(id?: number): void {
    batch(() => {
      for (const upload of [...this.#groups.failed]) {
        if (id !== undefined && upload.id !== id) continue;
        this.#attempts.delete(upload.id);
        this.#enter(upload, { name: "queued" });
      }
    });
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

  #count(): void {
    const { queued, sending, waiting, done, duplicate, failed } = this.#groups;
    this.counts.value = {
      queued: queued.size,
      sending: sending.size,
      waiting: waiting.size,
      done: done.size + duplicate.size,
      failed: failed.size,
      duplicates: duplicate.size,
    };
  }

  #enter(upload: Upload<S>, state: UploadState): void {
    this.#groups[groupOf(upload.state.peek())].delete(upload);
    this.#groups[groupOf(state)].add(upload);
    batch(() => {
      upload.state.value = state;
      this.#count();
    });
  }

  #forget(isForgotten: (upload: Upload<S>) => boolean): void {
    const kept: Upload<S>[] = [];
    for (const upload of this.uploads.peek()) {
      if (!isForgotten(upload)) {
        kept.push(upload);
        continue;
      }
      this.#groups[groupOf(upload.state.peek())].delete(upload);
      this.#attempts.delete(upload.id);
      this.#running.get(upload.id)?.abort();
    }
    batch(() => {
      this.uploads.value = kept;
      this.#count();
    });
    this.#pump();
  }

  /** Returns the upload to send next: one that waits, or else the first that is queued. */
  #next(): Upload<S> | undefined {
    const { waiting, queued } = this.#groups;
    for (const upload of waiting) return upload;
    if (queued.size === 0) return undefined;
    for (;;) {
      this.#queued ??= queued.values();
      const { value, done } = this.#queued.next();
      if (!done) return value;
      this.#queued = undefined;
    }
  }

  #pump(): void {
    if (this.#isHeld || this.#pause) return;
    if (this.ports.clock.now() < this.#pausedUntil) return void this.#sleep();
    while (this.#running.size < AT_ONCE) {
      const upload = this.#next();
      if (!upload) return;
      void this.#send(upload);
    }
  }

  async #sleep(): Promise<void> {
    const pause = new AbortController();
    this.#pause = pause;
    await this.ports.clock.sleep(this.#pausedUntil - this.ports.clock.now(), pause.signal);
    this.#pause = null;
    this.#pump();
  }

  async #send(upload: Upload<S>): Promise<void> {
    const { id, source, state } = upload;
    const abort = new AbortController();
    this.#running.set(id, abort);
    this.#enter(upload, { name: "sending", share: 0 });
    const progress = (share: number) => {
      const now = state.peek();
      // A percent at a time, since each step renders.
      if (now.name === "sending" && share - now.share >= 0.01) state.value = { name: "sending", share };
    };
    const outcome = await this.ports.send(source, progress, abort.signal);
    this.#running.delete(id);
    if (!abort.signal.aborted) this.#enter(upload, this.#after(id, outcome));
    this.#pump();
  }

  /** Returns the state after an outcome. */
  #after(id: number, outcome: Outcome): UploadState {
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
