import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeClock, settle } from "./fakes.mjs";

/** A queue whose requests the test answers. */
async function queue() {
  const { UploadQueue } = await load("documents/queue.ts");
  const clock = new FakeClock();
  const sent = [];
  const send = (source, onProgress, signal) => new Promise((answer) => sent.push({ source, onProgress, signal, answer }));
  const uploads = new UploadQueue({ send, clock });
  const states = () => Object.fromEntries(uploads.uploads.value.map(({ source, state }) => [source, state.value.name]));
  return { uploads, clock, sent, states };
}

const created = (document, duplicates = []) => ({ kind: "created", document, duplicates });
const problem = { status: 503, message: "busy" };

test("three uploads are sent at a time, with their progress", async () => {
  const { uploads, sent, states } = await queue();
  uploads.add(["a", "b", "c", "d"]);
  assert.deepEqual(states(), { a: "sending", b: "sending", c: "sending", d: "queued" });
  assert.equal(uploads.isActive.value, true);
  sent[0].onProgress(0.5);
  assert.equal(uploads.uploads.value[0].state.value.share, 0.5);
  sent[0].onProgress(0.505);
  assert.equal(uploads.uploads.value[0].state.value.share, 0.5, "less than a percent is no news");
  sent[1].answer(created("2", ["1"]));
  await settle();
  assert.deepEqual(states(), { a: "sending", b: "done", c: "sending", d: "sending" });
  assert.deepEqual(uploads.uploads.value[1].state.value.duplicates, ["1"]);
  for (const { answer } of sent) answer(created("x"));
  await settle();
  assert.equal(uploads.isActive.value, false);
  assert.deepEqual(uploads.counts.value, { queued: 0, sending: 0, waiting: 0, done: 4, failed: 0, duplicates: 1 });
  uploads.dismiss();
  assert.deepEqual(uploads.uploads.value, []);
});

test("all uploads wait as long as a busy server asks for", async () => {
  const { uploads, clock, sent, states } = await queue();
  uploads.add(["a", "b", "c", "d"]);
  sent[0].answer({ kind: "busy", waitMs: 7_000, problem });
  sent[1].answer(created("2"));
  await settle();
  assert.deepEqual(states(), { a: "waiting", b: "done", c: "sending", d: "queued" });
  await clock.advance(6_999);
  assert.equal(sent.length, 3);
  await clock.advance(1);
  assert.deepEqual(states(), { a: "sending", b: "done", c: "sending", d: "sending" });
});

test("a server that stays busy is asked less and less often, and given up in the end", async () => {
  const { uploads, clock, sent, states } = await queue();
  uploads.add(["a"]);
  const waits = [];
  for (let attempt = 1; attempt <= 8; attempt += 1) {
    sent.at(-1).answer({ kind: "busy", waitMs: null, problem });
    const [count, before] = [sent.length, clock.time];
    await settle();
    while (attempt < 8 && sent.length === count) await clock.advance(1_000);
    waits.push(clock.time - before);
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 0]);
  assert.deepEqual(states(), { a: "failed" });
  uploads.retry();
  assert.deepEqual(states(), { a: "sending" });
});

test("what failed is kept until it is sent again or dismissed", async () => {
  const { uploads, sent, states } = await queue();
  uploads.add(["a", "b"]);
  sent[0].answer({ kind: "failed", problem: { status: 413, message: "too large" } });
  sent[1].answer({ kind: "failed", problem: { status: 0, message: "unreachable" } });
  await settle();
  uploads.cancel();
  assert.deepEqual(states(), { a: "failed", b: "failed" });
  uploads.retry(uploads.uploads.value[1].id);
  assert.deepEqual(states(), { a: "failed", b: "sending" });
  uploads.remove(uploads.uploads.value[0].id);
  assert.deepEqual(states(), { b: "sending" });
});

test("cancelling aborts what is sent and forgets what waits", async () => {
  const { uploads, sent, states } = await queue();
  uploads.add(["a", "b", "c", "d", "e"]);
  sent[0].answer(created("1"));
  await settle();
  uploads.cancel();
  assert.deepEqual(states(), { a: "done" });
  assert.deepEqual(sent.slice(1).map(({ signal }) => signal.aborted), [true, true, true]);
  sent[1].answer({ kind: "failed", problem });
  await settle();
  assert.deepEqual(states(), { a: "done" });
  assert.equal(sent.length, 4);
});

