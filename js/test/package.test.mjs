// The package as a customer gets it: import without a browser, construction, exports, types, size.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { CallError, CallManager, init } from "@colloquy/sdk";
import * as inline from "@colloquy/sdk/inline";
import { publint } from "publint";

import { describe, measure } from "../sizes.mjs";

const js = join(dirname(fileURLToPath(import.meta.url)), "..");
const BUDGET_BYTES = 60_000;

const callbacks = () => ({ onCallStart() {}, onCallError() {}, onHangUp() {}, onStatusUpdate() {} });

test("importing and constructing need no window", () => {
  assert.equal(typeof window, "undefined");
  const manager = new CallManager(callbacks(), { personRole: "Visitor" });
  assert.equal(manager.getState(), "idle");
  assert.equal(manager.sendText("hello"), false);
  manager.mute(true);
  manager.hangUp();
});

test("a missing or wrong required callback is named", () => {
  assert.throws(() => new CallManager(), { name: "CallError", code: "INVALID_ARGUMENT" });
  for (const name of Object.keys(callbacks())) {
    for (const wrong of [undefined, "text"]) {
      assert.throws(
        () => new CallManager({ ...callbacks(), [name]: wrong }),
        (error) => error instanceof CallError && error.code === "INVALID_ARGUMENT" && error.message.includes(name),
      );
    }
  }
  assert.throws(() => new CallManager(callbacks(), "config"), { code: "INVALID_ARGUMENT" });
});

test("a wasm that cannot be loaded ends the call with its code, and may be tried again", async () => {
  const log = [];
  const hear = (name) => (argument) => log.push(argument ? `${name} ${argument.code}` : name);
  const names = ["onCallStart", "onCallError", "onHangUp", "onStatusUpdate"];
  const manager = new CallManager(Object.fromEntries(names.map((name) => [name, hear(name)])));
  await assert.rejects(init({ wasmUrl: "data:application/wasm,broken" }), { code: "LOAD_FAILED", message: /wasmUrl/ });
  // Node's fetch reads no file URLs, so the default does not load here either.
  await manager.handleCall2(null, null, "wss://calls.invalid/session");
  assert.deepEqual(log, ["onCallStart", "onCallError LOAD_FAILED", "onHangUp"]);
});

test("the wasm loads, and without a browser a call says what is missing", async () => {
  const log = [];
  const manager = new CallManager({
    onCallStart: () => log.push("start"),
    onCallError: (error) => log.push(error.code, error instanceof CallError),
    onHangUp: () => log.push("end"),
    onStatusUpdate() {},
  });
  const bytes = readFileSync(join(js, "dist", "colloquy_sdk_bg.wasm"));
  await init({ wasmUrl: `data:application/wasm;base64,${bytes.toString("base64")}` });
  const call = manager.handleCall2(null, null, "wss://calls.invalid/session");
  await assert.rejects(manager.handleCall2(null, null, "x"), { code: "CALL_ACTIVE" });
  manager.hangUp();
  await call;
  assert.deepEqual(log, ["start", "UNSUPPORTED_BROWSER", true, "end"]);
});

test("the package in one file loads without any other", async () => {
  await inline.init();
  await assert.rejects(inline.CallManager.getAvailableDevices(), { code: "UNSUPPORTED_BROWSER" });
});

test("the script makes a global, and tells that it looks beside itself", async () => {
  await import("@colloquy/sdk/global");
  const { CallManager: Manager, init: load, CallError: Failure } = globalThis.Colloquy;
  assert.equal(new Manager(callbacks()).getState(), "idle");
  await assert.rejects(load(), (error) => error instanceof Failure && /beside colloquy\.global\.js/.test(error.message));
});

test("every export is a file of the package", () => {
  const { exports, unpkg, jsdelivr } = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));
  const files = Object.values(exports).flatMap((entry) => (typeof entry === "string" ? entry : Object.values(entry)));
  for (const file of [...files, unpkg, jsdelivr]) assert.ok(existsSync(join(js, file)), file);
});

test("publint finds nothing in the packed package", async () => {
  const { messages } = await publint({ pkgDir: js, pack: "npm", strict: true });
  assert.deepEqual(messages, []);
});

test("the types fit their use", () => {
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
  execFileSync(process.execPath, [tsc, "--noEmit", "-p", join(js, "test")], { stdio: "inherit" });
});

test("types and README have every error code of the crate", () => {
  const source = readFileSync(join(js, "..", "sdk-wasm", "protocol", "src", "errors.rs"), "utf8");
  const codes = [...source.matchAll(/^ {4}\w+ = "([A-Z_]+)":/gm)].map(([, code]) => code);
  assert.ok(codes.length > 15);
  for (const file of ["src/index.d.ts", "README.md"]) {
    const text = readFileSync(join(js, file), "utf8");
    for (const code of [...codes, "LOAD_FAILED"]) assert.match(text, new RegExp(`\\b${code}\\b`), `${code} in ${file}`);
  }
});

test("JavaScript, worklet and wasm together keep the size budget", (t) => {
  const sizes = measure(join(js, "dist"));
  t.diagnostic(`\n${describe(sizes)}`);
  const { entry, gzipped } = sizes[0];
  assert.equal(entry, "@colloquy/sdk");
  assert.ok(gzipped <= BUDGET_BYTES, `${gzipped} bytes`);
});
