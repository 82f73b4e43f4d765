// Licences of packages.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import { licenseTexts, packagesIn } from "../licenses.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "colloquy-licenses-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

function packageOf(name, license, files = {}) {
  const own = path.join(folder, name);
  mkdirSync(own);
  writeFileSync(path.join(own, "package.json"), JSON.stringify({ name, version: "1.2.3", license }));
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(own, file), text);
  return own;
}

test("packages are those with code in the outputs", () => {
  const inputs = {
    "src/main.tsx": { bytesInOutput: 9 },
    "node_modules/preact/dist/preact.mjs": { bytesInOutput: 9 },
    "node_modules/preact/hooks/dist/hooks.mjs": { bytesInOutput: 9 },
    "node_modules/a/node_modules/@b/c/index.js": { bytesInOutput: 9 },
    "node_modules/unused/index.js": { bytesInOutput: 0 },
  };
  assert.deepEqual(packagesIn({ outputs: { "main.js": { inputs } } }), ["node_modules/a/node_modules/@b/c", "node_modules/preact"]);
});

test("a package needs a licence that is allowed, and its text", () => {
  const one = packageOf("one", "MIT", { LICENSE: "Text of one\r\n" });
  const two = packageOf("two", "(GPL-3.0-only OR Apache-2.0)", { "LICENCE.md": "Text of two", NOTICE: "Notice of two" });
  const texts = licenseTexts([one, two]);
  assert.match(texts, /^one 1\.2\.3\nLicence: MIT\n\nText of one\n\n-{80}\n\ntwo 1\.2\.3\n[^]*Text of two\n\nNotice of two\n$/);
  for (const license of ["GPL-3.0-only", "MIT AND GPL-3.0-only", undefined]) {
    assert.throws(() => licenseTexts([packageOf(`not ${license}`, license, { LICENSE: "x" })]), /is not allowed/);
  }
  assert.throws(() => licenseTexts([packageOf("bare", "MIT", { NOTICE: "x" })]), /has no text/);
});
