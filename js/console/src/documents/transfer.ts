// Uploads and downloads with progress, under the same rules of the session as all other requests.

import { FOREGROUND, sessions } from "../api";
import { retryAfterMs } from "../events/stream";
import { Problem, problemOf } from "../problem";

export type Transfer = {
  method: "GET" | "POST";
  path: string;
  body?: FormData;
  /** Gets the share of the body that was sent, or of the answer that was received, from 0 to 1. */
  onProgress?: (share: number) => void;
  signal: AbortSignal;
};

/** The answer of a transfer that the server has no capacity for. */
export class Busy extends Problem {
  /** `waitMs` is null without `Retry-After`. */
  constructor(
    problem: Problem,
    readonly waitMs: number | null,
  ) {
    super(problem.status, problem.code, problem.message);
  }
}

async function read(request: XMLHttpRequest, signIn: number): Promise<Blob> {
  const { status, response } = request;
  const body = response as Blob;
  if (status >= 200 && status < 300) return body;
  if (status === 401) sessions.unauthorized(signIn);
  const error: unknown = await body.text().then(JSON.parse).catch(() => null);
  const problem = problemOf({ error, response: new Response(null, { status }) });
  if (status !== 429 && status !== 503) throw problem;
  throw new Busy(problem, retryAfterMs(request.getResponseHeader("retry-after")));
}

/** Sends a request and returns the body of its answer. Throws a {@link Problem}. `fetch` does not report how much of a body was sent. */
export function transfer({ method, path, body, onProgress, signal }: Transfer): Promise<Blob> {
  const signIn = sessions.signInCount.peek();
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    const unreachable = () => reject(new Problem(0, "unreachable", "The server cannot be reached."));
    request.open(method, path);
    request.responseType = "blob";
    for (const [name, value] of Object.entries(FOREGROUND)) request.setRequestHeader(name, value);
    const watched = body ? request.upload : request;
    watched.onprogress = ({ loaded, total, lengthComputable }) => lengthComputable && onProgress?.(loaded / total);
    request.onload = () => void read(request, signIn).then(resolve, reject);
    request.onerror = unreachable;
    request.ontimeout = unreachable;
    request.onabort = () => reject(new Problem(0, "aborted", "Cancelled."));
    request.onloadend = () => signal.removeEventListener("abort", abort);
    signal.addEventListener("abort", abort);
    if (signal.aborted) return request.abort();
    request.send(body ?? null);
  });
}

/** Offers a blob as a download. */
export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
