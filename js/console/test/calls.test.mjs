import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

// A zone whose days have 23 hours in March and 25 in October.
process.env.TZ = "Europe/Berlin";

const { callQuery, isFiltered, readFilter } = await load("calls/filter.ts");
const NONE = { state: null, character: null, from: null, to: null };

test("the address holds the filter, and what means nothing is left out", () => {
  const read = (text) => readFilter(new URLSearchParams(text));
  assert.deepEqual(read(""), NONE);
  assert.deepEqual(read("state=ongoing&character=%20ada%20&from=2026-11-01&to=2026-11-30&page=2"), {
    state: "ongoing", character: "ada", from: "2026-11-01", to: "2026-11-30",
  });
  assert.deepEqual(read("state=hostile&character=%20&from=2026-02-30&to=yesterday"), NONE);
  for (const day of ["2026-13-01", "2026-00-10", "2026-11-31", "2026-11-1", "02026-11-01"]) assert.equal(read(`from=${day}`).from, null, day);
  assert.equal(read("from=2028-02-29").from, "2028-02-29");
  // While a year is typed, it is one of the past.
  assert.equal(read("from=0002-11-01").from, "0002-11-01");
  assert.deepEqual([isFiltered(NONE), isFiltered({ ...NONE, to: "2026-11-30" })], [false, true]);
});

test("days are those of the reader, and the last one is included", () => {
  const query = (from, to) => callQuery({ ...NONE, from, to }, "acme");
  assert.deepEqual(query(null, null), { partner: "acme" });
  assert.deepEqual(query("2026-11-30", "2026-11-30"), {
    partner: "acme", created_from: "2026-11-29T23:00:00.000Z", created_before: "2026-11-30T23:00:00.000Z",
  });
  const spring = query("2026-03-29", "2026-03-29");
  assert.equal(Date.parse(spring.created_before) - Date.parse(spring.created_from), 23 * 3_600_000);
  assert.equal(query(null, "2026-12-31").created_before, "2026-12-31T23:00:00.000Z");
  assert.equal(query("0002-11-01", null).created_from.slice(0, 7), "0002-10");
});

test("a character is one of the partner unless a partner is named", () => {
  const character = (text) => callQuery({ ...NONE, character: text }, "acme").character;
  assert.equal(character("ada"), "repo:acme/ada");
  assert.equal(character("repo:globex/ada"), "repo:globex/ada");
  assert.equal(character("globex/ada"), "globex/ada");
  assert.equal(callQuery({ ...NONE, state: "error" }, "acme").state, "error");
});

test("paths and references have their parts", async () => {
  const { callId, parseReference, shortId } = await load("calls/names.ts");
  assert.equal(callId("/v2/calls/019a-77"), "019a-77");
  for (const other of ["/v2/calls/", "/v2/calls/a/transcript", "/v2/transcript/a", ""]) assert.equal(callId(other), null, other);
  assert.equal(shortId("019ad000-0000-7000-8000-0123456789ab"), "456789ab");
  assert.deepEqual(parseReference("repo:acme/ada"), { partner: "acme", name: "ada" });
  for (const other of ["acme/ada", "repo:ada", "repo:acme/ada/x", ""]) assert.equal(parseReference(other), null, other);
  const { CALL, address } = await load("addresses.ts");
  assert.equal(address(CALL, { partner: "a/b", id: "1" }, { state: "error", character: null, from: "" }), "/p/a%2Fb/calls/1?state=error");
  assert.equal(address(CALL, { partner: "acme", id: "1" }), "/p/acme/calls/1");
});

test("lines of one speaker are one turn", async () => {
  const { turns } = await load("calls/transcript.ts");
  const line = (originator, text, at_ms) => ({ originator, text, at_ms, interrupted: false, reply: null });
  assert.deepEqual(turns([]), []);
  const lines = [line("bot", "Hello.", 0), line("bot", "Who is there?", 900), line("user", " ", 1_000), line("bot", "Well?", 5_000), line("user", "Me.", 6_000)];
  assert.deepEqual(turns(lines), [
    { originator: "bot", lines: [lines[0], lines[1], lines[3]] },
    { originator: "user", lines: [lines[4]] },
  ]);
});

test("the time of a reply is told by its stages", async () => {
  const { timing } = await load("calls/transcript.ts");
  const none = { waited_ms: null, transcription_ms: null, model_ms: null, synthesis_ms: null, documents: [] };
  assert.equal(timing(none), "");
  assert.equal(timing({ ...none, waited_ms: 840, transcription_ms: 210, model_ms: 1_260, synthesis_ms: 90 }), "heard after 0.8 sec: words 0.2 sec, model 1.3 sec, voice 0.1 sec");
  assert.equal(timing({ ...none, model_ms: 400 }), "model 0.4 sec");
});

test("parameters without a place of their own are shown together", async () => {
  const { otherParameters, versionOf } = await load("characters/parameters.ts");
  const own = { shop: { city: "Bonn" }, calm: false };
  assert.deepEqual(otherParameters({ name: "Ada", voice: { id: "x" }, easy_questions: [], max_new_tokens: null, ...own }), own);
  assert.equal(versionOf("3"), 3);
  for (const other of ["0", "1.5", "-1", "", null]) assert.equal(versionOf(other), null, other);
});

test("the quality of a call is drawn with breaks where media was away", async () => {
  const { CHARTS, FIGURES, columns, worst } = await load("calls/quality.ts");
  const point = (at, round_trip_ms, loss_received = null) => ({ at_ms: at * 1_000, round_trip_ms, jitter_ms: null, loss_received, loss_sent: null });
  const points = [point(10, 40, 0), point(20, 90, 0.255), point(60, null), point(70, 30)];
  const { figures } = CHARTS.times;
  assert.deepEqual(columns(points, figures), [
    [10, 20, 25, 60, 70],
    [40, 90, null, null, 30],
    [null, null, null, null, null],
  ]);
  assert.deepEqual(columns([point(3, 40)], figures), [[3], [40], [null]]);
  assert.deepEqual(FIGURES.map((figure) => worst(points, figure)), [90, null, 0.255, null]);
  assert.deepEqual([FIGURES[0].format(1234), FIGURES[2].format(0.255)], ["1,234 ms", "25.5%"]);
});
