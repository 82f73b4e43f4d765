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
    assert.match(report, /^LOAD_FAILED false .*beside the SDK's module.*wasmUrl.*inline.*optimizeDeps.*'wasm-unsafe-eval'/);
  });
}

/** A test of a page that runs a script against the backend inside it. */
const inPage = (name, script, check, options = {}) => test(name, inBrowsers, async (t) => {
  const pages = { "/index.html": page("/page.mjs"), "/page.mjs": script };
  check(await visit(t, files([dist, here, root], { pages, ...options })));
});

const IMPORTS = `
  import { CallManager, init } from "/index.mjs";
  import { SLOWNESS, collectUntil, reporting, until } from "/call.mjs";
  import { Backend, wait } from "/sdk-wasm/tests/fake_backend.js";

  const URL = "wss://calls.invalid/session";
`;

const HANG_UPS = `${IMPORTS}
  const TALK = [
    '{"type":"agent_state","state":"thinking"}',
    '{"type":"transcript","id":"1","originator":"bot","text":"Hello.","final":true,"at_ms":5}',
    '{"type":"user_info","info":"likes tea"}',
    '{"type":"rag_info","total_tokens":3,"documents":[]}',
    '{"type":"error","code":"SERVER","message":"slow","fatal":false}',
  ];
  /** What brings a callback about, where a call alone does not. */
  const CAUSES = {
    onDevicesChanged: (backend) => backend.deviceChange(),
    onAudioBlockedChange: (backend) => backend.stopPlayback(),
    "onError fatal": (backend) => backend.cut(4409),
    "onCallError fatal": (backend) => backend.cut(4409),
  };

  reporting(async () => {
    const reports = [];
    const names = Object.keys(new Backend().callbacks(false)).concat("onError fatal", "onCallError fatal");
    for (const name of names) {
      const backend = new Backend();
      const callbacks = backend.callbacks(false);
      const [callback] = name.split(" ");
      const hear = callbacks[callback];
      let heard = 0;
      callbacks[callback] = (argument) => {
        hear(argument);
        heard += 1;
        manager.hangUp();
        manager.hangUp();
      };
      const manager = new CallManager(callbacks);
      await manager.handleCall2(null, null, URL);
      if (manager.getState() === "ongoing") {
        const cause = CAUSES[name] ?? (() => TALK.forEach((frame) => backend.say(frame)));
        cause(backend);
      }
      await until(() => heard > 0);
      manager.hangUp();
      // A microphone that is granted late is given back.
      await until(() => backend.captures() >= backend.asked());
      await wait(300 * SLOWNESS);
      const log = backend.log().split("\\n").filter((line) => !line.startsWith("onDevicesChanged"));
      const count = (callback) => log.filter((line) => line === callback).length;
      const released = backend.isReleased() ? "released" : "held";
      const facts = [count("onCallStart"), count("onHangUp"), log.at(-1), released, backend.asked(), heard > 0];
      reports.push([name, ...facts].join(" "));
      backend.uninstall();
    }
    return reports.join("\\n");
  });
`;

inPage("a hang-up in any callback is one hang-up, and releases everything", HANG_UPS, (report) => {
  const lines = report.split("\n");
  // Nobody is asked for the microphone of a call that is over.
  const asked = { onCallStart: 0, onStatusUpdate: 0 };
  assert.deepEqual(lines, lines.map((line) => {
    const name = line.slice(0, line.indexOf(" 1"));
    return `${name} 1 1 onHangUp released ${asked[name] ?? 1} true`;
  }));
  assert.equal(lines.length, 17);
});

const REDIAL = `${IMPORTS}
  reporting(async () => {
    const backend = new Backend();
    const callbacks = backend.callbacks(false);
    const hear = callbacks.onHangUp;
    let again;
    callbacks.onHangUp = () => {
      hear();
      again ??= manager.handleCall2(null, null, URL);
    };
    const manager = new CallManager(callbacks);
    const first = manager.handleCall2(null, null, URL);
    // The first call of all waits for the wasm.
    for (let calls = 0; calls < 2; calls += 1) {
      if (calls > 0) {
        again = undefined;
        await backend.waitFor("ongoing");
      }
      manager.hangUp();
    }
    await first;
    await again;
    const redialled = manager.getState();
    manager.hangUp();
    const log = backend.log().split("\\n");
    const count = (callback) => log.filter((line) => line === callback).length;
    await wait(200 * SLOWNESS);
    const facts = [redialled, count("onCallStart"), count("onHangUp"), backend.isReleased()];
    backend.uninstall();
    return facts.join(" ");
  });
`;

inPage("the next call may begin in onHangUp", REDIAL, (report) => assert.equal(report, "ongoing 3 3 true"));