test("uploads wait for the next sign-in when the session has ended", async () => {
  const { uploads, clock, sent, states } = await queue();
  uploads.add(["a", "b", "c", "d"]);
  sent[0].answer({ kind: "signed-out" });
  sent[1].answer(created("2"));
  await clock.advance(100_000);
  assert.deepEqual(states(), { a: "waiting", b: "done", c: "sending", d: "queued" });
  uploads.resume();
  assert.deepEqual(states(), { a: "sending", b: "done", c: "sending", d: "sending" });
});

test("what needs attention is listed first", async () => {
  const { uploads, sent } = await queue();
  uploads.add(["a", "b", "c", "d", "e"]);
  sent[0].answer(created("1"));
  sent[1].answer(created("2", ["1"]));
  sent[2].answer({ kind: "failed", problem });
  await settle();
  uploads.add(["f"]);
  assert.deepEqual(uploads.first(9).map(({ source }) => source), ["c", "d", "e", "f", "b", "a"]);
  assert.deepEqual(uploads.first(2).map(({ source }) => source), ["c", "d"]);
  assert.deepEqual(uploads.counts.value, { queued: 0, sending: 3, waiting: 0, done: 2, failed: 1, duplicates: 1 });
  for (const { answer } of sent.slice(3)) answer({ kind: "failed", problem });
  await settle();
  assert.equal(uploads.counts.value.failed, 4);
  uploads.retry();
  assert.deepEqual(uploads.first(9).map(({ source }) => source), ["c", "d", "e", "f", "b", "a"]);
  uploads.clear();
  assert.deepEqual(uploads.first(9), []);
});

test("10,000 uploads take the time of 10,000 steps", async () => {
  const { UploadQueue } = await load("documents/queue.ts");
  const sent = [];
  const send = async (source) => {
    sent.push(source);
    return source % 100 === 0 ? { kind: "failed", problem } : created(String(source));
  };
  const uploads = new UploadQueue({ send, clock: new FakeClock() });
  let changes = 0;
  const unsubscribe = uploads.counts.subscribe(() => (changes += 1));
  const began = performance.now();
  uploads.add(Array.from({ length: 10_000 }, (_, place) => place));
  while (uploads.isActive.value) await settle();
  const { done, failed } = uploads.counts.value;
  assert.deepEqual([done, failed], [9_900, 100]);
  assert.deepEqual(sent, sent.toSorted((a, b) => a - b), "in their order");
  uploads.retry();
  while (uploads.isActive.value) await settle();
  assert.equal(uploads.counts.value.failed, 100);
  uploads.dismiss();
  assert.equal(uploads.uploads.value.length, 0);
  const ms = performance.now() - began;
  unsubscribe();
  // With each step passing the whole list, it took 40 times as long.
  assert.ok(ms < 2_000, `${ms} ms`);
  assert.ok(changes < 21_000, `${changes} renders`);
});

const answer = (status, body, headers) => ({ ...body, response: new Response(null, { status, headers }) });
const targetsOf = (count) => Array.from({ length: count }, (_, place) => ({ id: String(place + 1), name: `Document ${place + 1}` }));
const reasonsOf = (bulk) => bulk.failures.value.map(({ name, problem }) => `${name}: ${problem.message}`);

test("an action that the API takes for one document runs four at a time, waits for the server, and keeps what failed", async () => {
  const { Bulk, oneByOne } = await load("documents/bulk.ts");
  const clock = new FakeClock();
  const asked = [];
  const change = oneByOne((id) => new Promise((answer) => asked.push({ id, answer })));
  const bulk = new Bulk("Rewriting", "Rewritten", targetsOf(6), change, clock);
  const running = bulk.run();
  await settle();
  assert.deepEqual(asked.map(({ id }) => id), ["1", "2", "3", "4"]);
  asked[0].answer(answer(200, { data: { status: "queued" } }));
  asked[1].answer(answer(409, { error: { detail: "The document is being deleted", code: "conflict" } }));
  asked[2].answer(answer(429, { error: { detail: "slow down" } }, { "retry-after": "3" }));
  await settle();
  assert.deepEqual(asked.slice(4).map(({ id }) => id), ["5", "6"]);
  assert.equal(bulk.done.value, 1);
  assert.deepEqual(reasonsOf(bulk), ["Document 2: The document is being deleted"]);
  await clock.advance(3_000);
  assert.equal(asked[6].id, "3");
  for (const one of asked) one.answer(answer(200));
  await running;
  assert.equal(bulk.done.value, 5);
  assert.equal(bulk.isRunning.value, false);
});

