import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeClock, FakeServer, settle } from "./fakes.mjs";

const { backoffMs, follow, retryAfterMs } = await load("events/stream.ts");

async function begin({ lastId = null, answers = [] } = {}) {
  const clock = new FakeClock();
  const server = Object.assign(new FakeServer(), { answers });
  const stop = new AbortController();
  const [news, ids] = [[], []];
  const ended = follow({
    open: server.open,
    lastId,
    onEvent: (one) => news.push(one),
    onId: (id) => ids.push(id),
    onLive: () => {},
    signal: stop.signal,
    clock,
  });
  await settle();
  return { clock, server, stop, news, ids, ended };
}

const event = (kind, id) => `event: ${kind}\ndata: {"id":"${id}","base":"faq","deleted":false}\n\n`;
const change = (kind, id) => ({ kind, id, base: "faq", isDeleted: false });

test("a first connection begins with a reset, and one that resumes does not", async () => {
  const { clock, server, news, ids, stop, ended } = await begin();
  assert.equal(server.last.lastId, null);
  server.last.send(`retry: 2000\n\nevent: ready\nid: 4\ndata: {}\n\n${event("document", "a")}id: 5\n\n`);
  await settle();
  assert.deepEqual(news, [{ kind: "reset" }, change("document", "a")]);
  assert.deepEqual(ids, ["4", "5"]);

  await clock.advance(40_000);
  server.last.end();
  await settle();
  assert.equal(server.connections.length, 1);
  await clock.advance(2_000);
  assert.equal(server.connections.length, 2);
  assert.equal(server.last.lastId, "5");
  server.last.send(`${event("document", "b")}event: ready\nid: 6\ndata: {}\n\n`);
  await settle();
  assert.deepEqual(news.slice(2), [change("document", "b"), { kind: "ready" }]);
  server.last.send("event: reset\ndata: {}\n\n");
  await settle();
  assert.deepEqual(news.at(-1), { kind: "reset" });
  stop.abort();
  assert.equal(await ended, null);
  assert.equal(server.last.signal.aborted, true);
});

test("a stream that is silent for 45 s is dead, and comments keep it alive", async () => {
  const { clock, server } = await begin();
  for (let turn = 0; turn < 5; turn += 1) {
    await clock.advance(40_000);
    server.last.send(":\n\n");
    await settle();
  }
  assert.equal(server.connections.length, 1);
  await clock.advance(45_000);
  assert.equal(server.connections[0].signal.aborted, true);
  await clock.advance(1_000);
  assert.equal(server.connections.length, 2);
});

test("failures back off from 1 s to 30 s", async () => {
  const { clock, server } = await begin({ answers: Array.from({ length: 8 }, () => new TypeError("network")) });
  const times = [];
  for (let ms = 0; ms < 150_000; ms += 1_000) {
    const before = server.connections.length;
    await clock.advance(1_000);
    if (server.connections.length > before) times.push((ms + 1_000) / 1_000);
  }
  assert.deepEqual(times, [1, 3, 7, 15, 31, 61, 91, 121]);
  const random = (value) => ({ random: () => value });
  assert.equal(backoffMs(1, 2_000, random(0.999)) < 1_500, true);
  assert.equal(backoffMs(50, 2_000, random(0.999)), 30_000);
  assert.equal(backoffMs(0, 2_000, random(0)), 2_000);
});

test("a stream that ends at once again and again backs off, too", async () => {
  const { clock, server } = await begin();
  const ended = new Set();
  for (let turn = 0; turn < 60; turn += 1) {
    if (!ended.has(server.last)) {
      server.last.send("event: ready\nid: 1\ndata: {}\n\n");
      server.last.end();
    }
    ended.add(server.last);
    await clock.advance(1_000);
  }
  assert.equal(server.connections.length, 6);
});

test("Retry-After is obeyed", async () => {
  const busy = (status) => new Response("", { status, headers: { "retry-after": "120" } });
  const { clock, server } = await begin({ answers: [busy(429), busy(503)] });
  await clock.advance(119_000);
  assert.equal(server.connections.length, 1);
  await clock.advance(1_000);
  assert.equal(server.connections.length, 2);
  await clock.advance(119_000);
  assert.equal(server.connections.length, 2);
  await clock.advance(1_000);
  assert.equal(server.connections.length, 3);
  assert.equal(retryAfterMs("Mon, 30 Nov 2026 00:00:10 GMT", Date.parse("2026-11-30T00:00:00Z")), 10_000);
  assert.equal(retryAfterMs("soon"), null);
  assert.equal(retryAfterMs(null), null);
  assert.equal(retryAfterMs("9999999"), 300_000);
});

test("401, 403 and 404 end it for good", async () => {
  for (const status of [401, 403, 404]) {
    const { server, ended } = await begin({ answers: [new Response("", { status })] });
    assert.equal(await ended, status);
    assert.equal(server.connections.length, 1);
  }
});

test("an id that the server refuses is forgotten", async () => {
  const { server, news } = await begin({ lastId: "x", answers: [new Response("", { status: 400 })] });
  assert.deepEqual(server.connections.map(({ lastId }) => lastId), ["x", null]);
  server.last.send("event: ready\ndata: {}\n\n");
  await settle();
  assert.deepEqual(news, [{ kind: "reset" }]);
});

test("a page of a proxy is no stream, and broken data is no event", async () => {
  const page = new Response("<html>", { headers: { "content-type": "text/html" } });
  const { clock, server, news } = await begin({ lastId: "3", answers: [page] });
  await clock.advance(1_000);
  assert.equal(server.connections.length, 2);
  server.last.send("event: document\ndata: {\n\nevent: document\ndata: 1\n\nevent: document\ndata: null\n\n");
  server.last.send(event("call", "c"));
  await settle();
  assert.deepEqual(news, [change("call", "c")]);
});
