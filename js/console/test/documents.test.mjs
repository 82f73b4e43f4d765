import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

test("sorting and filters of documents are read from the address, without what means nothing", async () => {
  const { documentQuery, readDocumentFilter, sortChange } = await load("documents/filter.ts");
  const read = (text) => readDocumentFilter(new URLSearchParams(text));
  assert.deepEqual(read(""), { sort: "name", order: "asc", q: "", states: [] });
  assert.deepEqual(read("doc-sort=size&doc-q=%20a%20b%20&doc-state=failed,nonsense,blocked"), { sort: "size", order: "desc", q: "a b", states: ["blocked", "failed"] });
  assert.deepEqual(read("doc-sort=secret&doc-order=sideways"), read(""));
  assert.equal([...read(`doc-q=${"😀".repeat(300)}`).q].length, 200);
  assert.deepEqual(documentQuery(read(""), null), { sort: "name", order: "asc" });
  assert.deepEqual(documentQuery(read("doc-sort=price&doc-order=asc&doc-q=x&doc-state=ready,failed"), "a/b"), {
    sort: "price", order: "asc", q: "x", state: "ready,failed", folder: "a/b",
  });
  assert.deepEqual(sortChange(read(""), "name"), { "doc-sort": null, "doc-order": "desc" });
  assert.deepEqual(sortChange(read(""), "size"), { "doc-sort": "size", "doc-order": null });
  assert.deepEqual(sortChange(read("doc-sort=size"), "size"), { "doc-sort": "size", "doc-order": "asc" });
  assert.deepEqual(sortChange(read("doc-sort=size&doc-order=asc"), "size"), { "doc-sort": "size", "doc-order": null });
});

test("the address holds a selection that is short", async () => {
  const { readSelected, selectedChange } = await load("documents/filter.ts");
  assert.deepEqual([...readSelected(new URLSearchParams("doc-selected=a,,b"))], ["a", "b"]);
  assert.deepEqual(selectedChange(new Set(["a", "b"])), { "doc-selected": "a,b" });
  const many = new Set(Array.from({ length: 101 }, (_, place) => String(place)));
  assert.deepEqual(selectedChange(many), { "doc-selected": null });
});

