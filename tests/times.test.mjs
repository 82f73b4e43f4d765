// Times of runs are compared with a table, and written to it: node --test tests/times.test.mjs

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import { grown, machine, pace, printed, readRun, readTable, slowness, written } from "./times.mjs";

const TABLE = {
  yardsticks: { clock: 0.5, starts: 1, computes: 0.6 },
  parts: {
    browser: { wall: 300, processor: 200 },
    build: { cold: { wall: 900, processor: 1600 }, warm: { wall: 10, processor: 20 } },
    clients: { wall: 150, processor: 80 },
    format: { wall: 2, processor: 2 },
    lint: { warm: { wall: 4, processor: 4 } },
    package: { wall: 150, processor: 100 },
    unit: { wall: 600, processor: 1000 },
  },
};

/** The yardsticks of a machine that takes so many times as long, by starts and by computing. */
const yardsticks = (starts, computes = starts) => ({ clock: 0.5 * starts, starts, computes: 0.6 * computes });

/** A run that was read: by name of a part its processor time, or what differs from a part that passed and waited for nothing. */
function run(times, { measured = [yardsticks(1)], isComplete = false } = {}) {
  const parts = Object.entries(times).map(([name, given]) => {
    const part = typeof given === "number" ? { processor: given } : given;
    return { name, wall: part.processor, isPassed: true, state: "run", ...part };
  });
  return { isComplete, parts, measured, tests: [] };
}

/** The parts of the table, each with its time and so many times its processor time. */
const times = (factor, others = {}) => ({
  browser: { wall: 300, processor: 200 * factor },
  clients: { wall: 150, processor: 80 * factor },
  format: { wall: 2, processor: 2 * factor },
  package: { wall: 150, processor: 100 * factor },
  unit: { wall: 600, processor: 1000 * factor },
  ...others,
});

/** Reads a folder of these files. */
function readFiles(files) {
  const folder = mkdtempSync(path.join(tmpdir(), "colloquy-times."));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, name), content);
    return readRun(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the committed table can be read", () => {
  const { yardsticks, parts } = readTable();
  assert.ok(yardsticks.clock > 0);
  assert.ok(parts.unit.processor > 0);
  assert.deepEqual(readTable("/nonexistent/times.json"), { yardsticks: {}, parts: {} });
});

test("a run is read without what its parts compiled", () => {
  const { parts, isComplete, measured, tests } = readFiles({
    "unit.time": "500.5 800 100\n",
    "unit.apart": "10 15 1\n20.5 30 4\n",
    "unit.passed": "",
    "build.time": "40 50 10",
    "build.apart": "35 45 10",
    "build.units": "7\n",
    "lint.time": "3 2 1",
    "lint.units": "0",
    "lint.passed": "",
    yardsticks: '{"clock":1,"starts":2,"computes":3}\n{"clock":4,"starts":5,"computes":6}\n',
    "tests.one.xml":
      '<testsuite><testcase name="a::b" classname="some-crate" time="1.5"><flakyFailure/></testcase>' +
      '<testcase name="all" classname="models" time="40" tests="29"/></testsuite>',
  });
  const of = (name) => parts.find((part) => part.name === name);
  assert.deepEqual(of("unit"), { name: "unit", isPassed: true, wall: 470, processor: 850, state: "run" });
  assert.deepEqual(of("build"), { name: "build", isPassed: false, wall: 40, processor: 60, units: 7, state: undefined });
  assert.equal(of("lint").state, "warm");
  assert.equal(isComplete, false);
  assert.deepEqual(measured.map(({ starts }) => starts), [2, 5]);
  assert.deepEqual(tests, [
    { name: "some-crate a::b", seconds: 1.5, count: 1, isRetried: true },
    { name: "models all", seconds: 40, count: 29, isRetried: false },
  ]);
});

