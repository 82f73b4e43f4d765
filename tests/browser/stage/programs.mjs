// Programs that tests start: their output is kept for the report, and they end when they are told to.

import { spawn } from "node:child_process";
import { createServer } from "node:net";

import { scaled } from "./waiting.mjs";

const KEPT_LINES = 400;

/** ANSI escape sequences that style text. */
const COLOURS = /\u001b\[[\d;]*m/g;

/** Programs that run; none outlives a test run that is broken off. */
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

/** A free TCP port on this machine. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export class Program {
  #lines = [];

  constructor(command, args, env = {}) {
    this.name = command.split("/").at(-1);
    this.child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    running.add(this.child);
    this.child.once("exit", () => running.delete(this.child));
    /** How it ended: `{ code, signal }`. */
    this.ended = new Promise((resolve) => {
      this.child.once("exit", (code, signal) => resolve({ code, signal }));
      this.child.once("error", (error) => {
        this.#keep(String(error));
        resolve({ code: null, signal: null });
      });
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => this.#keep(text));
    }
  }

  #keep(text) {
    this.#lines.push(...text.replace(COLOURS, "").split("\n").filter(Boolean));
    this.#lines.splice(0, this.#lines.length - KEPT_LINES);
  }

  get running() {
    return this.child.exitCode === null && this.child.signalCode === null && this.child.pid !== undefined;
  }

  /** The last lines of its output. */
  tail(count = 30) {
    return this.#lines.slice(-count).join("\n");
  }

  /** Stops it (`SIGSTOP`), lets it go on (`SIGCONT`) .. */
  signal(name) {
    this.child.kill(name);
  }

  /** Ends it, by force when it takes longer than the patience. */
  async stop(signal = "SIGTERM", patienceMs = 5_000) {
    if (!this.running) return this.ended;
    this.child.kill(signal);
    const force = setTimeout(() => this.child.kill("SIGKILL"), scaled(patienceMs));
    const end = await this.ended;
    clearTimeout(force);
    return end;
  }
}
