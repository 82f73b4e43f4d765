// The built package in browsers without a bundler: whole calls from `dist/`, and what a page hears that cannot load it.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { STRICT, files, goodCall, inBrowsers, page, visit } from "./browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "..", "dist");
const root = join(here, "..", "..");

const call = (module) => ({
  "/index.html": page("/page.mjs"),
  "/page.mjs": `import * as sdk from "${module}"; import { placeCall } from "/call.mjs"; placeCall(sdk);`,
});

test("a call from the built package runs under a strict policy", inBrowsers, async (t) => {
  const report = await visit(t, files([dist, here, root], { pages: call("/index.mjs") }));
  assert.equal(report, goodCall());
});

test("the package in one file has its worklet where the policy allows blob:", inBrowsers, async (t) => {
  const policy = STRICT.replace("script-src", "script-src blob:");
  const report = await visit(t, files([dist, here, root], { pages: call("/inline.mjs"), policy }));
  assert.equal(report, goodCall());
});

for (const [why, missing, policy] of [
  ["that is not served", "/colloquy_sdk_bg.wasm", STRICT],
  ["that the policy blocks", "/none", STRICT.replace(" 'wasm-unsafe-eval'", "")],
]) {
  test(`a wasm ${why} is a LOAD_FAILED that says what to do`, inBrowsers, async (t) => {
    const pages = {
      "/index.html": page("/page.mjs"),
      "/page.mjs": `
        import { init } from "/index.mjs";
        import { reporting } from "/call.mjs";
        reporting(() => init().catch(({ code, message, fatal }) => [code, fatal, message].join(" ")));
      `,
      // What a single-page application's server answers for everything that it does not know.
      [missing]: "<!doctype html>",
    };
    const report = await visit(t, files([dist, here, root], { pages, policy }));
    assert.match(report, /^LOAD_FAILED true .*beside the SDK's module.*wasmUrl.*inline.*optimizeDeps.*'wasm-unsafe-eval'/);
  });
}

const HANG_UPS = `
  import { CallManager } from "/index.mjs";
  import { reporting } from "/call.mjs";
  import { Backend, wait } from "/sdk-wasm/tests/fake_backend.js";

  const names = ["onCallStart", "onStatusUpdate", "onCallStarting", "onConnected", "onHangUp"];
  reporting(async () => {
    const reports = [];
    for (const name of names) {
      const backend = new Backend();
      const callbacks = backend.callbacks(false);
      const hear = callbacks[name];
      callbacks[name] = (argument) => {
        hear(argument);
        manager.hangUp();
        manager.hangUp();
      };
      const manager = new CallManager(callbacks);
      await manager.handleCall2(null, null, "wss://calls.invalid/session");
      manager.hangUp();
      // A microphone that is granted late is given back.
      await wait(1_500);
      const log = backend.log().split("\\n");
      const count = (callback) => log.filter((line) => line === callback).length;
      const released = backend.isReleased() ? "released" : "held";
      const facts = [count("onCallStart"), count("onHangUp"), log.at(-1), released, backend.asked()];
      reports.push([name, ...facts].join(" "));
      backend.uninstall();
    }
    return reports.join("\\n");
  });
`;

test("a hang-up in any callback is one hang-up, and releases everything", inBrowsers, async (t) => {
  const pages = { "/index.html": page("/page.mjs"), "/page.mjs": HANG_UPS };
  const report = await visit(t, files([dist, here, root], { pages }));
  const names = ["onCallStart", "onStatusUpdate", "onCallStarting", "onConnected", "onHangUp"];
  // Nobody is asked for the microphone of a call that is over.
  const asked = { onCallStart: 0, onStatusUpdate: 0 };
  assert.deepEqual(report.split("\n"), names.map((name) => `${name} 1 1 onHangUp released ${asked[name] ?? 1}`));
});
