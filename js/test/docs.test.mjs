// The documentation as a reader copies it: every block of code in the READMEs and the guides is checked against the
// package's types, and the reference is the one that the types have.
//
// `js` is checked as JavaScript, `ts`, `tsx` and the scripts of `html` as strict TypeScript, `css` and `json` by parsing. A comment
// right before a block holds what the reader need not see: <!-- with: const key = ""; -->. The examples in the comments of
// the types are checked too, and with them those of the reference, which is made from there.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { transform } from "esbuild";

import { reference } from "../docs/generate.mjs";

const js = join(dirname(fileURLToPath(import.meta.url)), "..");
const { name: packageName, exports } = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));

/** Languages that are only shown; settings are checked where the server's are tested. */
const SHOWN = new Set(["sh", "text", "toml"]);

const pages = ["../README.md", "../examples/README.md", "README.md", ...readdirSync(join(js, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];
const types = ["src/index.d.ts", "src/react.d.ts"];
const text = (page) => readFileSync(join(js, page), "utf8");

/** Every block of code: where it stands, its language, its code and what comes before it. */
const blocks = pages
  // Its blocks are declarations and examples, made from the types themselves.
  .filter((page) => page !== "docs/api.md")
  .flatMap((page) => blocksOf(page, text(page)))
  .concat(types.flatMap((file) => blocksOf(file, text(file).replace(/^ *\* ?/gm, ""))));

function blocksOf(page, words) {
  return [...words.matchAll(/(?:<!-- with: ([\s\S]*?) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm)].map(
    ({ 1: before = "", 2: language, 3: code, index }) => {
      const line = words.slice(0, index).split("\n").length;
      return { name: `${page}:${line}`, language, before, code };
    },
  );
}

const inLanguage = (...languages) => blocks.filter(({ language }) => languages.includes(language));

/** What the scripts of HTML are, each as a block of JavaScript. */
const scripts = inLanguage("html").flatMap((block) =>
  [...block.code.matchAll(/<script(?: type="module")?>([\s\S]*?)<\/script>/g)].map(([, code]) => ({ ...block, code })),
);

/** The entry of the package that a block needs and that is not there, if any. */
function missing({ before, code }) {
  const imported = [...`${before}${code}`.matchAll(new RegExp(`from "${packageName}(/[^"]+)?"`, "g"))];
  const entries = imported.map(([, entry = ""]) => `.${entry}`);
  if (usesGlobal(code)) entries.push("./global");
  return entries.find((entry) => !(entry in exports));
}

/** Whether a block uses what a plain script tag loads. */
const usesGlobal = (code) => /\bColloquy\./.test(code);

/** Checks blocks with TypeScript, all in one run. */
async function compile(t, given, extension, options) {
  for (const block of given) assert.equal(missing(block), undefined, `${block.name}: the package does not export it`);
  // Inside the package, so that its name leads to its own exports.
  const folder = mkdtempSync(join(js, "test", "docs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = given.map(({ name, language, before, code }) => {
    const file = `${name.replace(/\W+/g, "-")}.${extension ?? language}`;
    const global = usesGlobal(code) ? `import "${packageName}/global";\n` : "";
    writeFileSync(join(folder, file), `${global}${before}\n${code}`);
    return file;
  });
  const compilerOptions = {
    ...options,
    noEmit: true,
    skipLibCheck: true,
    module: "nodenext",
    moduleDetection: "force",
    target: "es2022",
    lib: ["es2023", "dom", "dom.iterable"],
    jsx: "react-jsx",
    types: ["node"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
  const { stdout, failed } = await promisify(execFile)(process.execPath, [tsc, "-p", folder], { cwd: folder }).catch((error) => ({
    ...error,
    failed: true,
  }));
  assert.ok(!failed, `the code in the documentation does not fit the types:\n${stdout}`);
}

test("JavaScript in the documentation fits the types", (t) =>
  compile(t, inLanguage("js"), "js", { allowJs: true, checkJs: true, strict: true, noImplicitAny: false }));

// Whoever uses TypeScript copies the scripts of pages as well.
test("TypeScript and the scripts of pages in the documentation fit the types strictly", (t) =>
  compile(t, [...inLanguage("ts", "tsx"), ...scripts.map((script) => ({ ...script, language: "ts" }))], undefined, { strict: true }));

test("stylesheets and JSON in the documentation parse", async () => {
  for (const { name, code } of inLanguage("css")) {
    const { warnings } = await transform(code, { loader: "css", logLevel: "silent" });
    assert.deepEqual(warnings.map((warning) => warning.text), [], name);
  }
  for (const { name, code } of inLanguage("json")) assert.doesNotThrow(() => JSON.parse(code), name);
});

test("no code in the documentation goes unchecked", () => {
  const checked = inLanguage("js", "ts", "tsx", "html", "css", "json");
  const others = blocks.filter((block) => !checked.includes(block) && !SHOWN.has(block.language));
  assert.deepEqual(others.map(({ name, language }) => `${name} ${language}`), []);
  assert.ok(checked.length > 15);
});

test("links in the documentation lead somewhere", () => {
  for (const page of pages) {
    for (const [, target, anchor] of text(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)) {
      const linked = target ? join(js, dirname(page), target) : join(js, page);
      assert.ok(existsSync(linked), `${page}: ${target}`);
      if (!anchor) continue;
      assert.ok(anchors(readFileSync(linked, "utf8")).has(anchor), `${page}: ${target}#${anchor}`);
    }
  }
});

/** The anchors of a page's headings; those with the same words are numbered, as GitHub does. */
function anchors(page) {
  const found = new Set();
  const counts = new Map();
  for (const [, heading] of page.matchAll(/^#+ (.*)$/gm)) {
    const name = heading.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-");
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    found.add(count === 0 ? name : `${name}-${count}`);
  }
  return found;
}

test("the minimum versions are the same wherever they stand", () => {
  const versions = (page) => text(page).match(/Chrome and Edge (\d+), Firefox (\d+), Safari ([\d.]+\d)/)?.slice(1);
  assert.equal(versions("README.md")?.length, 3);
  assert.deepEqual(versions("README.md"), versions("docs/browsers.md"));
});

test("the guide to errors has every code", () => {
  const types = readFileSync(join(js, "src", "index.d.ts"), "utf8");
  const union = types.slice(types.indexOf("export type CallErrorCode"), types.indexOf("export class CallError"));
  const codes = [...union.matchAll(/^ {2}\| "([A-Z_]+)"/gm)].map(([, code]) => code);
  assert.ok(codes.length > 20);
  assert.deepEqual(codes.filter((code) => !text("docs/errors.md").includes(`| \`${code}\` |`)), []);
});

test("the reference is up to date, and its blocks of code are whole", () => {
  const fences = text("docs/api.md").split("\n").filter((words) => words.includes("```"));
  assert.deepEqual(fences.filter((words) => !/^```\w*$/.test(words)), []);
  assert.equal(fences.length % 2, 0);
  assert.equal(text("docs/api.md"), reference(), "docs/api.md is out of date: node docs/generate.mjs");
});
