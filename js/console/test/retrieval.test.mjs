import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const retrieval = await load("knowledge/retrieval.ts");
const { askedParameters, changesBetween, documentRanks, evaluationBefore, isShareable, partsOf, readAsked, searchBody, weightsOf } = retrieval;

test("the address holds a question with the weights that are not the defaults", () => {
  const read = (text) => readAsked(new URLSearchParams(text));
  assert.equal(read("as=Ada&q=%20"), null);
  const asked = read("q=%20When%3F%20&before=Hello&as=Ada&dense=2&sparse=1.25&bm25=&original=0");
  assert.deepEqual(asked, { message: "When?", before: "Hello", name: "Ada", weights: { rrf_weight_dense: 2, query_weight_original: 0 } });
  const parameters = askedParameters(asked);
  assert.deepEqual(parameters, {
    q: "When?", before: "Hello", as: "Ada", dense: "2", sparse: null, bm25: null, original: "0", replaced: null,
  });
  const given = Object.entries(parameters).filter(([, value]) => value !== null);
  assert.deepEqual(read(new URLSearchParams(given).toString()), asked);
  assert.ok(Object.values(askedParameters(null)).every((value) => value === null));
  // An address that somebody has changed.
  assert.deepEqual(read("q=a&dense=x&bm25=3").weights, {});
});

test("weights are numbers from 0 to 1,000", () => {
  const typed = (text) => weightsOf((name) => (name === "rrf_weight_bm25" ? text : ""));
  assert.deepEqual(typed(""), {});
  assert.deepEqual(typed(" 0.25 "), {});
  assert.deepEqual(typed("0.5"), { rrf_weight_bm25: 0.5 });
  for (const wrong of ["-1", "1000.1", "x", "NaN", "Infinity"]) assert.equal(typed(wrong), null, wrong);
});

test("a long question is not put into the address", () => {
  const asked = (message) => ({ message, before: "", name: "", weights: {} });
  assert.ok(isShareable(asked("x".repeat(5_000))));
  assert.ok(!isShareable(asked("x".repeat(7_000))));
  // As the address encodes it.
  assert.ok(!isShareable(asked("ü".repeat(1_500))));
});

test("a search has what was asked alone", () => {
  const asked = { message: "When?", before: "", name: "", weights: { rrf_weight_bm25: 1 } };
  assert.deepEqual(searchBody("acme", "manual", asked), {
    partner: "acme", kb: "manual", user_message: "When?", rrf_weight_bm25: 1, stream_texts: 10,
  });
});

test("the parts of a score add up to it", () => {
  const share = (retriever, query, share) => ({ retriever, query, rank: 1, score: 0.5, share });
  const result = { fusion_score: 0.4, shares: [share("bm25", "original", 0.1), share("dense", "replaced", 0.2), share("dense", "original", 0.1)] };
  const parts = partsOf(result, 0.8);
  assert.deepEqual(parts.map(({ retriever, query }) => `${retriever} ${query}`), ["dense original", "dense replaced", "bm25 original"]);
  assert.deepEqual(parts.map(({ begin, width }) => [begin, width]), [[0, 0.125], [0.125, 0.25], [0.375, 0.125]]);
  assert.deepEqual(parts.map(({ ofScore }) => ofScore), [0.25, 0.5, 0.25]);
  assert.deepEqual(partsOf({ fusion_score: 0, shares: [share("dense", "original", 0)] }, 0)[0].width, 0);
});

test("documents are ranked by their best passage", () => {
  const result = (document_id, ...others) => ({ document_id, duplicates: others.map((id) => ({ document_id: id, chunk_index: 0 })) });
  const ranks = documentRanks([result("b"), result("a", "b", "c"), result("b"), result("d")]);
  assert.deepEqual([...ranks], [["b", 1], ["a", 2], ["c", 3], ["d", 4]]);
});

test("what differs between evaluations is said", () => {
  const config = { ...retrieval.DEFAULT_WEIGHTS, embedding_profile_name: "words" };
  const content = { documents: 2, chunks: 9, embedded_at: "2026-11-30T10:00:00Z" };
  const before = { config, content, k: 10 };
  assert.deepEqual(changesBetween(before, before), []);
  const now = { ...before, config: { ...config, rrf_weight_bm25: 1, embedding_profile_name: "m" }, content: { ...content, chunks: 10 } };
  assert.deepEqual(changesBetween(before, now), ["weight BM25 0.25 → 1", "embedding profile words → m", "chunks 9 → 10"]);
  const again = { ...before, content: { ...content, embedded_at: "2026-11-30T11:00:00Z" } };
  assert.deepEqual(changesBetween(before, again), ["documents embedded again"]);
});

test("an evaluation is compared with the one before that has its cut-off and is done", () => {
  const all = [
    { id: "5", k: 10, status: "done" },
    { id: "4", k: 4, status: "done" },
    { id: "3", k: 10, status: "failed" },
    { id: "2", k: 10, status: "done" },
  ];
  assert.equal(evaluationBefore(all, all[0]).id, "2");
  assert.equal(evaluationBefore(all, all[1]), undefined);
  assert.equal(evaluationBefore(all, all[3]), undefined);
});