test("what compiles is cold only in a complete run from nothing", () => {
  const state = (units, ...marks) => {
    const files = { "docs.time": "1 1 1", "docs.units": String(units), "docs.passed": "" };
    return readFiles({ ...files, ...Object.fromEntries(marks.map((mark) => [mark, ""])) }).parts[0].state;
  };
  assert.equal(state(600, "cold", "complete"), "cold");
  assert.equal(state(600, "cold"), undefined);
  assert.equal(state(600, "complete"), undefined);
  assert.equal(state(0, "complete"), "warm");
});

test("a run with a failure is not complete", () => {
  const files = { "deny.time": "1 1 1", complete: "" };
  assert.equal(readFiles(files).isComplete, false);
  assert.equal(readFiles({ ...files, "deny.passed": "" }).isComplete, true);
});

test("the machine is measured by its slowest moment", () => {
  const measured = [yardsticks(1.2, 1.5), yardsticks(1.6, 1.4)];
  const { least, most, typical } = machine(TABLE, run({}, { measured }));
  assert.ok(Math.abs(least - 1.5) < 1e-9 && Math.abs(most - 1.6) < 1e-9 && typical > least && typical < most);
  // The deadlines of tests are for the machine as it was before.
  assert.equal(slowness(TABLE, run({}, { measured })), 1.2);
  // A table without these yardsticks has the clock, and a run without any is of an ordinary machine.
  assert.equal(machine({ yardsticks: { clock: 0.25 }, parts: {} }, run({}, { measured })).most, 2.4);
  assert.equal(machine(TABLE, run({}, { measured: [] })).most, 1);
});

test("a run as the table has it has not grown", () => {
  assert.deepEqual(grown(TABLE, run(times(1))), []);
  assert.deepEqual(grown(TABLE, run({ unit: { wall: 600, processor: 1000 } })), []);
  // On a machine that takes twice as long, or half, nor has it.
  for (const factor of [0.5, 2]) {
    const measured = [yardsticks(factor)];
    assert.deepEqual(grown(TABLE, run(times(factor), { measured })), []);
    assert.deepEqual(grown(TABLE, run({ unit: { wall: 600, processor: 1000 * factor } }, { measured })), []);
  }
});

test("a part that grew is named, whatever the machine", () => {
  for (const factor of [0.5, 1, 2]) {
    const measured = [yardsticks(factor)];
    const lines = grown(TABLE, run(times(factor, { browser: 200 * factor * 1.25 }), { measured }));
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.match(lines[0], /^browser took 1\.3 times the processor time/);
  }
  const waits = grown(TABLE, run(times(1, { browser: { wall: 400, processor: 200 } })));
  assert.match(waits.join("\n"), /^browser took 1\.3 times the time by the clock/);
  // A machine that does something else besides is told by its clock, and not by its processor time.
  const busy = { ...yardsticks(1), clock: 0.7 };
  assert.deepEqual(grown(TABLE, run(times(1, { browser: { wall: 400, processor: 200 } }), { measured: [busy] })), []);
  assert.equal(grown(TABLE, run(times(1, { browser: 260 }), { measured: [busy] })).length, 1);
  // What runs beside another part waits for it.
  assert.deepEqual(grown(TABLE, run(times(1, { clients: { wall: 400, processor: 80 } }))), []);
  // A few seconds are not worth a word.
  assert.deepEqual(grown(TABLE, run(times(1, { format: 8 }))), []);
});

test("a run of few parts is compared by the yardsticks", () => {
  const unit = (factor, ...measured) => grown(TABLE, run({ unit: { wall: 600, processor: 1000 * factor } }, { measured }));
  assert.match(unit(1.21, yardsticks(1)).join("\n"), /^unit took 1\.2 times the processor time/);
  assert.deepEqual(unit(1.19, yardsticks(1)), []);
  assert.deepEqual(unit(1.3, yardsticks(1.1)), []);
  // Growth that one of the yardsticks explains is not told.
  assert.deepEqual(unit(1.3, yardsticks(1, 1.3)), []);
  assert.deepEqual(unit(1.3, yardsticks(1), yardsticks(1.3, 1)), []);
});

