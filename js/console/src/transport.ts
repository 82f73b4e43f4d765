// Sends requests. Those that change nothing are retried if the server has no capacity, and time out.

import type { Clock } from "./clock";
import { retryAfterMs } from "./events/stream";
import { Problem } from "./problem";

export type TransportPorts = {
  fetch: (request: Request) => Promise<Response>;
  clock: Clock;
  /** Number of the current sign-in. */
  signIn: () => number;
  /** Called when a request of this sign-in was refused with 401. */
  onUnauthorized: (signIn: number) => void;
};

/** Attempts of a GET request. */
const ATTEMPTS = 3;
/** The longest `Retry-After` that is obeyed; beyond it, the response is returned. */
const MAX_WAIT_MS = 5_000;
/** Timeout of a GET request with its response. */
const ANSWER_MS = 30_000;
/** Path of sign-in and sign-out, whose 401 does not end a session. */
const SESSION_PATH = "/api/console/session";

/** Returns a `fetch` for the API. */
export function createTransport({ fetch, clock, signIn, onUnauthorized }: TransportPorts): (request: Request) => Promise<Response> {
  return async (request) => {
    const current = signIn();
    const isRead = request.method === "GET";
    for (let attempt = 1; ; attempt += 1) {
      const answer = await (isRead ? timed(request.clone()) : fetch(request));
      const isSigning = !isRead && new URL(request.url).pathname === SESSION_PATH;
      if (answer.status === 401 && !isSigning) onUnauthorized(current);
      const waitMs = retryAfterMs(answer.headers.get("retry-after"));
      const isBusy = isRead && [429, 503].includes(answer.status) && waitMs !== null && waitMs <= MAX_WAIT_MS;
      if (!isBusy || attempt === ATTEMPTS) return answer;
      await clock.sleep(waitMs, request.signal);
      request.signal.throwIfAborted();
    }
  };

  async function timed(request: Request): Promise<Response> {
    const timeout = new AbortController();
    const answered = new AbortController();
    void clock.sleep(ANSWER_MS, answered.signal).then(() => answered.signal.aborted || timeout.abort());
    try {
      const answer = await fetch(new Request(request, { signal: AbortSignal.any([request.signal, timeout.signal]) }));
      // Read here, since a connection may also stall in the middle of it.
      const body = answer.body ? await answer.arrayBuffer() : null;
      return new Response(body, answer);
    } catch (error) {
      if (!timeout.signal.aborted) throw error;
      throw new Problem(0, "timeout", "The server did not answer in time.");
    } finally {
      answered.abort();
    }
  }
}
