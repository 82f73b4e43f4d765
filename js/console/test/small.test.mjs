import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeBrowser, FakeClock, settle } from "./fakes.mjs";

test("a sign-in link is taken off the address, and only 401 uses it up", async () => {
  const { Problem, linkFailure, takeToken, tokenOf } = await load("sign-in-link.ts", "problem.ts");
  for (const [hash, token] of [["#sign-in=abc", "abc"], ["#sign-in=", null], ["#content", null], ["", null]]) assert.equal(tokenOf(hash), token);
  const calls = [];
  const history = { state: { x: 1 }, replaceState: (...call) => calls.push(call) };
  assert.equal(takeToken({ location: { hash: "#sign-in=abc", pathname: "/console/p/acme", search: "?q=1" }, history }), "abc");
  assert.deepEqual(calls, [[{ x: 1 }, "", "/console/p/acme?q=1"]]);
  assert.equal(takeToken({ location: { hash: "#content", pathname: "/console/", search: "" }, history }), null);
  assert.equal(calls.length, 1);
  assert.equal(linkFailure(new Problem(401, "x", "y")).isUsedUp, true);
  for (const status of [0, 400, 403, 429, 500, 503]) {
    assert.deepEqual(linkFailure(new Problem(status, "x", "why")), { message: "why", isUsedUp: false });
  }
});

test("paths match by their decoded parts, and malformed ones do not throw", async () => {
  const { below, fill, match } = await load("path.ts");
  assert.deepEqual(match("/p/:partner/keys", "/p/acme/keys"), { partner: "acme" });
  assert.deepEqual(match("/p/:partner/keys", "/p/a%2Fb/keys"), { partner: "a/b" });
  assert.deepEqual(match("/p/:partner/keys", "/p/%E0%A4%A/keys"), { partner: "%E0%A4%A" });
  assert.deepEqual(match("/p/:partner/:rest*", "/p/acme/keys/%C3%A4"), { partner: "acme", rest: "keys/ä" });
  assert.deepEqual(match("/", "/"), {});
  for (const other of ["/p//keys", "/p/acme", "/p/acme/keys/1", "/q/acme/keys", "/"]) assert.equal(match("/p/:partner/keys", other), null, other);
  assert.equal(fill("/p/:partner/keys", { partner: "a/b c" }), "/p/a%2Fb%20c/keys");
  assert.equal(below("/console", "/console"), "/");
  assert.equal(below("/console", "/console/"), "/");
  assert.equal(below("/console", "/console/p/%/keys/"), "/p/%/keys");
});

test("a storage that is blocked remembers nothing and does not throw", async () => {
  const { forgiving } = await load("storage.ts");
  const blocked = forgiving(() => {
    throw new DOMException("denied", "SecurityError");
  });
  blocked.set("a", "b");
  blocked.remove("a");
  assert.equal(blocked.get("a"), null);
  const full = forgiving(() => ({ getItem: () => "b", setItem: () => { throw new DOMException("full", "QuotaExceededError"); } }));
  full.set("a", "c");
  assert.equal(full.get("a"), "b");
});

test("a text that cannot be copied is selected", async () => {
  const { copy, copyKeys } = await load("ui/clipboard.ts");
  const done = [];
  const field = { focus: () => done.push("focus"), select: () => done.push("select") };
  assert.equal(await copy("x", field, { writeText: async (text) => done.push(text) }), true);
  assert.deepEqual(done, ["x"]);
  assert.equal(await copy("x", field, { writeText: () => Promise.reject(new Error("denied")) }), false);
  assert.deepEqual(done, ["x", "focus", "select"]);
  // Pages without TLS have no clipboard.
  assert.equal(await copy("x", field, undefined), false);
  assert.equal(await copy("x", null, undefined), false);
  assert.deepEqual([copyKeys("MacIntel"), copyKeys("Linux x86_64")], ["⌘C", "Ctrl+C"]);
});

test("the palette finds by a few letters", async () => {
  const { fit } = await load("ui/fit.ts");
  assert.equal(fit("ks", "Keys"), 2);
  assert.equal(fit("", "Keys"), 0);
  assert.equal(fit("sk", "Keys"), null);
  assert.ok(fit("go", "Go to") < fit("go", "Sign out"), "an early match comes first");
});

test("sizes, durations and times", async () => {
  const { formatBytes, formatDuration, formatRelative, formatUsd } = await load("ui/format.ts");
  assert.deepEqual([0, 59.6, 65, 3_605, -1].map(formatDuration), ["0:00", "1:00", "1:05", "1:00:05", "0:00"]);
  const now = new Date("2026-11-30T12:00:00Z");
  assert.equal(formatRelative(new Date("2026-11-30T11:55:00Z"), now), new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(-5, "minute"));
  assert.equal(formatRelative(now, now), new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(0, "second"));
  assert.match(formatBytes(0), /^0/);
  assert.match(formatBytes(1_500_000), /1[.,]5/);
  assert.match(formatUsd("0.00012345"), /0[.,]00012345/);
});

