// The contents of a document.

import { type Schemas, api } from "../api";
import { type Answer, Problem, ask, problemOf, received } from "../problem";
import type { Call } from "../ui/resource";
import { DOWNLOAD_TYPE } from "./media";
import { save, transfer } from "./transfer";

export type Variant = "original" | "digitized" | "rewritten" | "draft";
/** Variants that people write. The API has no route for drafts. */
export type WritableVariant = "digitized" | "rewritten";
export type DocumentAt = { partner: string; base: string; id: string };

/** The longest text that is edited, in UTF-16 units. */
export const MAX_EDITED = 8_000_000;
/** Above this number of characters, a text is not read again after each event. */
export const MAX_LIVE = 1_000_000;

/** Header of forms without files. */
export const URLENCODED = { "Content-Type": "application/x-www-form-urlencoded" } as const;

/** A text, and the tag by which a write demands that it is still there. */
export type Tagged = { text: string; tag: string };

/** Returns the tag of a content. Proxies that compress make tags weak; those of contents are hashes, so both mean the same. */
function tagOf({ headers }: Response): string {
  const tag = headers.get("etag")?.replace(/^W\//, "");
  if (!tag) throw new Problem(0, "no_tag", "The text cannot be edited: its ETag is missing. A proxy may have removed it.");
  return tag;
}

async function answered({ partner, base, id }: DocumentAt, variant: Variant, call: Partial<Call>): Promise<Answer<Schemas["ContentView"]>> {
  const path = { partner, kb: base, doc_id: id, type: variant };
  // A draft is read without the marks between its sections.
  const query = variant === "draft" ? { format: "markdown" } : {};
  const answer = await received(api.GET("/api/documents/{partner}/{kb}/{doc_id}/content/{type}", { ...call, params: { path, query } }));
  if (!answer.response.ok) throw problemOf(answer);
  return answer;
}

/** Reads a text. */
export async function readText(at: DocumentAt, variant: Variant, call: Partial<Call> = {}): Promise<Schemas["ContentView"]> {
  return (await answered(at, variant, call)).data as Schemas["ContentView"];
}

/** Reads a text with its tag; null if there is none. */
export async function readTagged(at: DocumentAt, variant: WritableVariant): Promise<Tagged | null> {
  try {
    const { data, response } = await answered(at, variant, {});
    return { text: data?.content ?? "", tag: tagOf(response) };
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}

/** A content that a write replaces: the one with a tag, none, or whatever is there. */
export type Replaced = { tag: string } | "none" | "any";

/** Returns what a write replaces, if that was read before. */
export const replacedBy = (before: Tagged | null): Replaced => (before ? { tag: before.tag } : "none");

function conditionOf(replaced: Replaced): { "If-Match"?: string; "If-None-Match"?: string } {
  if (replaced === "any") return {};
  return replaced === "none" ? { "If-None-Match": "*" } : { "If-Match": replaced.tag };
}

/** True if a content was not written because another one is there now, or waits for the budget of its base. */
export const isConflict = (error: unknown) => error instanceof Problem && error.code === "content_changed";

/** Writes a text. Returns false if it is kept until the budget of its base has room. */
export async function writeText({ partner, base, id }: DocumentAt, variant: WritableVariant, content: string, replaced: Replaced): Promise<boolean> {
  const written = await ask(
    api.PUT("/api/documents/{partner}/{kb}/{doc_id}/content/{type}", {
      headers: URLENCODED,
      params: { path: { partner, kb: base, doc_id: id, type: variant }, header: conditionOf(replaced) },
      body: { content },
    }),
  );
  return !("filename" in written && written.status === "budget_blocked");
}

const encoded = (parts: string[]) => parts.map(encodeURIComponent).join("/");

/** Downloads the bytes of a content. */
export function download(at: DocumentAt, variant: Variant, signal: AbortSignal, onProgress?: (share: number) => void): Promise<Blob> {
  const path = `/api/documents/${encoded([at.partner, at.base, at.id])}/download/${variant}`;
  return transfer({ method: "GET", path, signal, ...(onProgress && { onProgress }) });
}

/** Downloads a content as a file. */
export async function saveContent(at: DocumentAt, variant: Variant, name: string): Promise<void> {
  const blob = await download(at, variant, new AbortController().signal);
  save(new Blob([blob], { type: DOWNLOAD_TYPE }), name);
}
