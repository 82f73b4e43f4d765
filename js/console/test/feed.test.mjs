import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeBrowser, FakeClock, FakeServer, settle } from "./fakes.mjs";

const { Feed } = await load("events/feed.ts");

function world({ hasLocks = true } = {}) {
  const browser = new FakeBrowser();
  const clock = new FakeClock();
  const server = new FakeServer();
  const open = (lastId = null) => {
    const tab = { news: [], live: [], isVisible: true, changed: () => {} };
    const ports = {
      open: server.open,
      join: browser.join,
      locks: hasLocks ? browser.locks : undefined,
      isVisible: () => tab.isVisible,
      onVisibility: (changed) => {
        tab.changed = changed;
        return () => (tab.changed = () => {});
      },
      clock,
    };
    tab.feed = new Feed("colloquy-events:acme", { onEvent: (news) => tab.news.push(news), onLive: (isLive) => tab.live.push(isLive) }, ports, lastId);
    tab.show = (isVisible) => {
      tab.isVisible = isVisible;
      tab.changed();
    };
    return tab;
  };
  return { browser, clock, server, open };
}

const event = (id) => `event: document\ndata: {"id":"${id}","base":null,"deleted":true}\n\n`;
const change = (id) => ({ kind: "document", id, base: null, isDeleted: true });

test("one tab reads for all, and the next takes over from the last id that was shared", async () => {
  const { server, open } = world();
  const tabs = [open(), open(), open()];
  await settle();
  assert.equal(server.connections.length, 1);
  server.last.send(`event: ready\nid: 1\ndata: {}\n\n${event("a")}id: 2\n\n${event("b")}`);
  await settle();
  for (const { news } of tabs) assert.deepEqual(news, [{ kind: "reset" }, change("a"), change("b")]);

  tabs[0].feed.close();
  await settle();
  assert.equal(server.connections[0].signal.aborted, true);
  assert.deepEqual(server.connections.map(({ lastId }) => lastId), [null, "2"]);
  server.last.send(`${event("b")}event: ready\nid: 3\ndata: {}\n\n`);
  await settle();
  assert.equal(tabs[0].news.length, 3);
  for (const { news } of tabs.slice(1)) assert.deepEqual(news.slice(3), [change("b"), { kind: "ready" }]);
});

test("a tab that opens later learns the last id", async () => {
  const { server, open } = world();
  const first = open();
  await settle();
  server.last.send("event: ready\nid: 7\ndata: {}\n\n");
  await settle();
  const second = open();
  await settle();
  assert.equal(second.feed.lastId, "7");
  first.feed.close();
  await settle();
  assert.equal(server.last.lastId, "7");
  assert.deepEqual(second.news, []);
});

test("all tabs learn that the stream is lost, and that it is there again", async () => {
  const { clock, server, open } = world();
  const tabs = [open(), open()];
  await settle();
  server.last.send("event: ready\nid: 1\ndata: {}\n\n");
  await settle();
  for (const { live } of tabs) assert.deepEqual(live, []);
  server.answers.push(new Error("unreachable"), new Response("", { status: 502 }));
  server.last.end();
  await settle();
  for (const { live } of tabs) assert.deepEqual(live, [false]);
  const later = open();
  await settle();
  assert.deepEqual(later.live, [false]);
  await clock.advance(10_000);
  for (const { live } of [...tabs, later]) assert.deepEqual(live, [false, true]);
  server.answers.push(new Response("", { status: 403 }));
  server.last.end();
  await clock.advance(10_000);
  for (const { live } of [...tabs, later]) assert.deepEqual(live, [false, true, false]);
});

test("a tab that could not listen reads everything again as soon as it hears which id the others have", async () => {
  const { browser, clock, server, open } = world();
  const [first, second] = [open(), open()];
  await settle();
  server.last.send("event: ready\nid: 1\ndata: {}\n\n");
  await settle();
  const [, member] = browser.members;
  const alive = async () => {
    server.last.send(":\n\n");
    await clock.advance(20_000);
  };
  await alive();
  assert.deepEqual(second.news, [{ kind: "reset" }]);
  browser.members.delete(member);
  server.last.send(`${event("a")}id: 2\n\n`);
  await alive();
  browser.members.add(member);
  await alive();
  assert.deepEqual(second.news, [{ kind: "reset" }, { kind: "reset" }]);
  assert.deepEqual(first.news, [{ kind: "reset" }, change("a")]);
  await alive();
  assert.equal(second.news.length, 2);

  // One that comes back with its last id, as from the back-forward cache, does not wait for that.
  second.feed.close();
  server.last.send(`${event("b")}id: 3\n\n`);
  await settle();
  const back = open("2");
  await settle();
  assert.deepEqual(back.news, [{ kind: "reset" }]);
  const upToDate = open("3");
  await settle();
  assert.deepEqual(upToDate.news, []);
  assert.equal(server.connections.length, 1);
});

test("a tab that takes over without an id reads everything again", async () => {
  const { server, open } = world();
  const [first, second] = [open(), open()];
  await settle();
  first.feed.close();
  await settle();
  assert.equal(server.last.lastId, null);
  server.last.send("event: ready\nid: 7\ndata: {}\n\n");
  await settle();
  assert.deepEqual(second.news, [{ kind: "reset" }]);
});

