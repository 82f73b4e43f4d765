import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const retrieval = await load("knowledge/retrieval.ts");
const { askedParameters, changesBetween, documentRanks, isShareable, partsOf, readAsked, searchBody, weightsOf } = retrieval;

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

test("a question is unsaved while its documents or its texts differ from the saved one", async () => {
  const { isQuestionChanged } = await load("knowledge/questions.ts");
  const asked = { message: "When?", before: "", name: "", weights: {} };
  const expected = new Map([["1", "Lions"], ["2", "Tigers"]]);
  assert.ok(!isQuestionChanged({ before: null, asked, expected: new Map() }));
  assert.ok(isQuestionChanged({ before: null, asked, expected }));
  const documents = [...expected].map(([document_id, document_name]) => ({ document_id, document_name }));
  const before = { id: "7", user_message: "When?", robot_message: null, character_replacement_name: null, expected_documents: documents };
  assert.ok(!isQuestionChanged({ before, asked, expected: new Map([...expected].reverse()) }), "the order means nothing");
  assert.ok(!isQuestionChanged({ before, asked: { ...asked, weights: { rrf_weight_bm25: 1 } }, expected }), "weights are not saved");
  assert.ok(isQuestionChanged({ before, asked: { ...asked, name: "Ada" }, expected }));
  assert.ok(isQuestionChanged({ before, asked, expected: new Map([["1", "Lions"]]) }));
});

test("each question has its own edit, and a link leads back to it", async () => {
  const { questionAt, questionKey, questionPath } = await load("knowledge/questions.ts");
  const asked = (message) => ({ message, before: "", name: "", weights: {} });
  const key = (base, id, question) => questionKey(questionAt("acme", base, id, question));
  const [when, where, long] = [asked("When?"), asked("Where?"), asked("x".repeat(7_000))];
  assert.equal(new Set([key("a", null, when), key("a", null, where), key("b", null, when), key("a", "7", when), key("a", null, null)]).size, 5);
  // A saved question is one, whatever its text becomes; a page whose address has no question finds the one that is too long for it.
  assert.equal(key("a", "7", when), key("a", "7", where));
  assert.equal(key("a", null, long), key("a", null, null));
  const path = (id, question) => questionPath({ at: questionAt("acme", "a", id, question), asked: question });
  assert.equal(path(null, when), "/p/acme/knowledge/a/retrieval?q=When%3F");
  assert.equal(path(null, long), "/p/acme/knowledge/a/retrieval");
  assert.equal(path("7", long), "/p/acme/knowledge/a/retrieval?question=7");
});

test("a question that was typed is kept for its base and the question of the address", async () => {
  const { QuestionDrafts, fieldsOf, fieldsOfAsked } = await load("knowledge/question-drafts.ts");
  const drafts = new QuestionDrafts();
  const at = { partner: "acme", base: "museum", id: null, asked: null };
  const form = new FormData();
  form.append("user_message", "When ");
  drafts.set(at, fieldsOf(form));
  assert.deepEqual(drafts.of({ ...at }), { user_message: "When " });
  for (const other of [{ base: "shop" }, { partner: "other" }, { id: "q" }, { asked: { message: "Who?" } }]) assert.equal(drafts.of({ ...at, ...other }), null);
  drafts.end(at);
  assert.equal(drafts.of(at), null);
  drafts.set(at, { user_message: "x" });
  drafts.clear();
  assert.equal(drafts.of(at), null);
  const asked = { message: "When?", before: "", name: "Ada", weights: { rrf_weight_dense: 2 } };
  assert.deepEqual(fieldsOfAsked(asked), { user_message: "When?", robot_message: "", character_replacement_name: "Ada", rrf_weight_dense: "2" });
});
