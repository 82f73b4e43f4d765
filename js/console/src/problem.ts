// Errors of the API, and how its answers are read.

/** An error of the API, or a server that cannot be reached (status 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly field?: string,
  ) {
    super(message);
  }
}

/** Converts a thrown value to a problem. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "unknown", error instanceof Error ? error.message : String(error));
}

/** A result of `openapi-fetch`. */
export type Answer<T> = { data?: T; error?: unknown; response: Response };

/** Returns an answer. Throws a {@link Problem} if the server cannot be reached. */
export async function received<T>(asked: Promise<Answer<T>>): Promise<Answer<T>> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(0, "unreachable", "The server cannot be reached.");
  }
}

const asObject = (value: unknown) => (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;

/** Returns the fields of `{errors: {field: [text]}}` as sentences, and the first of them; null without such fields. */
function wrongFields(errors: unknown): { message: string; field: string } | null {
  const entries = Object.entries(asObject(errors)).map(([field, texts]) => [field, (Array.isArray(texts) ? texts : [texts]).join(", ")] as const);
  const [first] = entries;
  return first ? { message: entries.map(([field, text]) => `${field} ${text}`).join("; "), field: first[0] } : null;
}

/** Returns the problem that an error response describes. */
export function problemOf({ error, response }: Answer<unknown>): Problem {
  const outer = asObject(error);
  // Below `/v2`, errors are `{error: {code, message, field}}` with the code in upper case, `{error}`, or of transcripts and dialog analyses
  // `{message, errors: {field: [text]}}`.
  const inner = asObject(outer["error"]);
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  const wrong = wrongFields(outer["errors"]);
  const told = text(outer["detail"]) ?? text(inner["message"]) ?? text(outer["error"]) ?? wrong?.message ?? text(outer["message"]);
  const message = told ?? `The server answered with status ${response.status}.`;
  const code = text(outer["code"]) ?? text(inner["code"])?.toLowerCase() ?? "unknown";
  return new Problem(response.status, code, message, text(outer["field"]) ?? text(inner["field"]) ?? wrong?.field);
}

/** Returns the body of an answer. Throws a {@link Problem} for an error. */
export async function ask<T>(asked: Promise<Answer<T>>): Promise<T> {
  const answer = await received(asked);
  if (!answer.response.ok) throw problemOf(answer);
  return answer.data as T;
}

/** Entries of a list, and the cursor of the next page; null on the last. */
export type Page<T> = { entries: T[]; next: string | null };

/** Returns the page of a list. Throws a {@link Problem} for an error. */
export async function askPage<T>(asked: Promise<Answer<T[]>>): Promise<Page<T>> {
  const answer = await received(asked);
  if (!answer.response.ok) throw problemOf(answer);
  return { entries: answer.data ?? [], next: nextCursor(answer.response.headers.get("link")) };
}

/** Returns the `cursor` of the link with `rel="next"` in a `Link` header (RFC 8288). */
export function nextCursor(header: string | null): string | null {
  for (const [, target = "", parameters = ""] of (header ?? "").matchAll(/<([^>]*)>([^<]*)/g)) {
    if (!/;\s*rel="?([^";,]*\s)?next(\s[^";,]*)?"?\s*(;|,|$)/i.test(parameters)) continue;
    return new URLSearchParams(target.split("?")[1]?.split("#")[0] ?? "").get("cursor");
  }
  return null;
}

/** Returns what tells entries apart: their `id`, or else the entries themselves. */
export function identityOf(entry: unknown): unknown {
  const { id } = asObject(entry);
  return typeof id === "string" ? id : entry;
}
