// Questions to a knowledge base: as the address holds them, as the API takes them, and how its answers are drawn.

import type { Schemas } from "../api";
import { formatFraction } from "../ui/format";

export const WEIGHTS = ["rrf_weight_dense", "rrf_weight_sparse", "rrf_weight_bm25", "query_weight_original", "query_weight_replaced"] as const;
export type WeightName = (typeof WEIGHTS)[number];
/** Weights that are not the defaults. */
export type Weights = Partial<Record<WeightName, number>>;

/** Defaults of the API. */
export const DEFAULT_WEIGHTS: Record<WeightName, number> = {
  rrf_weight_dense: 1,
  rrf_weight_sparse: 1.25,
  rrf_weight_bm25: 0.25,
  query_weight_original: 1,
  query_weight_replaced: 1,
};

export const WEIGHT_LABELS: Record<WeightName, string> = {
  rrf_weight_dense: "Dense",
  rrf_weight_sparse: "Sparse",
  rrf_weight_bm25: "BM25",
  query_weight_original: "Question as asked",
  query_weight_replaced: "Question with the name",
};

/** A question with its weights. Empty texts are none. */
export type Asked = { message: string; before: string; name: string; weights: Weights };

/** Names in the address. */
const TEXTS = { message: "q", before: "before", name: "as" } as const;
const WEIGHT_PARAMETERS: Record<WeightName, string> = {
  rrf_weight_dense: "dense",
  rrf_weight_sparse: "sparse",
  rrf_weight_bm25: "bm25",
  query_weight_original: "original",
  query_weight_replaced: "replaced",
};

/** The longest query of an address: servers and programs that pass links on refuse long ones. */
const MAX_QUERY = 6_000;

/** Returns the weight that a text stands for; null if it is none. An empty text is the default. */
export function weightOf(name: WeightName, text: string): number | null {
  if (text.trim() === "") return DEFAULT_WEIGHTS[name];
  const weight = Number(text);
  return weight >= 0 && weight <= 1_000 ? weight : null;
}

/** Returns weights without the defaults. */
function changed(weights: Record<WeightName, number>): Weights {
  return Object.fromEntries(WEIGHTS.filter((name) => weights[name] !== DEFAULT_WEIGHTS[name]).map((name) => [name, weights[name]]));
}

/** Reads the weights of a form; null if one is no number from 0 to 1,000. */
export function weightsOf(text: (name: WeightName) => string): Weights | null {
  const read = WEIGHTS.map((name) => [name, weightOf(name, text(name))] as const);
  if (read.some(([, weight]) => weight === null)) return null;
  return changed(Object.fromEntries(read) as Record<WeightName, number>);
}

/** Reads the question of an address; null without one. */
export function readAsked(query: URLSearchParams): Asked | null {
  const text = (name: string) => query.get(name)?.trim() ?? "";
  const message = text(TEXTS.message);
  if (message === "") return null;
  const weights = weightsOf((name) => text(WEIGHT_PARAMETERS[name])) ?? {};
  return { message, before: text(TEXTS.before), name: text(TEXTS.name), weights };
}

/** Returns the parameters of an address that hold a question; without one, they are removed. */
export function askedParameters(asked: Asked | null): Record<string, string | null> {
  const texts = Object.entries(TEXTS).map(([field, name]) => [name, asked?.[field as keyof typeof TEXTS] || null]);
  const weights = WEIGHTS.map((name) => [WEIGHT_PARAMETERS[name], asked?.weights[name]?.toString() ?? null]);
  return Object.fromEntries([...texts, ...weights]);
}

/** Returns true if an address can hold a question. */
export function isShareable(asked: Asked): boolean {
  const given = Object.entries(askedParameters(asked)).filter((entry): entry is [string, string] => entry[1] !== null);
  return new URLSearchParams(given).toString().length <= MAX_QUERY;
}

/** Number of passages of each stream that are shown. */
export const STREAM_TEXTS = 10;

/** Returns the body of a search. */
export function searchBody(partner: string, base: string, { message, before, name, weights }: Asked): Schemas["SearchBody"] {
  const body: Partial<Schemas["SearchBody"]> = {
    partner,
    kb: base,
    user_message: message,
    ...(before && { robot_message: before }),
    ...(name && { character_replacement_name: name }),
    ...weights,
    stream_texts: STREAM_TEXTS,
  };
  // The generated type demands fields that have defaults.
  return body as Schemas["SearchBody"];
}

