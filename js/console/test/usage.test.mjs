import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const filter = await load("usage/filter.ts");
const { MAX_SERIES, chartOf, groupText, ordered, rowKey, stacked } = await load("usage/series.ts");
const { formatAmount, formatShort } = await load("usage/measures.ts");
const { changesOf, readForm, stateOf } = await load("quotas/quota.ts");

const NOW = "2026-03-31";

test("the address holds days, groups, measure and order, and what means nothing is left out", () => {
  const read = (text, groups = filter.GROUPS) => filter.readUsageFilter(new URLSearchParams(text), groups, NOW);
  const none = { range: "30-days", from: "2026-03-02", to: NOW, groups: ["day"], measure: "requests", isLargestFirst: false };
  assert.deepEqual(read(""), none);
  assert.deepEqual(read("range=year&by=hour&measure=cost&order=no"), none);
  assert.deepEqual(read("from=2026-02-30&to=2026-03-01"), none);
  assert.deepEqual(read("from=2026-02-01"), none);
  const days = read("from=2026-02-01&to=2026-02-03&range=month&by=key,day&measure=dollars&order=largest");
  assert.deepEqual(days, { range: null, from: "2026-02-01", to: "2026-02-03", groups: ["day", "key"], measure: "dollars", isLargestFirst: true });
  assert.deepEqual(filter.usageQuery(days), { from: "2026-02-01", to: "2026-02-03", group_by: "day,key" });
  // A quota is one key.
  assert.deepEqual(read("by=key", ["day", "model", "character"]).groups, ["day"]);
  const range = (name, now = NOW) => {
    const { from, to } = filter.readUsageFilter(new URLSearchParams(`range=${name}`), filter.GROUPS, now);
    return [from, to];
  };
  assert.deepEqual(range("7-days"), ["2026-03-25", NOW]);
  assert.deepEqual(range("365-days"), ["2025-04-01", NOW]);
  assert.deepEqual(range("month"), ["2026-03-01", NOW]);
  assert.deepEqual(range("last-month"), ["2026-02-01", "2026-02-28"]);
  assert.deepEqual(range("last-month", "2026-01-01"), ["2025-12-01", "2025-12-31"]);
});

test("groups are toggled, and the last one stays", () => {
  assert.deepEqual(filter.groupChanges(["day"], "model"), { by: "day,model" });
  assert.deepEqual(filter.groupChanges(["day", "model"], "day"), { by: "model" });
  assert.deepEqual(filter.groupChanges(["day", "model"], "model"), { by: null });
  assert.deepEqual(filter.groupChanges(["model"], "model"), {});
  assert.deepEqual(filter.rangeChanges("30-days"), { range: null, from: null, to: null });
});

test("a chart has all days, and the largest series", () => {
  const row = (day, model, requests, more = {}) => ({ day, model, requests, ...more });
  const of = (rows, groups) => chartOf(rows, { from: "2026-02-27", to: "2026-03-01", groups, measure: "requests" });
  const rows = [row("2026-02-27", "a", 1), row("2026-03-01", "a", 2), row("2026-03-01", "b", 5), row("2026-03-02", "b", 9), row("2026-03-01", "c", 0)];
  assert.deepEqual(of(rows, ["day", "model"]), {
    days: ["2026-02-27", "2026-02-28", "2026-03-01"],
    series: [
      { label: "b", values: [0, 0, 5] },
      { label: "a", values: [1, 0, 2] },
    ],
  });
  const [only] = of([row("2026-02-28", undefined, 3)], ["day"]).series;
  assert.deepEqual(only, { label: "", values: [0, 3, 0] });
  // Quotas of the same name are two.
  const key = (quota_id, requests) => row("2026-02-28", undefined, requests, { quota_id, quota_name: "site" });
  assert.deepEqual(of([key("1", 3), key("2", 4)], ["day", "key"]).series.map(({ label, values }) => [label, values[1]]), [["site", 4], ["site", 3]]);
  const many = (count) => Array.from({ length: count }, (_, place) => row("2026-02-27", `m${place}`, count - place));
  assert.equal(of(many(MAX_SERIES), ["day", "model"]).series.at(-1).label, `m${MAX_SERIES - 1}`);
  const { series } = of(many(10), ["day", "model"]);
  assert.equal(series.length, MAX_SERIES);
  assert.deepEqual(series.at(-1), { label: "5 others", values: [5 + 4 + 3 + 2 + 1, 0, 0] });
  assert.deepEqual(stacked([{ values: [1, 2] }, { values: [10, 0] }, { values: [0, 5] }]), [[1, 2], [11, 2], [11, 7]]);
});