const METHODS = `${IMPORTS}
  class Page {
    #log = [];
    onCallStart() { this.#log.push("start"); }
    onCallError({ code }) { this.#log.push(code); }
    onStatusUpdate(status) { this.#log.push(status); }
    onHangUp() { this.#log.push("end"); }
    log() { return this.#log.splice(0).join(" "); }
  }

  reporting(async () => {
    const backend = new Backend();
    const page = new Page();
    const manager = new CallManager(page);
    // The first call waits for the wasm, the second does not.
    manager.handleCall2(null, null, URL);
    manager.hangUp();
    const waited = page.log();
    await init();
    const call = manager.handleCall2(null, null, URL);
    manager.hangUp();
    await call;
    backend.uninstall();
    return [waited, page.log()].join(" | ");
  });
`;

inPage("callbacks are methods of their object", METHODS, (report) => {
  assert.equal(report, "start end | start starting completed end");
});

const LEAKS = `${IMPORTS}
  reporting(async () => {
    const backend = new Backend();
    await init();
    let left = 100;
    const registry = new FinalizationRegistry(() => { left -= 1; });
    /** Everything that a page gives to a manager uses the manager. */
    const make = async (calls) => {
      const historyElement = document.createElement("div");
      const manager = new CallManager({
        ...backend.callbacks(false),
        onDevicesChanged: () => manager.getState(),
      }, { historyElement });
      historyElement.addEventListener("click", () => manager.hangUp());
      registry.register(manager);
      if (!calls) return;
      await manager.handleCall2(null, null, URL);
      manager.hangUp();
    };
    // A browser may collect some of them while others are made.
    let listened = 0;
    for (let i = 0; i < 100; i += 1) {
      await make(i % 50 === 0);
      listened = Math.max(listened, backend.listeners());
    }
    await collectUntil(() => left === 0 && backend.listeners() === 0, 1_000);
    const facts = [listened > 0, left, backend.listeners()];
    backend.uninstall();
    return facts.join(" ");
  });
`;

inPage("a manager that nobody holds is collected, with its listeners", LEAKS, (report) => assert.equal(report, "true 0 0"));

const KEPT = `${IMPORTS}
  reporting(async () => {
    const backend = new Backend();
    await init();
    await new CallManager(backend.callbacks(false)).handleCall2(null, null, URL);
    await collectUntil(() => false);
    backend.say('{"type":"bye","reason":"time_limit"}');
    await backend.waitFor("onHangUp");
    backend.uninstall();
    return "heard";
  });
`;

inPage("a call goes on when the page lets go of its manager", KEPT, (report) => assert.equal(report, "heard"));

const LISTENERS = `${IMPORTS}
  reporting(async () => {
    const backend = new Backend();
    const callbacks = backend.callbacks(false);
    for (const name of ["onLevels", "onStats", "onDevicesChanged"]) delete callbacks[name];
    const manager = new CallManager(callbacks);
    await init();
    const heard = [];
    const hear = (name) => () => { if (!heard.includes(name)) heard.push(name); };
    await manager.handleCall2(null, null, URL);
    await backend.waitFor("ongoing");
    const before = [manager.callId, backend.listeners()];
    // What costs something is begun in the middle of a call, and left off again.
    const listeners = {
      onLevels: ({ microphone }) => { if (microphone > 0) hear("level")(); },
      onStats: hear("stats"),
      onDevicesChanged: hear("devices"),
    };
    for (const [name, listener] of Object.entries(listeners)) manager.on(name, listener);
    backend.deviceChange();
    await until(() => heard.length === 3);
    for (const [name, listener] of Object.entries(listeners)) manager.off(name, listener);
    const during = [heard.sort().join(" "), backend.listeners()];
    manager.on("onHangUp", () => manager.destroy());
    manager.hangUp();
    await backend.waitFor("onHangUp");
    await wait(0);
    const after = [backend.given("onHangUp"), manager.getState(), manager.callId, backend.listeners(), backend.isReleased()];
    backend.uninstall();
    return JSON.stringify([before, during, after]);
  });
`;

inPage("listeners come and go in a call, and a manager is destroyed in its last callback", LISTENERS, (report) => {
  assert.deepEqual(JSON.parse(report), [
    ["/v2/calls/1", 1], ["devices level stats", 1], ['"local"', "completed", "/v2/calls/1", 0, true],
  ]);
});

const SHOWN = `${IMPORTS}
  reporting(async () => {
    const backend = new Backend();
    backend.addElement("history");
    const manager = new CallManager(backend.callbacks(false), { historyElement: "history" });
    await manager.handleCall2(null, null, URL);
    backend.say('{"type":"transcript","id":"1","originator":"bot","text":"<i>Hello.</i>","final":true,"at_ms":5}');
    await backend.waitFor("Hello");
    const shown = backend.history();
    manager.hangUp();
    await manager.handleCall2(null, null, URL);
    const facts = [shown, backend.history()];
    manager.hangUp();
    backend.uninstall();
    return facts.join("; ");
  });
`;

inPage(
  "the conversation needs no script from text",
  SHOWN,
  (report) => assert.equal(report, "log: line bot=Guide: <i>Hello.</i>; log: "),
  { policy: `${STRICT}; require-trusted-types-for 'script'` },
);
