// Markdown as it is previewed, the pages of files, and the words of recordings.

import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const { checkedAddress, drawnRange, indexAt, isBeyond, mark, nextScale, ownScript, partAt, readMarkdown, segmentAt } = await load(
  "documents/markdown.ts", "documents/pages.ts", "documents/segments.ts", "worker.ts",
);

/** Nodes as short text: `kind(children)`, links with their address. */
const short = (nodes) =>
  nodes.map((node) => (typeof node === "string" ? node : `${node.kind}${node.level ?? ""}${node.href ? `<${node.href}>` : ""}(${short(node.children)})`)).join("");
const read = (source) => short(readMarkdown(source));

test("Markdown becomes what it means", () => {
  assert.equal(read("# Opening *hours*\n\nWe **open** at `nine`."), "heading1(Opening emphasis(hours))paragraph(We strong(open) at code(nine).)");
  assert.equal(read("Title\n====="), "heading1(Title\n)");
  assert.equal(read("- a\n- b"), "list(item(paragraph(a))item(paragraph(b)))");
  const [list] = readMarkdown("7. a\n8. b");
  assert.deepEqual([list.isOrdered, list.start], [true, 7]);
  assert.equal(read("- [x] done\n- [ ] open"), "list(item(paragraph(☑ done))item(paragraph(☐ open)))");
  assert.equal(read("> said\n> so"), "quote(paragraph(said\n so))");
  assert.equal(read("| a | b |\n|---|---|\n| 1 | ~~2~~ |"), "table(head(item(a)item(b))row(item(1)item(deleted(2))))");
  assert.equal(read("```js\nlet a = '<b>';\n\nb\n```"), "code-block(let a = '<b>';\n\nb)");
  assert.equal(read("`` a`b ``"), "paragraph(code(a`b))");
  assert.equal(read("a  \nb\n\n---"), "paragraph(abreak()b)rule()");
  assert.equal(read("\\*no\\* &amp; &lt;b&gt; &#x41; &unknown;"), "paragraph(*no* & <b> A &unknown;)");
  assert.equal(read(""), "");
});

test("links of Markdown have checked schemes", () => {
  assert.equal(read("[a *b*](https://example.com/x)"), "paragraph(link<https://example.com/x>(a emphasis(b)))");
  assert.equal(read("<https://example.com> and https://example.org"), "paragraph(link<https://example.com/>(https://example.com) and link<https://example.org/>(https://example.org))");
  assert.equal(read("[a][x]\n\n[X]: <https://example.com>"), "paragraph(link<https://example.com/>(a))");
  assert.equal(read("<me@example.com>"), "paragraph(link<mailto:me@example.com>(me@example.com))");
  // Marks of time of recordings are no links.
  assert.equal(read("[00:12] We open"), "paragraph([00:12] We open)");
  for (const address of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//example.com", "/api/x", "blob:x"]) {
    assert.equal(checkedAddress(address), null, address);
    assert.doesNotMatch(read(`[a](${address})`), /link</, address);
    assert.doesNotMatch(read(`<${address}>`), /link</, address);
    assert.doesNotMatch(read(`[a]\n\n[a]: ${address}`), /link</, address);
  }
  for (const hidden of ["java\tscript:alert(1)", "&#106;avascript:alert(1)", "javascript&colon;alert(1)", "\\javascript:alert(1)", "\u0001javascript:alert(1)"]) {
    assert.doesNotMatch(read(`[a](<${hidden}>)`), /link<(?!https?:)/, hidden);
  }
});

test("HTML and pictures of Markdown are text", () => {
  const hostile = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a <b onclick=alert(1)>b</b>", "<svg><a href='javascript:alert(1)'>", "<iframe srcdoc='x'>",
    "![<img src=x onerror=alert(1)>](https://example.com/a.png)", "<!-- -->\n<style>*{}</style>", "[<img src=x>](https://example.com)",
  ];
  const kinds = new Set();
  const collect = (nodes) => nodes.forEach((node) => typeof node !== "string" && (kinds.add(node.kind), collect(node.children)));
  for (const source of hostile) collect(readMarkdown(source));
  assert.deepEqual([...kinds].sort(), ["html", "image", "link", "paragraph"]);
  assert.equal(read("![a cat](https://example.com/cat.png)"), "paragraph(image(a cat))");
  assert.equal(read("<script>alert(1)</script>"), "html(<script>alert(1)</script>)");
});