test("rows are told apart, and put in order", () => {
  const rows = [
    { character: null, dollars: "0.5" },
    { character: "acme/ada", dollars: "10.25" },
  ];
  assert.deepEqual(ordered(rows, "dollars", true).map((row) => groupText(row, "character")), ["acme/ada", "no saved character"]);
  assert.equal(ordered(rows, "dollars", false), rows);
  assert.notEqual(rowKey({ character: "no saved character" }, ["character"]), rowKey({ character: null }, ["character"]));
  assert.equal(groupText({ quota_id: "0123456789", quota_name: "" }, "key"), "23456789");
  assert.equal(formatAmount("seconds", 3_665), "1:01:05");
  assert.equal(formatAmount("dollars", "0.00000007"), "$0.00000007");
  assert.equal(formatShort("dollars", 1_500), "$1.5K");
  assert.equal(formatShort("dollars", 0.00003), "$0.00003");
});

const quota = {
  id: "1",
  name: "site",
  kinds: ["text", "call"],
  limits: { tokens: 100, dollars: "12.5", characters: null, seconds: null },
  remaining: { tokens: 40, dollars: "1", characters: null, seconds: null },
  period: "day",
  allowed_models: ["gpt"],
  allowed_characters: null,
  disabled: false,
  expires_at: null,
  revoked_at: null,
};

test("a quota says why it cannot be used", () => {
  const now = new Date("2026-01-02T00:00:00Z");
  const state = (more) => stateOf({ ...quota, ...more }, now);
  assert.equal(state({}), "active");
  assert.equal(state({ remaining: { ...quota.remaining, dollars: "0" } }), "used up");
  assert.equal(state({ disabled: true }), "switched off");
  assert.equal(state({ disabled: true, expires_at: "2026-01-02T00:00:00Z" }), "expired");
  assert.equal(state({ expires_at: "2026-01-01T00:00:00Z", revoked_at: "2026-01-01T00:00:00Z" }), "revoked");
});

test("only what was changed of a quota is sent", () => {
  const form = (more = {}) => {
    const fields = new FormData();
    const texts = {
      name: "site", period: "day", "limits.tokens": "100", "limits.dollars": "12.5", "limits.characters": "", "limits.seconds": "", allowed_models: "gpt\n",
      allowed_characters: "", ...more,
    };
    for (const [name, text] of Object.entries(texts)) fields.append(name, text);
    for (const kind of ["call", "text"]) fields.append("kinds", kind);
    return readForm(fields);
  };
  assert.deepEqual(changesOf(quota, { ...form(), disabled: false }), {});
  assert.deepEqual(changesOf(quota, { ...form({ name: " hotline " }), disabled: true }), { name: "hotline", disabled: true });
  const limits = { tokens: 0, dollars: null, characters: null, seconds: 60 };
  assert.deepEqual(changesOf(quota, form({ "limits.tokens": "0", "limits.dollars": "", "limits.seconds": "60" })), { limits });
  const lists = { allowed_models: null, allowed_characters: ["repo:acme/*", "inline"] };
  assert.deepEqual(changesOf(quota, form({ allowed_models: " \n", allowed_characters: "repo:acme/*\r\n inline" })), lists);
});

test("today is that of the server, and what cost nothing makes the sum a lower bound", async () => {
  const { isLowerBound, todayUtc } = await load("usage/today.ts");
  assert.equal(todayUtc(new Date("2026-03-31T23:30:00-05:00")), "2026-04-01");
  const row = (dollars, tokens = 0, characters = 0, seconds = 0) => ({ dollars, tokens, characters, seconds });
  assert.equal(isLowerBound({ rows: [] }), false);
  assert.equal(isLowerBound({ rows: [row("0.00000001", 10), row("0")] }), false);
  for (const used of [row("0", 1), row("0", 0, 1), row("0.00", 0, 0, 1)]) assert.equal(isLowerBound({ rows: [row("1", 10), used] }), true);
});

test("what was spent today is one figure and its parts", async () => {
  const { spentParts } = await load("usage/today.ts");
  const used = (dollars, tokens) => ({ dollars, tokens, characters: 0, seconds: 0, requests: 1 });
  const quotas = used("0.5", 10);
  const bases = used("0", 20);
  const all = used("0.5", 30);
  const report = { rows: [quotas], total: quotas, knowledge_bases: { models: [bases], total: bases }, all };
  assert.deepEqual(spentParts(report), [
    { name: "All", used: all, isLower: true },
    { name: "Quotas and playgrounds", used: quotas, isLower: false },
    { name: "Knowledge bases", used: bases, isLower: true },
  ]);
});
