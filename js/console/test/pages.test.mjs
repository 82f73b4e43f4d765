import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const { MAX_WHOLE, WHOLE, appended, isStaleIn, listed, outdated, readAll, refreshed } = await load("pages.ts");

/** A server that lists names in order, two a page; a cursor is the name that the page before ended with. */
class Server {
  asked = [];

  constructor(names) {
    this.names = names;
  }

  read = async (cursor) => {
    this.asked.push(cursor ?? "start");
    const after = this.names.filter((name) => cursor === undefined || name > cursor).sort();
    const entries = after.slice(0, 2).map((id) => ({ id, names: this.names.length }));
    return { entries, next: after.length > 2 ? entries[1].id : null };
  };

  /** Returns what was asked since. */
  since() {
    return this.asked.splice(0);
  }
}

async function shown(server, count) {
  let pages = [];
  for (let place = 0; place < count; place += 1) pages = await appended(pages, server.read);
  return pages;
}
const ids = (pages) => listed(pages).entries.map(({ id }) => id).join("");

test("pages are read one after the other, up to the last", async () => {
  const server = new Server([..."abcdefg"]);
  const pages = await shown(server, 2);
  assert.deepEqual([ids(pages), listed(pages).next], ["abcd", "d"]);
  const all = await shown(server, 9);
  assert.deepEqual([ids(all), listed(all).next], ["abcdefg", null]);
  server.since();
  assert.equal((await readAll(server.read)).length, 7);
  assert.deepEqual(server.since(), ["start", "b", "d", "f"]);
});

test("a short list is read again as a whole", async () => {
  const server = new Server([..."abcdefgh"]);
  const pages = await shown(server, MAX_WHOLE);
  server.names.push("bb");
  server.since();
  const again = await refreshed(outdated(pages), { first: 0, last: 1 }, server.read);
  assert.deepEqual(again.map(({ entries }) => entries.map(({ id }) => id)), [["a", "b"], ["bb", "c"], ["d", "e"]]);
  assert.equal(listed(again).next, "e");
  assert.equal(server.since().length, MAX_WHOLE);
});

test("of a long list, the first page and what is in view are read again, and the rest when it comes into view", async () => {
  const server = new Server([..."abcdefghijklmnop"]);
  let pages = await shown(server, 8);
  server.names = server.names.filter((name) => name !== "g");
  server.since();
  const inView = { first: 6, last: 9 };
  pages = await refreshed(outdated(pages), inView, server.read);
  assert.deepEqual(server.since(), ["start", "f", "i"], "the page after the one that lost an entry begins later");
  assert.equal(ids(pages), "abcdefhijklmnop");
  assert.equal(isStaleIn(pages, inView), false);
  assert.equal(isStaleIn(pages, { first: 2, last: 3 }), true);
  pages = await refreshed(pages, WHOLE, server.read);
  assert.equal(isStaleIn(pages, WHOLE), false);
  assert.equal(ids(pages), "abcdefhijklmnop");
});

test("more entries between two pages than fit are found when they come into view", async () => {
  const server = new Server([..."bdfhjlnp"]);
  let pages = await shown(server, 4);
  server.names.push("e", "ea", "eb");
  pages = await refreshed(outdated(pages), { first: 2, last: 3 }, server.read);
  assert.equal(ids(pages), "bdeeajlnp");
  assert.equal(isStaleIn(pages, { first: 4, last: 5 }), true);
  pages = await refreshed(pages, WHOLE, server.read);
  assert.equal(ids(pages).startsWith("bdeeaebfh"), true, ids(pages));
});

test("a list that became shorter ends where it ends", async () => {
  const server = new Server([..."abcdefghij"]);
  let pages = await shown(server, 5);
  server.names = [..."abc"];
  pages = await refreshed(outdated(pages), { first: 0, last: 3 }, server.read);
  assert.deepEqual([ids(pages), listed(pages).next], ["abc", null]);
});

test("an entry that moved is listed once, where it was read last", async () => {
  const entry = (id, size) => ({ id, size });
  const page = (entries, isStale) => ({ entries, next: "x", cursor: undefined, isStale });
  const sizes = (...pages) => listed(pages).entries.map(({ id, size }) => `${id}${size}`);
  const [earlier, later] = [[entry("a", 9), entry("b", 8)], [entry("c", 7), entry("a", 6)]];
  assert.deepEqual(sizes(page(earlier, false), page(later, false)), ["b8", "c7", "a6"]);
  assert.deepEqual(sizes(page(earlier, true), page(later, false)), ["b8", "c7", "a6"]);
  assert.deepEqual(sizes(page(earlier, false), page(later, true)), ["a9", "b8", "c7"]);
  // Chunks and versions have no id.
  assert.equal(listed([page([{ index: 0 }, { index: 1 }], false), page([{ index: 2 }], false)]).entries.length, 3);
});
