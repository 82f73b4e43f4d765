// Reads the events of a partner from the server: connects, resumes and backs off until the server refuses for good.

import { type Clock, within } from "../clock";
import { SseParser } from "./sse";

/** A resource that changed. */
export type Change = { kind: string; id: string; base: string | null; isDeleted: boolean };
/** A change; `reset` if changes may have been missed, so that everything must be read again; `ready` when a stream resumes and missed nothing. */
export type StreamEvent = Change | { kind: "reset" | "ready" };

export type StreamOptions = {
  open: (lastId: string | null, signal: AbortSignal) => Promise<Response>;
  /** The id to resume from; null to begin with what changes from now on. */
  lastId: string | null;
  onEvent: (event: StreamEvent) => void;
  onId: (id: string) => void;
  /** Gets true when a connection begins, and false when it ends or fails. */
  onLive: (isLive: boolean) => void;
  signal: AbortSignal;
  clock: Clock;
};

/** The server sends something every 15 seconds. */
const SILENCE_MS = 45_000;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
/** The longest `Retry-After` that is obeyed. */
const MAX_RETRY_AFTER_MS = 300_000;
/** A connection that lasted this long counts as a success, after which backing off starts over. */
const STEADY_MS = 30_000;

/** Returns the wait that a `Retry-After` header asks for, in seconds or as a date; null without one. */
export function retryAfterMs(header: string | null, now = Date.now()): number | null {
  if (!header) return null;
  const ms = /^\d+$/.test(header.trim()) ? 1_000 * Number(header) : Date.parse(header) - now;
  return Number.isNaN(ms) ? null : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms));
}

/** Returns the wait before the next connection, after so many failures in a row. */
export function backoffMs(failures: number, retryMs: number, clock: Clock): number {
  const base = failures === 0 ? retryMs : FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 10);
  return Math.min(MAX_BACKOFF_MS, base * (1 + clock.random() / 2));
}

function parseChange(kind: string, data: string): Change | null {
  try {
    const { id, base, deleted } = JSON.parse(data) as { id?: unknown; base?: unknown; deleted?: unknown };
    if (typeof id !== "string") return null;
    return { kind, id, base: typeof base === "string" ? base : null, isDeleted: deleted === true };
  } catch {
    return null;
  }
}

/**
 * Reads until the signal aborts or the server refuses for good. Returns the status of that refusal, such as 403; null after an abort.
 *
 * A connection that does not resume begins with a `reset`: data that was read while connecting may be older than the stream.
 */
export async function follow(options: StreamOptions): Promise<number | null> {
  const { open, onEvent, onId, onLive, signal, clock } = options;
  let lastId = options.lastId;
  let retryMs = FIRST_BACKOFF_MS;
  let failures = 0;

  const read = async (response: Response, isResumed: boolean, signal: AbortSignal): Promise<void> => {
    const reader = response.body?.getReader();
    const parser = new SseParser();
    for (;;) {
      const piece = await reader?.read();
      if (!piece || piece.done || signal.aborted) return;
      heard();
      for (const item of parser.push(piece.value)) {
        if (item.type === "retry") retryMs = Math.min(item.ms, MAX_BACKOFF_MS);
        else if (item.type === "id") onId((lastId = item.id));
        else if (item.event === "reset") onEvent({ kind: "reset" });
        else if (item.event === "ready") onEvent({ kind: isResumed ? "ready" : "reset" });
        else {
          const change = parseChange(item.event, item.data);
          if (change) onEvent(change);
        }
      }
    }
  };

  let heard = () => {};
  while (!signal.aborted) {
    const began = clock.now();
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener("abort", stop);
    const silence = new Silence(clock, stop);
    heard = () => silence.end();
    let wait: number | null = null;
    try {
      const response = await open(lastId, attempt.signal);
      heard();
      const { status, headers } = response;
      if (status === 200 && headers.get("content-type")?.startsWith("text/event-stream")) {
        onLive(true);
        // Some bodies do not notice an abort.
        await Promise.race([read(response, lastId !== null, attempt.signal), aborted(attempt.signal)]);
      } else {
        void response.body?.cancel().catch(() => {});
        if (status === 400 && lastId !== null) {
          lastId = null;
          continue;
        }
        if (status === 429 || status === 503) wait = retryAfterMs(headers.get("retry-after"));
        else if (status >= 400 && status < 500 && status !== 408) return status;
      }
    } catch {
      // Unreachable or cut off; retried below.
    } finally {
      silence.close();
      attempt.abort();
      signal.removeEventListener("abort", stop);
      if (!signal.aborted) onLive(false);
    }
    if (signal.aborted) break;
    failures = clock.now() - began >= STEADY_MS ? 0 : failures + 1;
    const backoff = backoffMs(failures, retryMs, clock);
    await clock.sleep(wait === null ? backoff : wait + clock.random() * FIRST_BACKOFF_MS, signal);
  }
  return null;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}

/** Calls back once nothing was heard for {@link SILENCE_MS}. */
class Silence {
  #isClosed = false;
  #wake = () => {};

  constructor(clock: Clock, onSilence: () => void) {
    void this.#watch(clock, onSilence);
  }

  /** Something was heard. */
  end(): void {
    this.#wake();
  }

  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  async #watch(clock: Clock, onSilence: () => void): Promise<void> {
    while (!this.#isClosed) {
      const heard = new Promise<void>((resolve) => (this.#wake = resolve));
      try {
        await within(heard, SILENCE_MS, clock);
      } catch {
        return onSilence();
      }
    }
  }
}
