// Times of a run of the checks, by part and by test, against those of `tests/times.json`.
//
//   node tests/times.mjs measure RUN   notes how fast the machine is
//   node tests/times.mjs print RUN     prints the table of parts, and the slowest tests
//   node tests/times.mjs grown RUN     prints the parts that have grown, one on each line
//   node tests/times.mjs retried RUN   prints the tests that passed at their second attempt, one on each line
//   node tests/times.mjs write RUN     writes tests/times.json
//
// RUN is a folder with a file NAME.time for each part: seconds by the clock, of its processes, and of the system for them; a report
// tests.*.xml of each run of native tests; and a file `slowness`: how many times longer this machine takes than the one of the table.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const TABLE = path.join(import.meta.dirname, "times.json");

/**
 * A part has grown when it takes this many times the processor time that the table and the speed of the machine let expect, and at least so many
 * seconds more.
 */
const GROWTH = 1.2;
const LEAST_SECONDS = 15;

/** All parts together have grown when they take this many times what the speed of the machine lets expect, which is measured less well. */
const GROWTH_TOGETHER = 1.5;

/** The parts that compile: what they take depends on what is there already. */
const COMPILES = ["build", "lint", "docs"];

/** The parts that run beside another one: what they take by the clock depends on that. */
const BESIDE = ["lint", "docs", "wasm", "clients"];

const SLOWEST = 40;

const [what, run] = process.argv.slice(2);

/**
 * How long two processors take to start ten programs each, in seconds, the least of several rounds: a start reads files, maps and touches memory and
 * computes, as tests do, most of which start processes. A machine that has one processor, or the time of one, takes twice as long.
 */
async function yardstick() {
  const start = () => new Promise((resolve, reject) => spawn(process.execPath, ["-e", "0"]).on("exit", resolve).on("error", reject));
  const row = async () => {
    for (let starts = 0; starts < 10; starts += 1) await start();
  };
  const rounds = [];
  for (let round = 0; round < 5; round += 1) {
    const begin = performance.now();
    await Promise.all([row(), row()]);
    rounds.push((performance.now() - begin) / 1e3);
  }
  return Math.min(...rounds);
}

const slowness = () => Number(readFileSync(path.join(run, "slowness"), "utf8"));

const parts = () =>
  readdirSync(run)
    .filter((name) => name.endsWith(".time"))
    .map((name) => {
      const [wall, user, system] = readFileSync(path.join(run, name), "utf8").trim().split(/\s+/).map(Number);
      return { name: name.slice(0, -".time".length), wall, processor: user + system };
    });

/** The table: the seconds of the yardstick, and by name of a part its seconds by the clock and of processors. */
function table() {
  try {
    return JSON.parse(readFileSync(TABLE, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return { parts: {} };
    throw error;
  }
}

/** Each test of a report of the runner: its name, how long it took, the attempts before the last one included, and whether one of those failed. */
function tests(report) {
  const attribute = (text, name) => text.match(new RegExp(`\\s${name}="([^"]*)"`))?.[1];
  const cases = readFileSync(report, "utf8").split(/(?=<testcase\s)/).slice(1);
  return cases.map((text) => ({
    name: `${attribute(text, "classname")} ${attribute(text, "name")}`,
    seconds: Number(attribute(text, "time")),
    isRetried: text.includes("<flakyFailure"),
  }));
}

const allTests = () => reports().flatMap((report) => tests(path.join(run, report)));

const reports = () => readdirSync(run).filter((name) => /^tests\..*xml$/.test(name));

const seconds = (number) => number.toFixed(0).padStart(7);

/**
 * How many times the processor time of the table the parts of this run take, by the median of those that do not compile: a better measure of the
 * machine than any yardstick, where there are enough of them.
 */
function pace() {
  const known = table().parts;
  const ratios = parts()
    .filter(({ name }) => known[name] && !COMPILES.includes(name) && known[name].processor > LEAST_SECONDS)
    .map(({ name, processor }) => processor / known[name].processor)
    .toSorted((a, b) => a - b);
  return ratios.length < 3 ? slowness() : ratios[Math.floor(ratios.length / 2)];
}

/** The time of processors and by the clock that a part is expected to take in this run; nothing for a part that the table does not have. */
const expected = (name) => {
  const known = table().parts[name];
  return known ? { wall: known.wall * pace(), processor: known.processor * pace() } : {};
};

const commands = {
  async measure() {
    const measured = await yardstick();
    writeFileSync(path.join(run, "yardstick"), String(measured));
    writeFileSync(path.join(run, "slowness"), String(measured / (table().yardstick ?? measured)));
  },

  print() {
    console.log(`this machine takes ${slowness().toFixed(2)} times as long as that of tests/times.json for starting programs, ${pace().toFixed(2)} times for the parts\n`);
    console.log("part           clock      processor  of what is expected");
    for (const { name, wall, processor } of parts().toSorted((a, b) => b.wall - a.wall)) {
      const { processor: known } = expected(name);
      const before = known ? `${((100 * processor) / known).toFixed(0)} %` : "new";
      console.log(`${name.padEnd(12)}${seconds(wall)} s ${seconds(processor)} s      ${before.padStart(6)}`);
    }
    const all = allTests().toSorted((a, b) => b.seconds - a.seconds);
    if (all.length === 0) return;
    console.log(`\nthe slowest of ${all.length} native tests`);
    for (const { name, seconds } of all.slice(0, SLOWEST)) console.log(`${seconds.toFixed(1).padStart(7)} s ${name}`);
  },

  grown() {
    const has = (measured, before) => before && measured >= before * GROWTH && measured >= before + LEAST_SECONDS;
    const tell = (name, measured, before, what) =>
      console.log(`${name} took ${(measured / before).toFixed(1)} times the ${what} that is expected by tests/times.json: ${measured.toFixed(0)} s`);
    for (const { name, wall, processor } of parts()) {
      if (COMPILES.includes(name)) continue;
      const { processor: processorBefore, wall: wallBefore } = expected(name);
      if (has(processor, processorBefore)) tell(name, processor, processorBefore, "processor time");
      else if (!BESIDE.includes(name) && has(wall, wallBefore)) tell(name, wall, wallBefore, "time by the clock");
    }
    if (pace() >= slowness() * GROWTH_TOGETHER) {
      console.log(`all parts took ${(pace() / slowness()).toFixed(1)} times the processor time that is expected by the speed of this machine`);
    }
  },

  retried() {
    for (const { name, isRetried } of allTests()) if (isRetried) console.log(`unit: run twice, since it failed once: ${name}`);
  },

  write() {
    const { parts: known } = table();
    const rounded = (number) => Math.round(10 * number) / 10;
    for (const { name, wall, processor } of parts()) known[name] = { wall: rounded(wall), processor: rounded(processor) };
    const measured = Number(readFileSync(path.join(run, "yardstick"), "utf8"));
    writeFileSync(TABLE, `${JSON.stringify({ yardstick: measured, parts: known }, null, 2)}\n`);
  },
};

await commands[what]();
