import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const { SseParser } = await load("events/sse.ts");
const bytes = (text) => new TextEncoder().encode(text);
const parse = (...pieces) => {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(typeof piece === "string" ? bytes(piece) : piece));
};

const STREAM = "retry: 2000\n\n: hello\n\nevent: document\ndata: {\"id\":\"ä€😀\",\ndata: \"base\":null}\nid: 7\n\nid: 8\n\nevent: ready\ndata: {}\n\n";
const ITEMS = [
  { type: "retry", ms: 2000 },
  { type: "event", event: "document", data: '{"id":"ä€😀",\n"base":null}' },
  { type: "id", id: "7" },
  { type: "id", id: "8" },
  { type: "event", event: "ready", data: "{}" },
];

test("all line ends mean the same", () => {
  for (const end of ["\n", "\r\n", "\r"]) assert.deepEqual(parse(STREAM.replaceAll("\n", end)), ITEMS, JSON.stringify(end));
});

test("a stream means the same wherever it is split, inside of characters and line ends, too", () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const whole = bytes(STREAM.replaceAll("\n", end));
    for (let at = 0; at <= whole.length; at += 1) assert.deepEqual(parse(whole.slice(0, at), whole.slice(at)), ITEMS, `${at}`);
    assert.deepEqual(parse(...[...whole].map((byte) => Uint8Array.of(byte))), ITEMS);
  }
});

test("an id alone is told, and an event without data is none", () => {
  assert.deepEqual(parse("id: 5\n\n"), [{ type: "id", id: "5" }]);
  assert.deepEqual(parse("event: document\nid: 6\n\n"), [{ type: "id", id: "6" }]);
  assert.deepEqual(parse("id\n\n"), [{ type: "id", id: "" }]);
  assert.deepEqual(parse("id: a\0b\n\n"), []);
});

test("an id holds once its block is complete, and the end of the stream completes nothing", () => {
  assert.deepEqual(parse("id: 5\ndata: x\n"), []);
  assert.deepEqual(parse("event: a\ndata: x\n\nid: 5\n"), [{ type: "event", event: "a", data: "x" }]);
});

test("fields are read as the standard says", () => {
  assert.deepEqual(parse("\u{feff}data:x\n\n"), [{ type: "event", event: "message", data: "x" }]);
  assert.deepEqual(parse("data:  x\ndata\n\n"), [{ type: "event", event: "message", data: " x\n" }]);
  assert.deepEqual(parse("retry: 1s\nretry:\nother: 1\n:data: x\n\n"), []);
  assert.deepEqual(parse("event: a\n\ndata: x\n\n"), [{ type: "event", event: "message", data: "x" }]);
});

test("a line has a bound", () => {
  assert.throws(() => parse("data: ", "x".repeat(100_000)), /too long/);
});
