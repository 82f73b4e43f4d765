// Counts, states and reasons in words.

import type { Schemas } from "../api";
import { formatNumber } from "../ui/format";

/** Returns a count with its noun, such as `1 document` or `1,200 documents`. */
export const counted = (count: number, one: string, many = `${one}s`) => `${formatNumber(count)} ${count === 1 ? one : many}`;

export type StateCounts = { active: number; blocked: number; failed: number };
/** A count of documents, and how it is marked. */
export type CountWord = { text: string; kind: "active" | "blocked" | "failed" };

/** Returns the counts that are not 0. */
export function stateWords(counts: StateCounts): CountWord[] {
  const kinds = ["active", "blocked", "failed"] as const;
  return kinds.filter((kind) => counts[kind] > 0).map((kind) => ({ kind, text: `${formatNumber(counts[kind])} ${kind}` }));
}

const REASONS: Record<string, string> = {
  character_limit: "The texts have as many characters as the limit allows.",
  token_limit: "All tokens of the limit are used or reserved.",
  dollar_limit: "All dollars of the limit are used or reserved.",
  unknown_tokens: "There is a token limit, and the tokens of some requests are not known.",
  unknown_dollars: "There is a dollar limit, and the cost of some requests is not known.",
  uncertain_operations: "There is a limit of tokens or dollars, and the outcome of some requests is not known.",
};

/** Returns why a budget blocks. */
export const reasonWords = (reason: string) => REASONS[reason] ?? reason.replaceAll("_", " ");

const EMBEDDINGS: Record<string, string> = {
  success: "search index up to date",
  in_progress: "search index being updated",
  fail: "search index incomplete",
  none: "search index empty",
};

/** Returns the state of a base's embedding. */
export const embeddingWords = (status: string) => EMBEDDINGS[status] ?? status.replaceAll("_", " ");

/** Purposes of requests to services. */
export const PURPOSES: Record<Schemas["PaidStep"], string> = {
  rewrite: "rewriting",
  embed: "embedding",
  transcribe: "transcription",
  discover: "scan of a channel",
};
export const OUTCOMES: Record<Schemas["UsageOutcome"], string> = { success: "answered", fault: "failed", uncertain: "not known" };
