// Runs native tests in one process for each binary, for `tests/run unit`: what one of them loads, all of its binary share.
//
//   cargo nextest list .. --message-format json | node tests/sharing.mjs RUN
//
// Runs the tests of the list that match, as many at a time as there are processors, and prints the output of a binary that failed. Writes
// `tests.shared.xml` to the folder RUN, with the time of each binary. Fails if a test failed, or if a binary did not run all that match.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** What hangs is stopped with its output. */
const LONGEST_MS = 30 * 60 * 1_000;

/** Returns the binaries of a list of the runner that have tests that match, with the names of these. */
export function selected(list) {
  return Object.values(list["rust-suites"])
    .map(({ "binary-id": id, "binary-path": program, cwd, testcases }) => {
      const matching = Object.entries(testcases).filter(([, test]) => test["filter-match"].status === "matches");
      return { id, program, cwd, tests: matching.map(([name]) => name) };
    })
    .filter(({ tests }) => tests.length > 0);
}

/** Returns what a test binary ran by its last lines, or `undefined` if it has not come to these. */
export function summary(output) {
  const found = output.match(/^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;/m);
  return found && { passed: Number(found[1]), failed: Number(found[2]), ignored: Number(found[3]) };
}

/** Runs the tests of a binary, and returns how long that took, and what is wrong with it, if anything. */
function run({ program, cwd, tests }) {
  const begin = performance.now();
  const args = ["--exact", `--test-threads=${availableParallelism()}`, ...tests];
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, CARGO_MANIFEST_DIR: cwd },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: LONGEST_MS,
      killSignal: "SIGKILL",
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (data) => (output += data));
    const end = (problem) => resolve({ seconds: (performance.now() - begin) / 1e3, problem: problem && `${output}\n${problem}` });
    child.on("error", (error) => end(String(error)));
    child.on("close", (code, signal) => {
      const { passed } = summary(output) ?? {};
      if (code !== 0) end(`ended with ${signal ?? code}`);
      else if (passed !== tests.length) end(`${passed} of ${tests.length} tests passed`);
      else end();
    });
  });
}

const isProgram = import.meta.url === pathToFileURL(process.argv[1] ?? "").href;
if (isProgram) {
  const [folder] = process.argv.slice(2);
  const binaries = selected(JSON.parse(readFileSync(0, "utf8")));
  if (binaries.length === 0) throw new Error("no test matches");
  const cases = [];
  for (const binary of binaries) {
    const { seconds, problem } = await run(binary);
    const count = binary.tests.length;
    cases.push(`<testcase classname="${binary.id}" name="(${count} tests in one process)" tests="${count}" time="${seconds.toFixed(3)}"/>`);
    console.log(`${binary.id}: ${count} tests in one process: ${problem ? "FAILED" : "passed"} in ${seconds.toFixed(1)} s`);
    if (problem) {
      console.log(problem);
      process.exitCode = 1;
    }
  }
  writeFileSync(path.join(folder, "tests.shared.xml"), `<testsuites><testsuite>\n${cases.join("\n")}\n</testsuite></testsuites>\n`);
}
