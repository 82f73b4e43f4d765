// Times of a run of the checks, by part and by test, against those of `tests/times.json`.
//
//   node tests/times.mjs measure RUN   notes how fast the machine is
//   node tests/times.mjs print RUN     prints the table of parts, and the slowest tests
//   node tests/times.mjs grown RUN     prints the parts that have grown, one on each line
//   node tests/times.mjs write RUN     writes tests/times.json
//
// RUN is a folder with a file NAME.time for each part: seconds by the clock, of its processes, and of the system for them; a report
// tests.*.xml of each run of native tests; and a file `slowness`: how many times longer this machine takes than the one of the table.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const TABLE = path.join(import.meta.dirname, "times.json");

/** A part has grown when it takes this many times the processor time of the table, and at least so many seconds more. */
const GROWTH = 1.2;
const LEAST_SECONDS = 15;

const SLOWEST = 40;

const [what, run] = process.argv.slice(2);

/** What one processor computes in about a second; the memory that it needs fits in its caches. */
function compute() {
  const numbers = new Uint32Array(1 << 14);
  for (let round = 0; round < 20_000; round += 1) {
    for (let at = 0; at < numbers.length; at += 1) numbers[at] = (Math.imul(numbers[at], 1_664_525) + at + round) >>> (round & 3);
  }
  return numbers[7];
}

/** The processor time of that in seconds, the least of three. */
function yardstick() {
  const times = [1, 2, 3].map(() => {
    const begin = process.cpuUsage();
    compute();
    return process.cpuUsage(begin).user / 1e6;
  });
  return Math.min(...times);
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

/** Each test of a report of the runner: its name and how long it took, the attempts before the last one included. */
function tests(report) {
  const attribute = (text, name) => text.match(new RegExp(`\\s${name}="([^"]*)"`))?.[1];
  const cases = readFileSync(report, "utf8").matchAll(/<testcase\s[^>]*>/g);
  return [...cases].map(([text]) => ({
    name: `${attribute(text, "classname")} ${attribute(text, "name")}`,
    seconds: Number(attribute(text, "time")),
  }));
}

const reports = () => readdirSync(run).filter((name) => /^tests\..*xml$/.test(name));

const seconds = (number) => number.toFixed(0).padStart(7);

/** Processor time of a part of the table on this machine; `undefined` for a part that it does not have. */
const expected = (name) => table().parts[name]?.processor * slowness() || undefined;

const commands = {
  measure() {
    const measured = yardstick();
    writeFileSync(path.join(run, "yardstick"), String(measured));
    writeFileSync(path.join(run, "slowness"), String(measured / (table().yardstick ?? measured)));
  },

  print() {
    console.log(`this machine takes ${slowness().toFixed(2)} times as long as that of tests/times.json\n`);
    console.log("part           clock      processor  of the table");
    for (const { name, wall, processor } of parts().toSorted((a, b) => b.wall - a.wall)) {
      const before = expected(name) ? `${((100 * processor) / expected(name)).toFixed(0)} %` : "new";
      console.log(`${name.padEnd(12)}${seconds(wall)} s ${seconds(processor)} s      ${before.padStart(6)}`);
    }
    const all = reports().flatMap((report) => tests(path.join(run, report))).toSorted((a, b) => b.seconds - a.seconds);
    if (all.length === 0) return;
    console.log(`\nthe slowest of ${all.length} native tests`);
    for (const { name, seconds } of all.slice(0, SLOWEST)) console.log(`${seconds.toFixed(1).padStart(7)} s ${name}`);
  },

  grown() {
    for (const { name, processor } of parts()) {
      const before = expected(name);
      if (before === undefined || processor < before * GROWTH || processor < before + LEAST_SECONDS) continue;
      const times = (processor / before).toFixed(1);
      console.log(`${name} took ${times} times the processor time of tests/times.json: ${processor.toFixed(0)} s`);
    }
  },

  write() {
    const { parts: known } = table();
    const rounded = (number) => Math.round(10 * number) / 10;
    for (const { name, wall, processor } of parts()) known[name] = { wall: rounded(wall), processor: rounded(processor) };
    const measured = Number(readFileSync(path.join(run, "yardstick"), "utf8"));
    writeFileSync(TABLE, `${JSON.stringify({ yardstick: measured, parts: known }, null, 2)}\n`);
  },
};

commands[what]();
