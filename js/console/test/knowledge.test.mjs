import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const { filterOf, readSorting, sortedQuery, sortingChanges } = await load("knowledge/sorting.ts");
const budget = await load("knowledge/budget.ts");

test("the address holds sort key and filter, and what means nothing is left out", () => {
  const read = (text, prefix) => readSorting(new URLSearchParams(text), prefix);
  assert.deepEqual(read(""), { sort: "name", q: null });
  assert.deepEqual(read("sort=price&q=%20a%2Fb%20&folder-sort=size"), { sort: "price", q: "a/b" });
  assert.deepEqual(read("sort=price&folder-sort=size&folder-q=x", "folder-"), { sort: "size", q: "x" });
  assert.deepEqual(read("sort=tokens&q=%20"), { sort: "name", q: null });
  assert.deepEqual(sortingChanges({ sort: "size" }), { sort: "size" });
  assert.deepEqual(sortingChanges({ sort: "name", q: null }, "folder-"), { "folder-sort": null, "folder-q": null });
});

test("the API gets sort key and filter", () => {
  assert.deepEqual(sortedQuery({ sort: "name", q: null }), { sort: "name" });
  assert.deepEqual(sortedQuery({ sort: "price", q: "é" }, "next"), { sort: "price", q: "é", cursor: "next" });
  // The API counts characters, not UTF-16 units.
  assert.equal([...filterOf("😀".repeat(300))].length, 200);
  assert.equal(filterOf(null), null);
});

test("bars are fractions of the limit that do not exceed it", () => {
  const { barOf } = budget;
  assert.equal(barOf({ limit: null, consumed: 5, reserved: 0 }), null);
  assert.deepEqual(barOf({ limit: 100, consumed: 25, reserved: 50 }), { used: 0.25, reserved: 0.5, isFull: false });
  assert.deepEqual(barOf({ limit: "0.5", consumed: "0.25", reserved: "0.25" }), { used: 0.5, reserved: 0.5, isFull: true });
  assert.deepEqual(barOf({ limit: 10, consumed: 30, reserved: 5 }), { used: 1, reserved: 0, isFull: true });
  assert.deepEqual(barOf({ limit: 0, consumed: 0, reserved: 0 }), { used: 1, reserved: 0, isFull: true });
});

test("the limit that is used up first is shown", () => {
  const standing = (limit, consumed) => ({ limit, consumed, reserved: 0 });
  const measures = (characters, tokens, dollars) => budget.tightest({ characters, tokens, dollars })?.measure ?? null;
  const none = standing(null, 7);
  assert.equal(measures(none, none, none), null);
  assert.equal(measures(standing(10, 5), standing(10, 6), none), "tokens");
  assert.equal(measures(standing(10, 9), none, standing("0", "0")), "dollars");
});

test("only limits that were changed are sent, and undone", () => {
  const { limitChanges, limitTexts, limitsBody, revertedChanges } = budget;
  const limits = { character_limit: 1000, token_limit: null, dollar_limit_usd: "12.5" };
  const texts = limitTexts(limits);
  assert.deepEqual(texts, { character_limit: "1000", token_limit: "", dollar_limit_usd: "12.5" });
  const changes = (typed) => limitChanges({ ...texts, ...typed }, limits);
  assert.deepEqual(changes({}), {});
  assert.deepEqual(changes({ character_limit: " 01000 ", dollar_limit_usd: "12.50" }), {});
  const some = changes({ character_limit: "", token_limit: "0", dollar_limit_usd: "0.00000001" });
  assert.deepEqual(some, { character_limit: "", token_limit: "0", dollar_limit_usd: "0.00000001" });
  assert.deepEqual(limitsBody(some), { character_limit: null, token_limit: 0, dollar_limit_usd: "0.00000001" });
  assert.deepEqual(limitsBody(revertedChanges(some, limits)), limits);
  assert.deepEqual(limitsBody(revertedChanges({ token_limit: "5" }, limits)), { token_limit: null });
  // Only what the changes set has to be there still.
  const { areKept } = budget;
  const set = { character_limit: "", dollar_limit_usd: "0.50" };
  assert.equal(areKept(set, { character_limit: null, token_limit: 9, dollar_limit_usd: "0.5" }), true);
  assert.equal(areKept(set, { character_limit: 7, token_limit: null, dollar_limit_usd: "0.5" }), false);
  assert.equal(areKept(set, { character_limit: null, token_limit: null, dollar_limit_usd: null }), false);
  for (const wrong of [{ character_limit: "-1" }, { token_limit: "1.5" }, { dollar_limit_usd: "1,5" }, { dollar_limit_usd: "0.000000001" }, { token_limit: "9".repeat(16) }]) {
    assert.equal(changes(wrong), null, JSON.stringify(wrong));
  }
});

test("counts and reasons are words", async () => {
  const { counted, reasonWords, stateWords } = await load("knowledge/words.ts");
  assert.deepEqual([counted(1, "document"), counted(1200, "document"), counted(2, "piece", "pieces")], ["1 document", "1,200 documents", "2 pieces"]);
  assert.deepEqual(stateWords({ active: 0, blocked: 2, failed: 1 }).map(({ text }) => text), ["2 blocked", "1 failed"]);
  assert.match(reasonWords("character_limit"), /limit allows/);
  assert.equal(reasonWords("a_new_reason"), "a new reason");
});

test("an entry is found on any page", async () => {
  const { findEntry } = await load("knowledge/find.ts");
  const pages = { first: { entries: ["ab", "b"], next: "second" }, second: { entries: ["a"], next: null } };
  const read = async (cursor = "first") => pages[cursor];
  assert.equal(await findEntry(read, (entry) => entry === "a"), "a");
  assert.equal(await findEntry(read, (entry) => entry === "c"), null);
});

test("empty fields are no part of a form", async () => {
  const { formFields, multipart } = await load("knowledge/forms.ts");
  const fields = new FormData();
  for (const [name, value] of [["name", " a "], ["expert_name", " "], ["other", "x"]]) fields.append(name, value);
  assert.deepEqual(formFields(fields, "name", "expert_name", "token_limit"), { name: "a" });
  assert.deepEqual([...multipart({ name: "a", type: null, token_limit: 0 })], [["name", "a"], ["token_limit", "0"]]);
});

test("the limit that is used up first is found among any limits", async () => {
  const { tightestOf } = await load("knowledge/budget.ts");
  const standing = (limit, consumed, reserved = 0) => ({ limit, consumed, reserved });
  const limits = [["tokens", standing(100, 50, 10)], ["dollars", standing("1", "0.59")], ["seconds", standing(null, 9)]];
  assert.equal(tightestOf(limits).measure, "tokens");
  assert.equal(tightestOf([...limits, ["characters", standing(0, 0)]]).measure, "characters");
  assert.equal(tightestOf([["seconds", standing(null, 9)]]), null);
});
