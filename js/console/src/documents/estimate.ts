// The estimate of rewriting documents, out of that of all documents that pass a filter.

import type { Schemas } from "../api";

export type Chosen = { id: string; name: string; folder: string; state: Schemas["DocumentStatus"]; text_characters?: number | null };

type Found = Schemas["RewriteEstimateView"];

export type RewriteEstimate = {
  rewritable: Chosen[];
  /** Reasons to leave documents out, each with the number of documents. */
  skipped: Found["skipped"];
  inputTokens: number;
  outputTokens: number;
  /** Dollars; null if a model has no price. */
  cost: number | null;
  /** False if the budget has no capacity for all of it now; null if that is not known. */
  fitsBudget: boolean | null;
  /** Number of documents that the figures are a share of, by length, since the API estimates filters only; null if they are those of the chosen ones. */
  shareOf: number | null;
};

/** Characters of a token, as the API estimates. */
const CHARACTERS_PER_TOKEN = 4;
/** Why documents are left out that the filter found together with others. */
const LEFT_OUT = "no text, or being worked on";

const ACTIVE: readonly Chosen["state"][] = ["digitizing", "rewriting", "delete_pending"];
const isRewritable = ({ state, text_characters: characters }: Chosen) => typeof characters === "number" && !ACTIVE.includes(state);

/** Returns the estimate of the chosen documents, which are among those that the filter found. The cost is their share by tokens. */
export function estimateOf(found: Found, chosen: readonly Chosen[]): RewriteEstimate {
  const rewritable = found.documents === 0 ? [] : chosen.filter(isRewritable);
  const matching = found.skipped.reduce((sum, { documents }) => sum + documents, found.documents);
  const left = chosen.length - rewritable.length;
  const others = left > 0 ? [{ reason: LEFT_OUT, documents: left }] : [];
  // All that match are the chosen ones, or the chosen ones are some of them, whose models may differ.
  const isShare = matching !== chosen.length;
  const own = rewritable.reduce((sum, { text_characters: characters }) => sum + Math.ceil((characters ?? 0) / CHARACTERS_PER_TOKEN), 0);
  const share = !isShare ? 1 : found.output_tokens === 0 ? 0 : Math.min(1, own / found.output_tokens);
  const cost = found.cost_usd;
  return {
    rewritable,
    skipped: found.documents === 0 || !isShare ? found.skipped : others,
    inputTokens: Math.round(found.input_tokens * share),
    outputTokens: Math.round(found.output_tokens * share),
    cost: typeof cost === "string" ? Number(cost) * share : null,
    fitsBudget: found.fits_budget || !isShare ? found.fits_budget : null,
    shareOf: isShare ? found.documents : null,
  };
}
