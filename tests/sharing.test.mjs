// Native tests in one process for each binary: node --test tests/sharing.test.mjs

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";

import { selected, summary } from "./sharing.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "colloquy-sharing."));
after(() => rmSync(folder, { recursive: true }));

const testcase = (status) => ({ ignored: false, "filter-match": { status } });

/** A list of one binary, which is a shell script. */
function list(script, testcases) {
  const program = path.join(folder, "program");
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return { "rust-suites": { "a::b": { "binary-id": "a::b", "binary-path": program, cwd: folder, testcases } } };
}

/** Runs the program on a list: its exit code, its output, and the report. */
function share(list) {
  return new Promise((resolve) => {
    const args = [path.join(import.meta.dirname, "sharing.mjs"), folder];
    const child = execFile(process.execPath, args, (error, stdout) => {
      resolve({ code: error?.code ?? 0, stdout, report: readFileSync(path.join(folder, "tests.shared.xml"), "utf8") });
    });
    child.stdin.end(JSON.stringify(list));
  });
}

const result = (passed, failed = 0) =>
  `test result: ${failed ? "FAILED" : "ok"}. ${passed} passed; ${failed} failed; 0 ignored; 0 measured; 3 filtered out; finished in 1.00s`;

const TWO = { "m::one": testcase("matches"), "m::two": testcase("matches"), "memory::own": testcase("mismatch") };

test("only what matches is selected", () => {
  const binaries = selected(list("", TWO));
  assert.deepEqual(binaries.map(({ id, tests }) => ({ id, tests })), [{ id: "a::b", tests: ["m::one", "m::two"] }]);
  assert.deepEqual(selected(list("", { "m::one": testcase("mismatch") })), []);
});

test("the last lines of a binary tell what ran", () => {
  assert.deepEqual(summary(`running 3 tests\n...\n\n${result(2, 1)}\n`), { passed: 2, failed: 1, ignored: 0 });
  assert.equal(summary("running 3 tests\n"), null);
});

test("tests are run by their exact names", async () => {
  const { code, stdout, report } = await share(list(`echo "$@" >arguments; echo '${result(2)}'`, TWO));
  assert.equal(code, 0, stdout);
  assert.match(readFileSync(path.join(folder, "arguments"), "utf8"), /^--exact --test-threads=\d+ m::one m::two\n$/);
  assert.match(report, /<testcase classname="a::b" name="\(2 tests in one process\)" tests="2" time="\d+\.\d+"\/>/);
});

test("what fails, dies or runs less than it should is a failure with its output", async () => {
  for (const [script, problem] of [
    [`echo 'm::two panicked'; echo '${result(1, 1)}'; exit 101`, /m::two panicked[^]*ended with 101/],
    ["echo half; kill -9 $$", /half[^]*ended with SIGKILL/],
    [`echo '${result(1)}'`, /1 of 2 tests passed/],
    ["exit 0", /undefined of 2 tests passed/],
  ]) {
    const { code, stdout, report } = await share(list(script, TWO));
    assert.equal(code, 1, stdout);
    assert.match(stdout, problem);
    assert.match(report, /a::b/);
  }
});
