// Times of a run of the checks, by part and by test, against those of `tests/times.json`.
//
//   node tests/times.mjs measure RUN   notes how fast the machine is
//   node tests/times.mjs print RUN     prints the table of parts, and the slowest tests
//   node tests/times.mjs grown RUN     prints the parts that have grown, one on each line
//   node tests/times.mjs retried RUN   prints the tests that passed at their second attempt, one on each line
//   node tests/times.mjs write RUN     writes the parts that passed to tests/times.json, and keeps the others; prints why it does not
//
// RUN is a folder with these files, besides those that `measure` writes:
//
//   NAME.time        of each part: seconds by the clock, of its processes, and of the system for them
//   NAME.apart       of each part that set something up or compiled something: the same for each time
//   NAME.units       of each part of COMPILES: how much it compiled
//   NAME.passed      of each part that passed
//   complete         of a run of all parts
//   cold             of a run for which nothing was compiled
//   tests.*.xml      reports of runs of native tests

import { spawn } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const TABLE = path.join(import.meta.dirname, "times.json");

/** A part has grown when it takes so many times what is expected of it, and at least so many seconds more. */
const GROWTH = 1.2;
const LEAST_SECONDS = 15;

/** The same of all parts together, for which nothing but the yardsticks tells what to expect. */
const GROWTH_OF_ALL = 1.25;

/** The parts of which compiling is the subject: what they take depends on what is there. The times of the others are without that, and without set-up. */
const COMPILES = ["build", "lint", "docs"];

/** The parts that run beside another one: what they take by the clock depends on that. */
const BESIDE = ["lint", "docs", "wasm", "clients"];

/** Parts of a run whose median tells how fast the machine is. */
const LEAST_PARTS = 3;

const SLOWEST = 40;

const ROUNDS = 5;

/** What each of two processes computes for the yardstick: memory beyond the caches of a core, fractions as of sound and models, objects and text. */
function compute() {
  const memory = new Uint32Array(1 << 20);
  let state = 1;
  for (let step = 0; step < 6e6; step += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    memory[state >>> 12] = (memory[(state ^ step) & 0xfffff] + state) >>> 0;
  }
  let sum = memory[5] % 3;
  for (let step = 1; step < 8e6; step += 1) sum += Math.sqrt(step) / (1 + (sum % 3));
  const seen = new Map();
  for (let step = 0; step < 60; step += 1) {
    const rows = Array.from({ length: 500 }, (_, row) => ({ id: `row-${row}-${step}`, values: [row, step, sum] }));
    for (const { id, values } of JSON.parse(JSON.stringify(rows))) seen.set(id, values);
  }
}

const node = (...args) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(`node ${args.join(" ")} exited with ${code}`))));
  });