test("an action that the API takes for many documents has 100 a request, and names those that were skipped or not reached", async () => {
  const { Bulk, inBatches } = await load("documents/bulk.ts");
  const asked = [];
  const bulk = new Bulk("Moving", "Moved", targetsOf(250), inBatches((ids) => new Promise((answer) => asked.push({ ids, answer }))), new FakeClock());
  const running = bulk.run();
  await settle();
  assert.deepEqual(asked.map(({ ids }) => ids.length), [100]);
  const results = asked[0].ids.map((id) => ({ document_id: id, status: id === "7" ? "skipped" : "moved", reason: id === "7" ? "The document is being deleted" : null }));
  asked[0].answer(answer(200, { data: { done: 99, skipped: 1, results } }));
  await settle();
  assert.equal(bulk.done.value, 99);
  assert.deepEqual(reasonsOf(bulk), ["Document 7: The document is being deleted"]);
  asked[1].answer(answer(500, { error: { detail: "broken" } }));
  await settle();
  assert.deepEqual([asked[2].ids.length, bulk.failures.value.length], [50, 101]);
  asked[2].answer(answer(200, { data: { done: 50, skipped: 0, results: [] } }));
  await running;
  assert.equal(bulk.done.value, 149);
});

test("an action stops while everything would fail, and goes on with what is left", async () => {
  const { Bulk, inBatches } = await load("documents/bulk.ts");
  const asked = [];
  const change = inBatches((ids) => new Promise((answer) => asked.push({ ids, answer })));
  const bulk = new Bulk("Moving", "Moved", targetsOf(250), change, new FakeClock());
  const stopped = bulk.run();
  await settle();
  asked[0].answer(answer(200, { data: { done: 100, skipped: 0, results: [] } }));
  await settle();
  asked[1].answer(answer(401, { error: { detail: "The session has ended" } }));
  await stopped;
  assert.deepEqual([asked.length, bulk.done.value, bulk.failures.value.length, bulk.isRunning.value], [2, 100, 0, false]);
  assert.equal(bulk.stopped.value.message, "The session has ended");
  const again = bulk.run();
  await settle();
  assert.equal(bulk.stopped.value, null);
  assert.deepEqual([asked[2].ids[0], asked[2].ids.length], ["101", 100]);
  asked[2].answer(answer(200, { data: { done: 100, skipped: 0, results: [] } }));
  await settle();
  asked[3].answer(answer(200, { data: { done: 50, skipped: 0, results: [] } }));
  await again;
  assert.deepEqual([bulk.done.value, bulk.stopped.value], [250, null]);
});

test("a cancelled action sends nothing more", async () => {
  const { Bulk, oneByOne } = await load("documents/bulk.ts");
  const asked = [];
  const bulk = new Bulk("Rewriting", "Rewritten", targetsOf(6), oneByOne((id) => new Promise((answer) => asked.push({ id, answer }))), new FakeClock());
  const running = bulk.run();
  await settle();
  bulk.cancel();
  for (const one of asked) one.answer(answer(200));
  await running;
  assert.deepEqual([asked.length, bulk.done.value, bulk.failures.value.length], [4, 4, 0]);
});