test("growth of all parts together is told from a quarter on", () => {
  const all = (factor, ...measured) => grown(TABLE, run(times(factor), { measured }));
  assert.match(all(1.3, yardsticks(1)).join("\n"), /^all parts took 1\.3 times/);
  assert.match(all(2.6, yardsticks(2)).join("\n"), /^all parts took 1\.3 times/);
  assert.deepEqual(all(1.2, yardsticks(1)), []);
  assert.deepEqual(all(1.3, yardsticks(1.3, 1)), []);
});

test("compiling is compared with the same state", () => {
  const build = (processor, state) => grown(TABLE, run(times(1, { build: { wall: processor, processor, state, units: 1 } })));
  assert.match(build(2000, "cold").join("\n"), /^build, cold, took 1\.3 times the processor time/);
  assert.deepEqual(build(1600, "cold"), []);
  assert.match(build(60, "warm").join("\n"), /^build, warm, took 3\.0 times/);
  assert.deepEqual(build(1000, undefined), []);
  // The table has no such entry yet.
  assert.deepEqual(grown(TABLE, run(times(1, { lint: { processor: 500, state: "cold", units: 900 } }))), []);
});

test("a part that failed is not compared", () => {
  assert.deepEqual(grown(TABLE, run({ unit: { processor: 3000, isPassed: false } })), []);
  assert.equal(pace(TABLE, run(times(2, { unit: { processor: 9000, isPassed: false } }))), 2);
  assert.equal(pace(TABLE, run({ unit: 1000, browser: 200 })), undefined);
});

test("a complete run makes its machine that of the table", () => {
  const parts = times(2, { build: { wall: 30.04, processor: 50, state: "warm", units: 0 } });
  const table = written(TABLE, run(parts, { measured: [yardsticks(2), yardsticks(1.9)], isComplete: true }));
  assert.deepEqual(table.yardsticks, { clock: 1, computes: 1.2, starts: 2 });
  assert.deepEqual(table.parts.unit, { wall: 600, processor: 2000 });
  // What this run did not measure is kept, as this machine would take.
  assert.deepEqual(table.parts.build, { cold: { wall: 1800, processor: 3200 }, warm: { wall: 30, processor: 50 } });
  assert.deepEqual(table.parts.lint, { warm: { wall: 8, processor: 8 } });
  const names = Object.keys(table.parts);
  assert.deepEqual(names, names.toSorted());
});

test("a run of few parts writes what the machine of the table would take, and keeps the others", () => {
  const measured = [yardsticks(2)];
  const parts = { wasm: { wall: 60, processor: 40 }, browser: { processor: 9, isPassed: false }, docs: { processor: 70, state: undefined, units: 3 } };
  const table = written(TABLE, run(parts, { measured }));
  assert.deepEqual(table, { ...TABLE, parts: { ...TABLE.parts, wasm: { wall: 30, processor: 20 } } });
  // Of a table without yardsticks, the machine is not known.
  assert.equal(written({ yardsticks: { clock: 0.5 }, parts: {} }, run(parts, { measured })), undefined);
});

test("a run is printed with what is compared and what is not", () => {
  const parts = times(1, {
    build: { wall: 50, processor: 90, state: undefined, units: 12 },
    lint: { wall: 4, processor: 4, state: "warm", units: 0 },
    wasm: 30,
    package: { processor: 5, isPassed: false },
  });
  const shown = { ...run(parts), tests: [{ name: "models all", seconds: 40, count: 29 }, { name: "a b", seconds: 1, count: 1 }] };
  const text = printed(TABLE, shown).join("\n");
  assert.match(text, /^unit +600 s +1000 s +100 %$/m);
  assert.match(text, /^build +50 s +90 s +compiled 12  in part$/m);
  assert.match(text, /^lint +4 s +4 s +100 %  warm$/m);
  assert.match(text, /^wasm +30 s +30 s +new$/m);
  assert.match(text, /^package .*failed$/m);
  assert.match(text, /the slowest of 30 native tests\n +40\.0 s models all\n/);
});
