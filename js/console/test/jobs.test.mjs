import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

// A zone whose days have 23 hours in March and 25 in October.
process.env.TZ = "Europe/Berlin";

test("the address holds several states and the days", async () => {
  const { filterParameters, isFiltered, jobId, jobQuery, readJobFilter } = await load("jobs/filter.ts");
  const STATES = ["queued", "processing", "completed", "error"];
  const read = (text) => readJobFilter(new URLSearchParams(text), STATES);
  const none = { states: [], from: null, to: null };
  assert.deepEqual(read("state=hostile,&from=2026-02-30"), none);
  const filter = read("state=error,queued&to=2026-03-29");
  assert.deepEqual(filter, { states: ["queued", "error"], from: null, to: "2026-03-29" });
  assert.deepEqual([isFiltered(none), isFiltered(filter)], [false, true]);
  assert.deepEqual(filterParameters(filter), { state: "queued,error", from: null, to: "2026-03-29" });
  assert.deepEqual(filterParameters(none), { state: null, from: null, to: null });
  assert.deepEqual(jobQuery(filter, "acme", "status"), { partner: "acme", status: "queued,error", created_before: "2026-03-29T22:00:00.000Z" });
  assert.deepEqual(jobQuery(none, "acme", "state"), { partner: "acme" });
  assert.equal(jobId("/v2/transcript/0189-ab"), "0189-ab");
});

test("reasons of the API are sentences", async () => {
  const { sentence } = await load("jobs/filter.ts");
  assert.equal(sentence("the quota is exhausted"), "The quota is exhausted.");
  assert.equal(sentence("It failed! "), "It failed!");
  assert.equal(sentence(""), "");
});

test("the options of a transcript are those of its form", async () => {
  const { optionsOf, recordingForm, termsOf } = await load("jobs/transcripts.ts");
  const form = (fields) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    return form;
  };
  const options = optionsOf(form({ language_code: "de", format_text: "on", boosted_words: "Grüße\n\n  Colloquy \nGrüße" }));
  assert.deepEqual(options, {
    language_code: "de", language_auto: false, filler_words: false, format_text: true, boosted_words: ["Grüße", "Colloquy"],
  });
  assert.equal(optionsOf(form({ language_code: "auto" })).language_auto, true);
  assert.equal(optionsOf(form({ language_code: "auto" })).format_text, false);
  const sent = recordingForm(new File(["x"], "a.wav"), options);
  assert.deepEqual(sent.getAll("boosted_words[]"), ["Grüße", "Colloquy"]);
  assert.deepEqual([sent.get("language_code"), sent.get("format_text"), sent.get("audio").name], ["de", "true", "a.wav"]);
  const terms = (count) => Array.from({ length: count }, (_, place) => `term ${place}`).join("\n");
  assert.equal(termsOf(terms(100)).length, 100);
  // None is left out unsaid.
  assert.throws(() => termsOf(terms(101)), ({ field, message }) => field === "boosted_words" && message.includes("101"));
});

test("what is known comes before what is not", async () => {
  const { factsOf } = await load("jobs/analyses.ts");
  assert.deepEqual(factsOf({ age: null, city: "Berlin", stars: 4, calm: false }), [
    { name: "city", value: "Berlin" }, { name: "stars", value: "4" }, { name: "calm", value: "false" }, { name: "age", value: null },
  ]);
});

test("errors that name several fields are told together", async () => {
  const { problemOf } = await load("problem.ts");
  const of = (error, status = 422) => {
    const { code, field, message } = problemOf({ error, response: new Response(null, { status }) });
    return { code, field, message };
  };
  const errors = { language_code: ["must be one of de, en"], audio_url: ["is not an http or https URL", "is too long"] };
  assert.deepEqual(of({ message: "The request is not valid", errors }), {
    code: "unknown", field: "language_code",
    message: "language_code must be one of de, en; audio_url is not an http or https URL, is too long",
  });
  assert.equal(of({ message: "Too many analyses are in progress" }, 429).message, "Too many analyses are in progress");
  assert.equal(of({ error: "Transcript not found" }, 404).message, "Transcript not found");
  assert.equal(of({ errors: {} }, 500).message, "The server answered with status 500.");
});