test("a refusal ends it in all tabs, and nobody asks again", async () => {
  const { clock, server, open } = world();
  server.answers.push(new Response("", { status: 403 }));
  const tabs = [open(), open()];
  await clock.advance(600_000);
  assert.equal(server.connections.length, 1);
  assert.deepEqual(tabs.map(({ feed }) => feed.isRefused), [true, true]);
});

test("a visible tab takes over from one that is suspended, which waits for its next turn", async () => {
  const { browser, clock, server, open } = world();
  const [first, second] = [open(), open()];
  await settle();
  server.last.send("event: ready\nid: 1\ndata: {}\n\n");
  await clock.advance(40_000);
  assert.equal(server.connections.length, 1);
  // Suspended: nothing of it is heard any more.
  const [member] = browser.members;
  browser.members.delete(member);
  second.isVisible = false;
  const keepAlive = async (ms) => {
    for (let past = 0; past < ms; past += 20_000) {
      server.last.send(":\n\n");
      await clock.advance(20_000);
    }
  };
  await keepAlive(300_000);
  assert.equal(server.connections.length, 1);
  second.isVisible = true;
  await keepAlive(40_000);
  assert.equal(server.connections.length, 2);
  assert.equal(server.connections[0].signal.aborted, true);
  assert.equal(server.last.lastId, "1");
  browser.members.add(member);
  await keepAlive(300_000);
  assert.equal(server.connections.length, 2);
  server.last.send(`${event("a")}id: 2\n\n`);
  await settle();
  for (const { news } of [first, second]) assert.deepEqual(news.at(-1), change("a"));
  second.feed.close();
  await settle();
  assert.equal(server.connections.length, 3);
  assert.equal(server.last.lastId, "2");
});

test("a tab that opens while the reading one is suspended takes over soon", async () => {
  const { browser, clock, server, open } = world();
  const suspended = open();
  await settle();
  server.last.send("event: ready\nid: 1\ndata: {}\n\n");
  await settle();
  browser.members.clear();
  suspended.isVisible = false;
  const later = open();
  await clock.advance(20_000);
  assert.equal(server.connections.length, 2);
  server.last.send("event: ready\nid: 2\ndata: {}\n\n");
  await settle();
  assert.deepEqual(later.news, [{ kind: "reset" }]);
  // One whose reading tab answers does not take over.
  open();
  for (let past = 0; past < 300_000; past += 20_000) {
    server.last.send(":\n\n");
    await clock.advance(20_000);
  }
  assert.equal(server.connections.length, 2);
});

test("locks that are refused are asked for seldom", async () => {
  const { browser, clock, open } = world();
  let requests = 0;
  browser.locks.request = () => {
    requests += 1;
    return Promise.reject(new DOMException("denied", "SecurityError"));
  };
  const tab = open();
  await clock.advance(60_000);
  assert.ok(requests >= 2 && requests <= 10, String(requests));
  tab.feed.close();
});

test("without locks, each tab reads while it is visible", async () => {
  const { server, open } = world({ hasLocks: false });
  const [first, second] = [open(), open()];
  await settle();
  assert.equal(server.connections.length, 2);
  server.connections[0].send("event: ready\nid: 3\ndata: {}\n\n");
  await settle();
  assert.deepEqual(second.news, []);
  first.show(false);
  await settle();
  assert.equal(server.connections[0].signal.aborted, true);
  first.show(true);
  first.show(true);
  await settle();
  assert.equal(server.connections.length, 3);
  assert.equal(server.last.lastId, "3");
  first.feed.close();
  first.show(false);
  first.show(true);
  await settle();
  assert.equal(server.connections.length, 3);
});

test("a resource is read again after events of its kind, its base and its id", async () => {
  const { isOutdatedBy } = await load("events/after.ts");
  const event = (kind, id, base = null) => ({ kind, id, base, isDeleted: false });
  const calls = { partner: "acme", kinds: ["call"] };
  for (const [sent, after, hasFailed, expected] of [
    [event("call", "1"), calls, false, true],
    [event("delivery", "1"), calls, false, false],
    [event("call", "1"), { ...calls, id: "1" }, false, true],
    [event("call", "2"), { ...calls, id: "1" }, false, false],
    [event("document", "1", "b"), { partner: "acme", kinds: ["document"], base: "a" }, false, false],
    [event("document", "1", "a"), { partner: "acme", kinds: ["document"], base: "a" }, false, true],
    [event("document", "1"), { partner: "acme", kinds: ["document"], base: "a" }, false, true],
    [event("base", "a", "a"), { partner: "acme", kinds: ["document"], base: "a", id: "1" }, false, true],
    [event("base", "b", "b"), { partner: "acme", kinds: ["base", "document"], base: "a" }, false, false],
    [event("base", "b", "b"), { partner: "acme", kinds: ["base"] }, false, true],
    [{ kind: "reset" }, { ...calls, id: "1" }, false, true],
    [{ kind: "ready" }, calls, false, false],
    [{ kind: "ready" }, calls, true, true],
  ]) {
    assert.equal(isOutdatedBy(sent, after, hasFailed), expected, JSON.stringify([sent, after]));
  }
});