test("the report of an action that stopped or failed in part stays while others run", async () => {
  const { Bulk, Bulks, inBatches } = await load("documents/bulk.ts");
  const asked = [];
  const change = inBatches((ids) => new Promise((answer) => asked.push({ ids, answer })));
  const begin = (title) => new Bulk(title, `${title}: done`, targetsOf(1), change, new FakeClock());
  const bulks = new Bulks();
  const titles = () => bulks.shown.value.map(({ title }) => title);
  const done = answer(200, { data: { done: 1, skipped: 0, results: [] } });

  const [stopped, refused, fine] = ["Moving", "Deleting", "Retrying"].map(begin);
  const first = bulks.run(stopped);
  await settle();
  await assert.rejects(bulks.run(refused), { message: /Another action is running/ });
  assert.deepEqual(titles(), ["Moving"]);
  asked[0].answer(answer(403, { error: { detail: "not allowed" } }));
  assert.equal(await first, null);
  const second = bulks.run(refused);
  await settle();
  assert.deepEqual(titles(), ["Moving", "Deleting"]);
  await assert.rejects(bulks.run(stopped), { message: /Another action is running/ });
  asked[1].answer(answer(200, { data: { done: 0, skipped: 1, results: [{ document_id: "1", status: "skipped", reason: "Gone" }] } }));
  assert.equal(await second, null);
  const third = bulks.run(fine);
  await settle();
  asked[2].answer(done);
  assert.equal(await third, "Retrying: done");
  assert.deepEqual(titles(), ["Moving", "Deleting"]);
  assert.equal(stopped.stopped.value.message, "not allowed");
  bulks.dismiss(refused);
  // What is left of the first goes on.
  const again = bulks.run(stopped);
  await settle();
  asked[3].answer(done);
  assert.equal(await again, "Moving: done");
  assert.deepEqual(titles(), []);
  assert.equal(refused.done.value, 0);
});

test("an upload whose answer was lost is looked for by its name, its content and its age", async () => {
  const { Unanswered, sha256 } = await load("documents/unanswered.ts", "documents/digest.ts");
  const NOW = Date.parse("2026-01-01T00:10:00Z");
  const hash = (text) => sha256(new Blob([text]));
  const document = (id, name, text, secondsAgo = 1, more = {}) => ({
    id, name, type: "file", size_bytes: text.length, created_at: new Date(NOW - 1_000 * secondsAgo).toISOString(), text, ...more,
  });
  const clock = new FakeClock();
  let documents = [];
  let digest = sha256;
  const read = async (_, id) => ({ content_hash: await hash(documents.find((one) => one.id === id).text), duplicate_document_ids: ["dup"] });
  const unanswered = new Unanswered({ list: async () => ({ documents, now: NOW }), read, digest: (file) => digest(file), clock });
  const file = (name, text) => ({ name, file: new File([text], name || "unnamed") });
  const find = async (source, secondsAgo = 10) => {
    unanswered.lose(source, clock.time - 1_000 * secondsAgo);
    return (await unanswered.find(source, new AbortController().signal))?.document ?? null;
  };

  documents = [document("1", "a.txt", "aaa")];
  assert.equal(await unanswered.find(file("a.txt", "aaa")), null, "no answer was lost");
  for (const other of [file("b.txt", "aaa"), file("a.txt", "aaaa"), file("a.txt", "bbb")]) assert.equal(await find(other), null);
  documents = [document("0", "a.txt", "aaa", 13)];
  assert.equal(await find(file("a.txt", "aaa")), null, "it was there before");
  documents = [document("0", "a.txt", "bbb"), document("1", "a.txt", "aaa", 11)];
  const [first, second] = [file("a.txt", "aaa"), file("a.txt", "aaa")];
  assert.equal(await find(first), "1");
  assert.equal(await find(second), null, "a document is that of one upload");
  documents = [document("2", "a.txt", "aaa")];
  unanswered.take("2");
  assert.equal(await find(second), null, "nor is that of an upload that was answered");

  // Where the server makes the name, the content has to be the same; without TLS, it is not known.
  documents = [document("3", "unnamed", "ccc")];
  digest = async () => null;
  assert.equal(await find(file("", "ccc")), null);
  digest = sha256;
  assert.equal(await find(file("", "ccc")), "3");
  documents = [document("4", "a.txt", "ddd")];
  digest = async () => null;
  assert.equal(await find(file("a.txt", "ddd")), "4");
  documents = [document("5", "Page", "eee", 1, { type: "url", url: "https://example.com/" })];
  assert.equal(await find({ name: "", url: "https://example.com/other" }), null);
  assert.equal(await find({ name: "", url: "https://example.com/" }), "5");
});
