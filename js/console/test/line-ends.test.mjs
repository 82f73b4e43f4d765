// Line ends of edited texts: what nobody changed stays byte for byte.

import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const MIXED = "one\r\ntwo\nthree\rfour\r\n\r\n\nend\r\n";

async function edited(text) {
  const { EditorState, history, keepLineEnds, redo, undo } = await load("ui/line-ends.ts", "../node_modules/@codemirror/state/dist/index.js", "../node_modules/@codemirror/commands/dist/index.js");
  const kept = keepLineEnds(text);
  let state = EditorState.create({ doc: text, extensions: [history(), kept.extension] });
  const dispatch = (transaction) => (state = transaction.state);
  return {
    text: () => kept.textOf(state),
    change: (changes) => dispatch(state.update({ changes })),
    at: (line) => state.doc.line(line),
    undo: () => undo({ state, dispatch }),
    redo: () => redo({ state, dispatch }),
  };
}

test("lines keep their ends", async () => {
  for (const text of [MIXED, "", "\n", "\r\n", "a", "a\r\nb", "a\r\n\n", "\r\r\n"]) assert.equal((await edited(text)).text(), text, JSON.stringify(text));
  const editor = await edited(MIXED);
  editor.change({ from: editor.at(2).from, to: editor.at(2).to, insert: "zwei" });
  assert.equal(editor.text(), "one\r\nzwei\nthree\rfour\r\n\r\n\nend\r\n");
});

test("new lines get the usual end, removed ones take theirs with them, and undoing restores all", async () => {
  const editor = await edited(MIXED);
  editor.change([
    { from: editor.at(1).to, insert: "\nand a half" },
    { from: editor.at(2).from, to: editor.at(3).from },
  ]);
  const changed = "one\r\nand a half\r\nthree\rfour\r\n\r\n\nend\r\n";
  assert.equal(editor.text(), changed);
  editor.undo();
  assert.equal(editor.text(), MIXED);
  editor.redo();
  assert.equal(editor.text(), changed);
});

test("a text without mixed ends gets no others", async () => {
  const windows = await edited("a\r\nb");
  windows.change({ from: 1, insert: "\n" });
  assert.equal(windows.text(), "a\r\n\r\nb");
  const plain = await edited("a");
  plain.change({ from: 1, insert: "\nb" });
  assert.equal(plain.text(), "a\nb");
});
