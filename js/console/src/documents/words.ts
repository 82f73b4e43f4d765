// States and reasons of documents in words.

import type { Schemas } from "../api";
import { formatNumber } from "../ui/format";
import type { DocumentState } from "./filter";

export const STATE_NAMES: Record<DocumentState, string> = {
  empty: "empty",
  digitizing: "digitizing",
  digitized: "digitized",
  rewriting: "rewriting",
  rewritten: "rewritten",
  embedding: "embedding",
  ready: "ready",
  blocked: "blocked",
  failed: "failed",
  delete_pending: "being deleted",
};

/** Classes of the labels of states; those of a document at rest are plain. */
export const STATE_CLASSES: Record<DocumentState, string> = {
  empty: "plain",
  digitizing: "busy",
  digitized: "plain",
  rewriting: "busy",
  rewritten: "plain",
  embedding: "busy",
  ready: "ok",
  blocked: "",
  failed: "down",
  delete_pending: "plain",
};

const BLOCKED = /^BUDGET_BLOCKED:\s*/;

/** Duplicates that the API names at most. */
const MAX_NAMED = 100;

/** Returns a number of duplicates, of which the API names no more than {@link MAX_NAMED}. */
export const duplicateCount = (named: number) => (named < MAX_NAMED ? formatNumber(named) : `${formatNumber(MAX_NAMED)} or more`);

/** Returns the words for the duplicates that follow the first `shown`; null if there are none. */
export function moreDuplicates(named: number, shown: number): string | null {
  if (named <= shown) return null;
  return named < MAX_NAMED ? `and ${formatNumber(named - shown)} more` : `and at least ${formatNumber(named - shown)} more`;
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns a reason as a sentence. The prefix of the API is for programs. */
export function reasonInWords(reason: string): string {
  const text = reason.trim();
  return BLOCKED.test(text) ? `Waits for the budget: ${text.replace(BLOCKED, "")}` : capitalized(text);
}

/** Returns warnings, which the API joins by semicolons, as sentences. */
export const warningInWords = (warning: string) => capitalized(warning.trim());

export const STEP_NAMES: Record<Schemas["StepKind"], string> = { digitize: "Digitizing", rewrite: "Rewriting", embed: "Embedding" };

/** States that a step takes. It is queued when it begins. */
export const STEP_STATES: Record<Schemas["Step"], { text: string; mark: string }> = {
  none: { text: "withdrawn", mark: "plain" },
  queued: { text: "begun", mark: "busy" },
  running: { text: "begun", mark: "busy" },
  done: { text: "done", mark: "ok" },
  failed: { text: "failed", mark: "down" },
  blocked: { text: "waits", mark: "" },
};

const NOT_EMBEDDED: Partial<Record<DocumentState, string>> = {
  digitizing: "The document is being digitized. Its final content is embedded.",
  rewriting: "The document is being rewritten. Its final content is embedded when it is complete.",
  rewritten: "The final content is embedded soon.",
  embedding: "The final content is being embedded.",
  blocked: "The document waits for the budget.",
  failed: "The document could not be processed.",
  delete_pending: "The document is being deleted.",
};

/** Returns why a document has not been embedded: what it waits for, or the reason of its state. */
export function notEmbeddedWords(state: DocumentState, reason: string | null | undefined): string {
  if (reason) return reasonInWords(reason);
  return NOT_EMBEDDED[state] ?? "The document has no final content. Rewrite it, or write the content yourself.";
}