/** Returns the question that a saved one is, with other weights. */
export function askedOf(saved: Schemas["QuestionView"], weights: Weights): Asked {
  const { user_message: message, robot_message: before, character_replacement_name: name } = saved;
  return { message, before: before ?? "", name: name ?? "", weights };
}

/** Returns the body of a saved question. */
export function questionBody({ message, before, name }: Asked, expected: readonly string[]): Schemas["QuestionBody"] {
  return {
    user_message: message,
    ...(before && { robot_message: before }),
    ...(name && { character_replacement_name: name }),
    expected_document_ids: [...expected],
  };
}

export const STREAMS = ["dense", "sparse", "bm25"] as const;
export type Stream = (typeof STREAMS)[number];
export const STREAM_NAMES: Record<Stream, string> = { dense: "Dense", sparse: "Sparse", bm25: "BM25" };
export const STREAM_WORDS: Record<Stream, string> = {
  dense: "Nearness of meaning: the cosine of vectors, in the order of a question that is moved towards its nearest passages.",
  sparse: "The words of the question, and those that its nearest passages are about.",
  bm25: "The words of the question.",
};

/** Returns the name of a stream. */
export const streamName = (retriever: string) => STREAM_NAMES[retriever as Stream] ?? retriever;

/** A part of a fused score, as fractions of the best score. */
export type Part = Schemas["ShareView"] & { begin: number; width: number; ofScore: number };

/** Returns the parts of a score, streams in their order. `best` is the best score of the results. */
export function partsOf({ shares, fusion_score: score }: Pick<Schemas["ResultView"], "shares" | "fusion_score">, best: number): Part[] {
  const order = (share: Schemas["ShareView"]) => STREAMS.indexOf(share.retriever as Stream);
  let begin = 0;
  return [...shares]
    .sort((a, b) => order(a) - order(b) || a.query.localeCompare(b.query))
    .map((share) => {
      const width = best > 0 ? share.share / best : 0;
      const part = { ...share, begin, width, ofScore: score > 0 ? share.share / score : 0 };
      begin += width;
      return part;
    });
}

/** Returns for each document the rank of its best result among documents, from 1. Documents of one passage follow each other by their ids. */
export function documentRanks(results: readonly Pick<Schemas["ResultView"], "document_id" | "duplicates">[]): Map<string, number> {
  const ranks = new Map<string, number>();
  for (const { document_id: id, duplicates } of results) {
    for (const document of [id, ...duplicates.map((place) => place.document_id)]) {
      if (!ranks.has(document)) ranks.set(document, ranks.size + 1);
    }
  }
  return ranks;
}

const difference = new Intl.NumberFormat(undefined, { minimumFractionDigits: 3, maximumFractionDigits: 3, signDisplay: "exceptZero" });

/** Returns a figure from 0 to 1 with three decimals. */
export const formatFigure = (value: number) => formatFraction(value, 3);
/** Returns a difference of figures with its sign. */
export const formatDifference = (value: number) => difference.format(value);

/** Names of the states of evaluations. */
export const EVALUATION_NAMES: Record<Schemas["EvaluationStatus"], string> = { queued: "queued", running: "in progress", done: "completed", failed: "failed" };
export const EVALUATION_CLASSES: Record<Schemas["EvaluationStatus"], string> = { queued: "", running: "busy", done: "ok", failed: "down" };

type Evaluation = Pick<Schemas["EvaluationView"], "config" | "content" | "k">;

/** Returns what differs between two evaluations besides their questions, in words. */
export function changesBetween(before: Evaluation, now: Evaluation): string[] {
  const weights = WEIGHTS.filter((name) => before.config[name] !== now.config[name]);
  const words = weights.map((name) => `weight ${WEIGHT_LABELS[name]} ${before.config[name]} → ${now.config[name]}`);
  const profiles = [before.config, now.config].map((config) => config.embedding_profile_name ?? "none");
  if (profiles[0] !== profiles[1]) words.push(`embedding profile ${profiles[0]} → ${profiles[1]}`);
  const [old, present] = [before.content, now.content];
  if (old && present) {
    if (old.documents !== present.documents) words.push(`documents ${old.documents} → ${present.documents}`);
    if (old.chunks !== present.chunks) words.push(`chunks ${old.chunks} → ${present.chunks}`);
    const isOther = old.embedded_at !== present.embedded_at && old.documents === present.documents && old.chunks === present.chunks;
    if (isOther) words.push("documents embedded again");
  }
  return words;
}