test("a preview has bounds", () => {
  const text = Array.from({ length: 4_000 }, (_, number) => `Paragraph ${number} of a long text.\n\n`).join("");
  const parts = [];
  for (let at = 0; at < text.length; ) {
    const part = partAt(text, at);
    assert.equal(part.index, parts.length);
    assert.ok(part.text.length <= 32_002 && part.text.startsWith("Paragraph"));
    parts.push(part.text);
    at += part.text.length;
  }
  assert.equal(parts.join(""), text);
  assert.equal(partAt(text, text.length).index, parts.length - 1);
  assert.deepEqual(partAt("", 0), { text: "", index: 0, count: 1 });
  const line = "😀".repeat(40_000);
  assert.ok(!/^[\uDC00-\uDFFF]/.test(partAt(line.slice(1), 30_001).text));
  for (const unit of ["[", "> ", "_a*", "*a ", "![", "[a](", "- ", "`a``", "<a ", "|a"]) {
    const begin = performance.now();
    readMarkdown(unit.repeat(30_000 / unit.length));
    assert.ok(performance.now() - begin < 20_000, unit);
  }
});

test("pages in sight are drawn, with a bound", () => {
  const pages = Array.from({ length: 1_000 }, (_, place) => ({ offsetTop: place * 110, offsetHeight: 100 }));
  assert.deepEqual([0, 99, 100, 105, 110, 109_999, 1e9].map((top) => indexAt(pages, top)), [0, 0, 1, 1, 1, 999, 999]);
  assert.deepEqual(drawnRange(pages, 0, 150), [0, 2]);
  assert.deepEqual(drawnRange(pages, 1_100, 200), [9, 12]);
  assert.deepEqual(drawnRange(pages, 0, 100_000), [0, 7]);
  assert.deepEqual(drawnRange(pages.slice(0, 1), 0, 100), [0, 0]);
  assert.deepEqual([nextScale(1, 1), nextScale(1, -1), nextScale(0.9, 1), nextScale(4, 1), nextScale(0.25, -1), nextScale(0.1, -1)], [1.25, 0.75, 1, 4, 0.25, 0.1]);
});

test("words of a recording are found by the time", () => {
  const segments = [[1_000, 2_500], [2_500, 4_000], [6_000, 7_000]].map(([begin_ms, end_ms]) => ({ begin_ms, end_ms, text: "words" }));
  const found = [0, 1_000, 2_499, 2_500, 4_000, 6_500, 7_000].map((ms) => segmentAt(segments, ms));
  assert.deepEqual(found, [-1, 0, 0, 1, -1, 2, -1]);
  assert.equal(segmentAt([], 0), -1);
  const beyond = (next, ms) => isBeyond({ entries: segments, next }, ms);
  const end = segments.at(-1).end_ms;
  assert.deepEqual([beyond("more", end - 1), beyond("more", end), beyond(null, end), isBeyond(undefined, 0)], [false, true, false, false]);
  assert.deepEqual([0, 59_999, 61_000, 3_725_000].map(mark), ["00:00", "00:59", "01:01", "1:02:05"]);
});

test("workers are scripts of the console", () => {
  assert.equal(ownScript("/console/assets/pdf-worker-0A1B2C3D.js"), "/console/assets/pdf-worker-0A1B2C3D.js");
  for (const url of ["https://example.com/a.js", "//example.com/console/assets/a.js", "/console/assets/../a.js", "/console/assets/a.js?x", "data:text/javascript,1", "blob:x", "/api/x.js"]) {
    assert.throws(() => ownScript(url), TypeError, url);
  }
});