/** The processor time in seconds of the processes that this one started and that have ended. */
function childrenSeconds() {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

/**
 * Measures the machine, the least of several rounds: `clock`, the seconds in which two rows of processes start ten programs each; `starts`, the
 * processor time for that; and `computes`, the processor time of two processes that compute. A start reads files, and maps and touches memory, as
 * tests do, most of which start processes. The clock tells how long to wait for something, and what else the machine does is a part of that; processor
 * time hardly depends on it.
 */
async function yardsticks() {
  const row = async () => {
    for (let starts = 0; starts < 10; starts += 1) await node("-e", "0");
  };
  const least = { clock: Infinity, starts: Infinity, computes: Infinity };
  for (let round = 0; round < ROUNDS; round += 1) {
    const [begin, before] = [performance.now(), childrenSeconds()];
    await Promise.all([row(), row()]);
    least.clock = Math.min(least.clock, (performance.now() - begin) / 1e3);
    least.starts = Math.min(least.starts, childrenSeconds() - before);
    const computed = await Promise.all([1, 2].map(() => node(import.meta.filename, "compute")));
    least.computes = Math.min(least.computes, computed.map(Number).reduce((sum, seconds) => sum + seconds));
  }
  return least;
}

/** Reads seconds by the clock and of processors from lines that bash's `time` wrote, and adds them up. */
function timed(text) {
  const rows = text.trim().split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  const sum = (column) => rows.reduce((sum, row) => sum + row[column], 0);
  return { wall: sum(0), processor: sum(1) + sum(2) };
}

/** Reads the folder of a run. A part has a `state` if it is to be compared: `cold` or `warm` if it is one of COMPILES, else `run`. */
export function readRun(folder) {
  const has = (name) => existsSync(path.join(folder, name));
  const read = (name) => readFileSync(path.join(folder, name), "utf8");
  const names = readdirSync(folder);
  const [isComplete, isCold] = [has("complete"), has("cold")];
  const parts = names
    .filter((name) => name.endsWith(".time"))
    .map((file) => {
      const name = file.slice(0, -".time".length);
      const isPassed = has(`${name}.passed`);
      const part = { name, isPassed, ...timed(read(file)) };
      if (COMPILES.includes(name)) {
        const units = Number(read(`${name}.units`));
        // A part of some parts compiles what another one would have compiled before it.
        const state = units === 0 ? "warm" : isCold && isComplete ? "cold" : undefined;
        return { ...part, units, state };
      }
      if (has(`${name}.apart`)) {
        const apart = timed(read(`${name}.apart`));
        part.wall -= apart.wall;
        part.processor -= apart.processor;
      }
      return { ...part, state: "run" };
    });
  const measured = has("yardsticks") ? read("yardsticks").trim().split("\n").map((line) => JSON.parse(line)) : [];
  const reports = names.filter((name) => /^tests\..*xml$/.test(name)).map(read);
  return { isComplete: isComplete && parts.every(({ isPassed }) => isPassed), parts, measured, tests: reports.flatMap(tests) };
}

/** The table: the yardsticks of its machine, and by name of a part its seconds by the clock and of processors, for COMPILES by state. */
export function readTable(file = TABLE) {
  if (!existsSync(file)) return { yardsticks: {}, parts: {} };
  return JSON.parse(readFileSync(file, "utf8"));
}

const known = (table, { name, state }) => (COMPILES.includes(name) ? table.parts[name]?.[state] : table.parts[name]);

/** The parts of a run that are to be compared, each with its entry of the table. */
const comparable = (table, run) =>
  run.parts.filter((part) => part.isPassed && known(table, part)).map((part) => ({ ...part, before: known(table, part) }));

/** How many times longer the machine takes than that of the table, by the clock, when a run begins. */
export const slowness = (table, run) => ratios(table, run.measured.slice(0, 1), ["clock"])[0] ?? 1;

/** What was measured several times counts as its slowest. */
const slowest = (measured, name) => Math.max(...measured.map((yardsticks) => yardsticks[name]));

/** How many times longer a machine takes by each of these yardsticks that the table has. */
const ratios = (table, measured, names) =>
  measured.length === 0 ? [] : names.filter((name) => table.yardsticks[name]).map((name) => slowest(measured, name) / table.yardsticks[name]);

/**
 * How many times the processor time of the table the machine takes, by its yardsticks: from the least to the most. What the parts take lies between
 * the two or near them, since they start processes and compute.
 */
export function machine(table, run) {
  const all = ratios(table, run.measured, ["starts", "computes"]);
  if (all.length === 0) all.push(slowness(table, run));
  return { least: Math.min(...all), most: Math.max(...all), typical: all.reduce((product, ratio) => product * ratio) ** (1 / all.length) };
}

/**
 * How many times the processor time of the table the parts of a run take, by their median, where there are enough of them: a better measure of the
 * machine than the yardsticks, but one that grows with all parts.
 */
export function pace(table, run) {
  const ratios = comparable(table, run)
    .filter(({ name, before }) => !COMPILES.includes(name) && before.processor > LEAST_SECONDS)
    .map(({ processor, before }) => processor / before.processor)
    .toSorted((a, b) => a - b);
  return ratios.length < LEAST_PARTS ? undefined : ratios[Math.floor(ratios.length / 2)];
}

/** Returns a sentence for each part that has grown, and for all of them. */
export function grown(table, run) {
  const [median, { most }] = [pace(table, run), machine(table, run)];
  // The slower yardstick, where there are too few parts for a median: what it explains is not told.
  const times = median ?? most;
  // On a faster machine, nothing comes sooner that is only waited for; on a busy one, everything comes later.
  const timesByClock = Math.max(times, 1, ...ratios(table, run.measured, ["clock"]));
  const has = (measured, expected) => measured >= expected * GROWTH && measured >= expected + LEAST_SECONDS;
  const sentence = ({ name, state }, measured, expected, what) => {
    const part = state === "run" ? name : `${name}, ${state},`;
    return `${part} took ${(measured / expected).toFixed(1)} times the ${what} that is expected by tests/times.json: ${measured.toFixed(0)} s`;
  };
  const sentences = comparable(table, run).flatMap((part) => {
    const { name, wall, processor, before } = part;
    const expected = before.processor * times;
    if (has(processor, expected)) return [sentence(part, processor, expected, "processor time")];
    const expectedWall = before.wall * timesByClock;
    const isAlone = !BESIDE.includes(name) && !COMPILES.includes(name);
    return isAlone && has(wall, expectedWall) ? [sentence(part, wall, expectedWall, "time by the clock")] : [];
  });
  // All parts together are seen to grow by a quarter where both yardsticks agree, and later by as much as they differ: machines differ by more.
  if (median !== undefined && median >= most * GROWTH_OF_ALL) {
    sentences.push(`all parts took ${(median / most).toFixed(1)} times the processor time that is expected by the speed of this machine`);
  }
  return sentences;
}

/**
 * Returns the table with the parts of a run that passed. A complete run without a failure makes its machine that of the table, and what is kept is
 * converted to it; what other runs measured is converted to the machine of the table, or `undefined` if nothing is known of that.
 */
export function written(table, run) {
  const { starts, computes } = table.yardsticks;
  if (!run.isComplete && !(starts && computes)) return undefined;
  const { typical } = machine(table, run);
  const [ofKept, ofNew] = run.isComplete ? [typical, 1] : [1, 1 / typical];
  const rounded = (number) => Math.round(10 * number) / 10;
  const times = ({ wall, processor }, factor) => ({ wall: rounded(wall * factor), processor: rounded(processor * factor) });
  const sorted = (object) => Object.fromEntries(Object.entries(object).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const states = (name, entry, convert) =>
    COMPILES.includes(name) ? Object.fromEntries(Object.entries(entry).map(([state, entry]) => [state, convert(entry)])) : convert(entry);

  const parts = Object.fromEntries(Object.entries(table.parts).map(([name, entry]) => [name, states(name, entry, (entry) => times(entry, ofKept))]));
  for (const part of run.parts.filter(({ isPassed, state }) => isPassed && state)) {
    const { name, state } = part;
    parts[name] = COMPILES.includes(name) ? sorted({ ...parts[name], [state]: times(part, ofNew) }) : times(part, ofNew);
  }
  const yardsticks = run.isComplete
    ? { clock: run.measured[0].clock, starts: slowest(run.measured, "starts"), computes: slowest(run.measured, "computes") }
    : table.yardsticks;
  return { yardsticks: sorted(yardsticks), parts: sorted(parts) };
}

/** The tests of a report of the runner: name, seconds with all attempts, how many they are, and if they failed once and passed then. */
function tests(report) {
  const attribute = (text, name) => text.match(new RegExp(`\\s${name}="([^"]*)"`))?.[1];
  const cases = report.split(/(?=<testcase\s)/).slice(1);
  return cases.map((text) => ({
    name: `${attribute(text, "classname")} ${attribute(text, "name")}`,
    seconds: Number(attribute(text, "time")),
    count: Number(attribute(text, "tests") ?? 1),
    isRetried: text.includes("<flakyFailure"),
  }));
}

const seconds = (number) => number.toFixed(0).padStart(7);

/** Returns the lines of the table of parts, and of the slowest tests. */
export function printed(table, run) {
  const [median, { least, most }] = [pace(table, run), machine(table, run)];
  const lines = [
    `this machine takes ${least.toFixed(2)} to ${most.toFixed(2)} times the processor time of that of tests/times.json, by its yardsticks` +
      (median === undefined ? "" : `; ${median.toFixed(2)} times by the parts`),
    "",
    "part           clock      processor  of what is expected",
  ];
  for (const part of run.parts.toSorted((a, b) => b.wall - a.wall)) {
    const { name, wall, processor, state, units, isPassed } = part;
    const before = known(table, part);
    const expected = before && before.processor * (median ?? most);
    const compared = !state ? `compiled ${units}` : expected ? `${((100 * processor) / expected).toFixed(0)} %` : "new";
    const note = isPassed ? (COMPILES.includes(name) ? (state ?? "in part") : "") : "failed";
    lines.push(`${name.padEnd(12)}${seconds(wall)} s ${seconds(processor)} s ${compared.padStart(15)}  ${note}`.trimEnd());
  }
  const all = run.tests.toSorted((a, b) => b.seconds - a.seconds);
  if (all.length > 0) {
    const count = all.reduce((sum, { count }) => sum + count, 0);
    lines.push("", `the slowest of ${count} native tests`);
    for (const { name, seconds } of all.slice(0, SLOWEST)) lines.push(`${seconds.toFixed(1).padStart(7)} s ${name}`);
  }
  return lines;
}

const tell = (lines) => lines.forEach((line) => console.log(line));

const commands = {
  async measure(folder) {
    appendFileSync(path.join(folder, "yardsticks"), `${JSON.stringify(await yardsticks())}\n`);
    writeFileSync(path.join(folder, "slowness"), String(slowness(readTable(), readRun(folder))));
  },

  compute() {
    const before = process.cpuUsage();
    compute();
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / 1e6);
  },

  print: (folder) => tell(printed(readTable(), readRun(folder))),

  grown: (folder) => tell(grown(readTable(), readRun(folder))),

  retried: (folder) =>
    tell(readRun(folder).tests.filter(({ isRetried }) => isRetried).map(({ name }) => `unit: run twice, since it failed once: ${name}`)),

  write(folder) {
    const table = written(readTable(), readRun(folder));
    if (table) writeFileSync(TABLE, `${JSON.stringify(table, null, 2)}\n`);
    else console.log("times: not written: the machine of tests/times.json is not known before a complete run without a failure has written it");
  },
};

const [program, what, folder] = process.argv.slice(1);
if (import.meta.url === pathToFileURL(program ?? "").href) await commands[what](folder);