test("what would be lost is listed, and the page is left with a question only while there is something", async () => {
  const listeners = new Set();
  globalThis.addEventListener = (type, listener) => type === "beforeunload" && listeners.add(listener);
  globalThis.removeEventListener = (_, listener) => listeners.delete(listener);
  const { allowLeaving, listed, mayBeLost, signal, unfinished } = await load("unfinished.ts", "../node_modules/@preact/signals/dist/signals.mjs");
  assert.deepEqual([unfinished.value, listeners.size], [[], 0]);
  const [texts, uploads] = [signal(null), signal("3 uploads")];
  mayBeLost(texts);
  mayBeLost(uploads);
  assert.deepEqual([listed(unfinished.value), listeners.size], ["3 uploads", 1]);
  let isAsked = false;
  for (const listener of listeners) listener({ preventDefault: () => (isAsked = true) });
  assert.equal(isAsked, true);
  texts.value = "1 unsaved text";
  assert.equal(listed(unfinished.value), "1 unsaved text and 3 uploads");
  uploads.value = texts.value = null;
  assert.equal(listeners.size, 0);
  uploads.value = "1 upload";
  allowLeaving();
  assert.equal(listeners.size, 0);
  uploads.value = null;
  uploads.value = "1 upload";
  assert.equal(listeners.size, 0);
});

test("other tabs tell what they would lose", async () => {
  const { Others } = await load("others.ts");
  const { join } = new FakeBrowser();
  const clock = new FakeClock();
  const tab = (...words) => new Others({ join, own: () => words, clock });
  const [first, second] = [tab("1 upload"), tab("2 unsaved texts")];
  tab();
  const ask = async (others) => {
    const answered = others.ask();
    await clock.advance(1_000);
    return answered;
  };
  assert.deepEqual(await ask(first), ["2 unsaved texts"]);
  assert.deepEqual(await ask(second), ["1 upload"]);
  assert.deepEqual(await ask(first), ["2 unsaved texts"]);
  assert.deepEqual(await new Others({ join: () => null, own: () => [], clock }).ask(), []);
});

test("a value is sent after the one before, and only the last of those that wait", async () => {
  const { Latest } = await load("latest.ts");
  const running = [];
  const latest = new Latest((value, isLast) => new Promise((resolve) => running.push({ value, isLast, resolve })));
  for (const value of [1, 2, 3]) latest.set(value);
  assert.deepEqual(running.map(({ value }) => value), [1], "one at a time");
  assert.equal(running[0].isLast(), false);
  running[0].resolve();
  await settle();
  assert.deepEqual(running.map(({ value }) => value), [1, 3]);
  assert.equal(running[1].isLast(), true);
  running[1].resolve();
  await settle();
  latest.set(4);
  assert.equal(running[2].value, 4);
});

test("settings of partners that differ are all named", async () => {
  const { changesOf, differencesOf, readSettings } = await load("partners.ts");
  const none = readSettings(new FormData());
  assert.deepEqual(differencesOf(none), []);
  const fields = new FormData();
  for (const [name, value] of [["transcription_enabled", "off"], ["vectorstore_sync_enabled", "on"], ["vectorstore_sync_requests_per_minute", "60"],
    ["requests_per_minute", "1"], ["storage_bytes", "0"], ["allowed_models", "a\n\n b \na"]]) fields.set(`settings.${name}`, value);
  const all = readSettings(fields);
  assert.deepEqual(all.allowed_models, ["a", "b"]);
  const words = differencesOf(all);
  assert.equal(words.length, Object.keys(all).length);
  assert.deepEqual(words.slice(0, 4), ["no transcription", "vector store", "60 requests a minute to the vector store", "1 request a minute"]);
  assert.match(words[4], /^storage of 0/);
  assert.equal(words[5], "2 allowed models");
  assert.deepEqual(changesOf(all, { ...all, storage_bytes: null }), { storage_bytes: null });
  assert.deepEqual(changesOf({}, none), {});
});

test("names of languages, of keys, and lists that are typed", async () => {
  const { languageName, linesOf, nameOf } = await load("ui/format.ts", "lines.ts", "calls/names.ts");
  assert.deepEqual([languageName("de"), languageName("not a tag")], ["German", "not a tag"]);
  assert.deepEqual(linesOf(" b \n\na\nb\n"), ["b", "a"]);
  const id = "01890c5e-0000-7000-8000-00000000abcd";
  assert.deepEqual([nameOf({ name: "Shop", id }), nameOf({ name: "", id })], ["Shop", "0000abcd"]);
});

test("rows that are not in the page have numbers, and an end that is unknown is said to be", async () => {
  const { firstRows, rowCount } = await load("ui/row-numbers.ts");
  // A row of titles, and groups of which entries may have two rows.
  assert.deepEqual(firstRows([50, 73, 4], 1), [2, 52, 125]);
  assert.equal(rowCount([50, 73, 4], 1, 0, false), 128);
  assert.equal(rowCount([50, 73, 4], 1, 1, false), 129);
  assert.equal(rowCount([50, 73, 4], 1, 1, true), -1);
});

test("the last days begin at midnight of the reader, across months and years", async () => {
  const { daysQuery, lastDays } = await load("days.ts");
  assert.deepEqual(lastDays(7, new Date(2026, 2, 3, 23, 59)), { from: "2026-02-25", to: null });
  assert.deepEqual(lastDays(7, new Date(2026, 0, 6)), { from: "2025-12-31", to: null });
  assert.deepEqual(daysQuery(lastDays(1, new Date(2026, 0, 6, 12))), { created_from: new Date(2026, 0, 6).toISOString() });
});

test("short times have a unit and a decimal", async () => {
  const { formatSeconds } = await load("ui/format.ts");
  const expected = new Intl.NumberFormat(undefined, { style: "unit", unit: "second", minimumFractionDigits: 1, maximumFractionDigits: 1 });
  assert.equal(formatSeconds(2.46), expected.format(2.46));
});
