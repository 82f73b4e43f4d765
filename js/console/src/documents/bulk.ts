// Changes many documents, some with each request.

import { signal } from "@preact/signals";

import type { Schemas } from "../api";
import type { Clock } from "../clock";
import { retryAfterMs } from "../events/stream";
import { type Answer, Problem, problemOf, received, toProblem } from "../problem";

export type Target = { id: string; name: string };
export type Failure = Target & { problem: Problem };

/** A change of documents, as it is requested. */
export type Change = {
  /** Documents of a request at most. */
  batch: number;
  /** Requests that run at the same time. */
  atOnce: number;
  /** Requests the change. Returns an answer whose data are the results of documents, or `undefined` if all were changed. */
  request: (ids: string[]) => Promise<Answer<Result[] | undefined>>;
};

type Result = Pick<Schemas["BulkResult"], "document_id" | "status" | "reason">;

/** Documents of a request: few enough to show progress, and to cancel. */
const BATCH = 100;

/** Returns a change that the API makes for many documents. Its requests for one knowledge base wait for each other, so they run in turn. */
export const inBatches = (request: (ids: string[]) => Promise<Answer<Schemas["BulkResults"]>>): Change => ({
  batch: BATCH,
  atOnce: 1,
  request: async (ids) => {
    const { data, ...rest } = await request(ids);
    return { ...rest, ...(data && { data: data.results }) };
  },
});

/** Returns a change that the API makes for one document. */
export const oneByOne = (request: (id: string) => Promise<Answer<unknown>>): Change => ({
  batch: 1,
  atOnce: 4,
  request: async (ids) => {
    const { error, response } = await request(ids[0] ?? "");
    return { error, response };
  },
});

/** Attempts of a request that the server has no capacity for. */
const ATTEMPTS = 5;
const WAIT_MS = 2_000;
/** Statuses after which other requests would fail as well; 0 if the server cannot be reached. */
const LASTING = [0, 401, 403, 502, 504, 507];

let made = 0;

export class Bulk {
  /** Tells the actions of a page apart. */
  readonly id = ++made;
  readonly done = signal(0);
  readonly failures = signal<Failure[]>([]);
  readonly isRunning = signal(false);
  readonly isCancelled = signal(false);
  /** Why nothing more is sent until {@link run} is called again. */
  readonly stopped = signal<Problem | null>(null);
  readonly #waiting: Target[];
  readonly #stop = new AbortController();

  constructor(
    /** The action and its documents, such as `Moving 3 documents`. */
    readonly title: string,
    /** The words for an action that has ended well. */
    readonly outcome: string,
    readonly targets: readonly Target[],
    private readonly change: Change,
    private readonly clock: Clock,
  ) {
    this.#waiting = [...targets];
  }

  /** Requests the changes that are left. Resolves when that is over; failures are in {@link failures}. */
  async run(): Promise<void> {
    const { batch, atOnce } = this.change;
    this.isRunning.value = true;
    this.stopped.value = null;
    const work = async () => {
      while (this.#waiting.length > 0 && !this.stopped.peek() && !this.#stop.signal.aborted) await this.#send(this.#waiting.splice(0, batch));
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    this.isRunning.value = false;
  }

  /** Sends no further requests. Those that were sent take effect. */
  cancel(): void {
    this.isCancelled.value = true;
    this.#stop.abort();
  }

  async #send(targets: Target[]): Promise<void> {
    const { signal } = this.#stop;
    try {
      for (let attempt = 1; ; attempt += 1) {
        const answer = await received(this.change.request(targets.map(({ id }) => id)));
        if (answer.response.ok) return this.#settle(targets, answer.data);
        const { status, headers } = answer.response;
        if (![429, 503].includes(status) || attempt === ATTEMPTS) throw problemOf(answer);
        await this.clock.sleep(retryAfterMs(headers.get("retry-after")) ?? WAIT_MS, signal);
        if (signal.aborted) return;
      }
    } catch (error) {
      const problem = toProblem(error);
      if (LASTING.includes(problem.status)) {
        this.#waiting.unshift(...targets);
        this.stopped.value = problem;
      } else this.#fail(targets.map((target) => ({ ...target, problem })));
    }
  }

  #settle(targets: Target[], results: Result[] = []): void {
    const reasons = new Map(results.filter(({ status }) => status === "skipped").map(({ document_id, reason }) => [document_id, reason]));
    const skipped = targets.filter(({ id }) => reasons.has(id));
    this.#fail(skipped.map((target) => ({ ...target, problem: new Problem(409, "skipped", reasons.get(target.id) ?? "Left out") })));
    this.done.value += targets.length - skipped.length;
  }

  #fail(failures: Failure[]): void {
    this.failures.value = [...this.failures.value, ...failures];
  }
}

/** The actions of a tab: one that runs, and those before it that failed in part or stopped, until they are dismissed. */
export class Bulks {
  readonly shown = signal<readonly Bulk[]>([]);

  /** Runs an action, or what is left of one. Returns its words if all of it ended well; null otherwise. Throws while another one runs. */
  async run(bulk: Bulk): Promise<string | null> {
    if (this.shown.peek().some((other) => other !== bulk && other.isRunning.peek())) {
      throw new Problem(0, "busy", "Another action is running. Wait for it or cancel it.");
    }
    if (!this.shown.peek().includes(bulk)) this.shown.value = [...this.shown.peek(), bulk];
    await bulk.run();
    if (bulk.failures.peek().length > 0 || bulk.stopped.peek()) return null;
    this.dismiss(bulk);
    return bulk.isCancelled.peek() ? null : bulk.outcome;
  }

  dismiss(bulk: Bulk): void {
    this.shown.value = this.shown.peek().filter((other) => other !== bulk);
  }

  /** Cancels and dismisses all of them. */
  clear(): void {
    for (const bulk of this.shown.peek()) bulk.cancel();
    this.shown.value = [];
  }
}