test("only raster images and recordings become blobs with a type of their own", async () => {
  const { showingOf } = await load("documents/media.ts");
  const kinds = (...types) => types.map((type) => showingOf(type).kind);
  assert.deepEqual(kinds("image/png", "IMAGE/JPEG; q=1", "image/gif", "image/webp"), ["image", "image", "image", "image"]);
  assert.deepEqual(kinds("audio/mpeg", "audio/wav", "audio/mp4", "video/mp4"), ["audio", "audio", "audio", "video"]);
  assert.deepEqual(kinds("text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "text/javascript"), Array(5).fill("text"));
  assert.deepEqual(kinds("application/pdf", "Application/PDF; x=y"), ["pdf", "pdf"]);
  assert.deepEqual(kinds("image/tiff", "application/msword", "", null, undefined), Array(5).fill("download"));
  for (const type of ["image/png", "video/quicktime"]) assert.match(showingOf(type).type, /^(image|video)\/(png|mp4)$/);
});

test("long texts are cut at lines, and never within a character", async () => {
  const { PART_LENGTH, firstParts } = await load("documents/parts.ts");
  assert.deepEqual(firstParts("", 1), { parts: [], rest: 0 });
  assert.deepEqual(firstParts("a\nb", 1), { parts: ["a\nb"], rest: 0 });
  const lines = `${"x".repeat(99)}\n`.repeat(5_000);
  const cut = firstParts(lines, 2);
  assert.ok(cut.parts.every((part) => part.endsWith("\n") && part.length <= PART_LENGTH));
  assert.equal(cut.parts.join("") + lines.slice(-cut.rest), lines);
  for (const shift of ["", "x"]) {
    const text = shift + "😀".repeat(PART_LENGTH);
    const all = firstParts(text, 10).parts;
    assert.equal(all.join(""), text);
    assert.ok(all.every((part) => !/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/.test(part)));
  }
});

test("the differences of texts are shown with what is around them", async () => {
  const { difference } = await load("diff.ts");
  assert.deepEqual(difference("a\n", "a\n"), { kind: "equal" });
  const numbers = Array.from({ length: 20 }, (_, place) => String(place));
  const changed = numbers.with(10, "ten").join("\n");
  const { hunks, added, removed } = difference(numbers.join("\n"), changed);
  assert.deepEqual([added, removed], [1, 1]);
  assert.deepEqual(hunks[0], { skipped: 7 });
  assert.deepEqual(hunks[1].lines.map(({ kind, text }) => `${kind[0]} ${text}`), ["s 7", "s 8", "s 9", "r 10", "a ten", "s 11", "s 12", "s 13"]);
  assert.deepEqual(hunks[2], { skipped: 6 });
  assert.deepEqual(difference("", "new\n").hunks, [{ lines: [{ kind: "added", text: "new" }] }]);
});

test("texts that are too long or too different are not compared", async () => {
  const { BOUNDS, difference } = await load("diff.ts");
  const bounds = (own) => ({ ...BOUNDS, ...own });
  assert.deepEqual(difference("a".repeat(60), "b".repeat(60), bounds({ characters: 100 })), { kind: "too-large" });
  assert.deepEqual(difference("a\n".repeat(60), "b", bounds({ lines: 50 })), { kind: "too-large" });
  assert.deepEqual(difference("a\nb\nc\nd", "e\nf\ng\nh", bounds({ edits: 3 })), { kind: "too-large" });
  const [before, after] = ["x", "y"].map((letter) => Array.from({ length: 24_000 }, (_, place) => letter + place).join("\n"));
  const began = Date.now();
  assert.deepEqual(difference(before, after), { kind: "too-large" });
  assert.ok(Date.now() - began < 10_000, "it takes a bounded time");
});

test("the estimate of a selection is its share of that of all documents that the filter found", async () => {
  const { estimateOf } = await load("documents/estimate.ts");
  const chosen = (id, characters, state = "digitized") => ({ id, name: id, folder: "f", state, text_characters: characters });
  const skipped = [{ reason: "The document has no text to rewrite", documents: 1 }];
  const found = { documents: 3, input_tokens: 2_000, output_tokens: 1_000, cost_usd: "0.5", fits_budget: false, skipped };
  const all = estimateOf(found, [chosen("a", 400), chosen("b", 400), chosen("c", 3_200), chosen("d", null)]);
  assert.deepEqual([all.inputTokens, all.outputTokens, all.cost, all.shareOf, all.fitsBudget], [2_000, 1_000, 0.5, null, false]);
  assert.deepEqual(all.skipped, skipped);
  const some = estimateOf(found, [chosen("a", 400), chosen("d", null), chosen("e", 1, "rewriting")]);
  assert.deepEqual([some.inputTokens, some.outputTokens, some.cost, some.shareOf, some.fitsBudget], [200, 100, 0.05, 3, null]);
  assert.deepEqual(some.rewritable.map(({ id }) => id), ["a"]);
  assert.deepEqual(some.skipped.map(({ documents }) => documents), [2]);
  // As many are chosen as would be rewritten, but not the same ones.
  const others = estimateOf(found, [chosen("a", 400), chosen("b", 400), chosen("e", 800)]);
  assert.deepEqual([others.outputTokens, others.cost, others.shareOf], [400, 0.2, 3]);
  assert.equal(estimateOf({ ...found, cost_usd: null }, [chosen("a", 400)]).cost, null);
  const none = estimateOf({ ...found, documents: 0, skipped: [{ reason: "No model", documents: 9 }] }, [chosen("a", 400)]);
  assert.deepEqual([none.rewritable, none.skipped], [[], [{ reason: "No model", documents: 9 }]]);
});

test("a document that is not embedded says what it waits for", async () => {
  const { notEmbeddedWords } = await load("documents/words.ts");
  assert.equal(notEmbeddedWords("failed", "the document is damaged"), "The document is damaged");
  assert.equal(notEmbeddedWords("blocked", "BUDGET_BLOCKED: no tokens are left"), "Waits for the budget: no tokens are left");
  assert.equal(notEmbeddedWords("embedding", null), "The final content is being embedded.");
  assert.match(notEmbeddedWords("digitized", undefined), /no final content/);
});

test("files of dropped folders keep the name of their folder", async () => {
  const { collect, shallowName } = await load("documents/dropped.ts");
  const file = (name) => ({ isFile: true, isDirectory: false, name, file: (done) => done(new File(["x"], name)) });
  const broken = { ...file("broken.txt"), file: (_, failed) => failed(new Error("gone")) };
  const folder = (name, entries) => {
    const parts = [entries.slice(0, 1), entries.slice(1), []];
    return { isFile: false, isDirectory: true, name, createReader: () => ({ readEntries: (done) => done(parts.shift() ?? []) }) };
  };
  const dropped = [file("a.txt"), folder("one", [file("b.txt"), folder("two", [file("c.txt"), file(".DS_Store")]), broken])];
  const { found, unread, isCut } = await collect(dropped);
  assert.deepEqual(found.map(({ file, name }) => [file.name, name]), [["a.txt", "a.txt"], ["b.txt", "one/b.txt"], ["c.txt", "two/c.txt"]]);
  assert.deepEqual([unread, isCut], [1, false]);
  assert.equal(shallowName(`one/${"x".repeat(200)}`), "", "the server cuts what is too long");
  assert.equal(shallowName("a\u202eb.txt"), "", "the server removes what cannot be seen");
});

test("a drop of too many files says how many are taken, and not how many there are", async () => {
  const { MAX_FILES, collect, leftOutWords } = await load("documents/dropped.ts");
  const folder = (name, count) => {
    const entries = Array.from({ length: count }, (_, place) => ({ isFile: true, isDirectory: false, name: `${place}.txt`, file: (done) => done(new File([], "x")) }));
    return { isFile: false, isDirectory: true, name, createReader: () => ({ readEntries: (done) => done(entries.splice(0, 100)) }) };
  };
  const many = await collect([folder("one", MAX_FILES + 700), folder("two", 1)]);
  assert.deepEqual([many.found.length, many.unread, many.isCut], [MAX_FILES, 0, true]);
  assert.equal(leftOutWords(many), `Only ${MAX_FILES.toLocaleString()} files of the drop are taken: the others are too many, or in too many folders within folders.`);
  const all = await collect([folder("one", MAX_FILES)]);
  assert.deepEqual([all.found.length, leftOutWords(all)], [MAX_FILES, null]);
  assert.equal(leftOutWords({ found: [], unread: 1, isCut: false }), "1 file or folder could not be read.");
});

test("duplicates are counted as far as the API names them", async () => {
  const { duplicateCount, moreDuplicates } = await load("documents/words.ts");
  assert.deepEqual([duplicateCount(7), duplicateCount(99), duplicateCount(100)], ["7", "99", "100 or more"]);
  assert.deepEqual([moreDuplicates(5, 5), moreDuplicates(7, 5), moreDuplicates(100, 5)], [null, "and 2 more", "and at least 95 more"]);
});

test("reasons are sentences for people", async () => {
  const { reasonInWords } = await load("documents/words.ts");
  assert.equal(reasonInWords("BUDGET_BLOCKED: no tokens are left"), "Waits for the budget: no tokens are left");
  assert.equal(reasonInWords("the document is damaged"), "The document is damaged");
});
