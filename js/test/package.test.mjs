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
/** What a page may load at most; the aim is 60,000. */
const BUDGET_BYTES = 64_000;

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
  assert.throws(
    () => new CallManager({ ...callbacks(), onLevels: 1 }),
    { code: "INVALID_ARGUMENT", message: /callbacks\.onLevels must be a function/ },
  );
});

test("a wrong key of the configuration is named when the manager is made", async () => {
  const circle = {};
  circle.circle = circle;
  for (const [config, name] of [
    ["config", "config must be an object"],
    [{ characterRole: 7 }, "config.characterRole must be a string"],
    [{ callTimeLimitSeconds: "600" }, "config.callTimeLimitSeconds must be a whole number from 1 to 14400"],
    ...[Number.NaN, 0, 1.5, 14_401].map((seconds) => [{ callTimeLimitSeconds: seconds }, "config.callTimeLimitSeconds"]),
    [{ characterParams: [] }, "config.characterParams must be an object"],
    [{ characterParams: circle }, "config.characterParams"],
    [{ audio: 7 }, "config.audio must be an object"],
    [{ audio: { echoCancellation: "yes" } }, "config.audio.echoCancellation must be a boolean"],
    [{ iceServers: {} }, "config.iceServers must be an array"],
    [{ iceTransportPolicy: "direct" }, "config.iceTransportPolicy must be all or relay"],
    [{ wakeLock: 1 }, "config.wakeLock must be a boolean"],
    ...["calls.example.org", "localhost:8080", "//calls.example.org", "/voice", "wss://calls.example.org", "https://", "https:calls", 7].map(
      (url) => [{ backendUrl: url }, "config.backendUrl must be a URL that begins with https:// or http://"],
    ),
    [{ BACKEND_URL: "localhost:8080" }, "config.BACKEND_URL must be a URL"],
    [{ historyElement: 1 }, "config.historyElement must be an element or its id"],
  ]) {
    const named = (error) => error instanceof CallError && error.code === "INVALID_ARGUMENT" && error.message.includes(name);
    assert.throws(() => new CallManager(callbacks(), config), named, name);
    await assert.rejects(CallManager.preCallCheck(config), named, name);
  }
  // A browser looks into the servers, too.
  globalThis.RTCPeerConnection = class {
    constructor({ iceServers: [{ urls }] }) {
      if (!urls.startsWith("turn:")) throw new SyntaxError(urls);
    }

    close() {}
  };
  const calling = (urls) => () => new CallManager(callbacks(), { iceServers: [{ urls }] });
  try {
    assert.throws(calling("host:3478"), { code: "INVALID_ARGUMENT", message: /config\.iceServers must be an array of ICE servers/ });
    assert.doesNotThrow(calling("turn:host:3478"));
  } finally {
    delete globalThis.RTCPeerConnection;
  }
  // Absent ones have their defaults, and a server has no elements. The longest limit is one.
  const absent = { callTimeLimitSeconds: 14_400, characterRole: null, audio: null, iceServers: undefined, historyElement: {}, characterParams: {} };
  assert.equal(new CallManager(callbacks(), absent).getState(), "idle");
  for (const backendUrl of ["https://calls.example.org/voice/", "HTTP://localhost:8080", "http://[::1]:8080", "", null]) {
    assert.equal(new CallManager(callbacks(), { backendUrl, BACKEND_URL: backendUrl }).getState(), "idle");
  }
});

test("a name that nobody knows is a warning", (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const shout = { ...callbacks(), onTranscipt() {}, state: 1 };
  const config = { personRole: "Ann", characterrole: "Guide", audio: { noiseSupression: false }, toString: 1 };
  assert.equal(new CallManager(shout, config).getState(), "idle");
  const words = warned.mock.calls.map(({ arguments: [text] }) => text.match(/^colloquy: (\S+) is not known/)?.[1]);
  assert.deepEqual(words, ["callbacks.onTranscipt", "config.characterrole", "config.toString", "config.audio.noiseSupression"]);
});

const SIGNED_URL = "wss://calls.invalid/v2/calls/7/session?signature=1";

test("several listeners hear beside a callback, until they are taken away", async (t) => {
  const log = [];
  const thrown = t.mock.method(console, "error", () => {});
  const manager = new CallManager({
    ...callbacks(),
    onCallStart: ({ callId }) => log.push(`callback ${callId}`),
    onHangUp: (reason) => log.push(`callback ${reason}`),
  });
  const hear = (who) => (argument) => log.push(`${who} ${argument.callId ?? argument}`);
  const second = hear("second");
  assert.equal(manager.on("onCallStart", hear("first")).on("onCallStart", second).on("onCallStart", second), manager);
  manager.on("onHangUp", () => { throw new Error("a listener's"); }).on("onHangUp", hear("last"));
  const call = async (...given) => {
    manager.handleCall2(...given);
    manager.hangUp();
    return log.splice(0);
  };
  assert.equal(manager.callId, null);
  assert.deepEqual(await call(null, null, SIGNED_URL), [
    "callback /v2/calls/7", "first /v2/calls/7", "second /v2/calls/7", "callback local", "last local",
  ]);
  assert.equal(manager.callId, "/v2/calls/7");
  assert.equal(thrown.mock.callCount(), 1);
  manager.off("onCallStart", second).off("onCallStart", () => {}).off("onRing", second);
  assert.deepEqual(await call("repo:acme", "guide", "key"), ["callback null", "first [object Object]", "callback local", "last local"]);
  assert.equal(manager.callId, null);
  const refused = { code: "INVALID_ARGUMENT" };
  assert.throws(() => manager.on("onRing", second), { ...refused, message: /onRing/ });
  assert.throws(() => manager.on("onHangUp", "text"), { ...refused, message: /listener/ });
});

test("a manager tells whether it is muted", () => {
  const manager = new CallManager(callbacks());
  assert.equal(manager.isMuted, false);
  manager.mute(true);
  assert.equal(manager.isMuted, true);
});

test("a destroyed manager has ended its call and makes no other", async () => {
  const log = [];
  const manager = new CallManager({ ...callbacks(), onHangUp: (reason) => log.push(reason) });
  const call = manager.handleCall2(null, null, SIGNED_URL);
  manager.destroy();
  manager.destroy();
  await call;
  assert.deepEqual(log, ["local"]);
  assert.deepEqual([manager.getState(), manager.callId, manager.isMuted], ["completed", "/v2/calls/7", false]);
  await assert.rejects(manager.handleCall2(null, null, SIGNED_URL), { code: "INVALID_ARGUMENT", message: /destroyed/ });
  manager.mute(true);
  manager.hangUp();
  assert.equal(manager.sendText("hello"), false);
  await manager.startAudio();
  assert.deepEqual(log, ["local"]);
});

/** A manager and what its callbacks hear. */
function listening() {
  const log = [];
  const hear = (name) => (argument) => log.push(argument?.code ? `${name} ${argument.code} ${argument.fatal}` : name);
  const names = ["onCallStart", "onCallError", "onHangUp", "onStatusUpdate"];
  return { log, manager: new CallManager(Object.fromEntries(names.map((name) => [name, hear(name)]))) };
}

test("a wasm that cannot be loaded ends the call with its code, and may be tried again", async () => {
  const { log, manager } = listening();
  const failed = { code: "LOAD_FAILED", message: /wasmUrl/, fatal: false };
  await assert.rejects(init({ wasmUrl: "data:application/wasm,broken" }), failed);
  // No call ends with these.
  const operations = [
    CallManager.getAvailableDevices, CallManager.preCallCheck, () => manager.changeDevices("desk", null),
  ];
  for (const operation of operations) await assert.rejects(operation(), { ...failed, message: /./ });
  // Node's fetch reads no file URLs, so the default does not load here either.
  await manager.handleCall2(null, null, "wss://calls.invalid/session");
  assert.deepEqual(log, ["onCallStart", "onCallError LOAD_FAILED true", "onHangUp"]);
  assert.equal(manager.getState(), "error");
});

test("the end of a call that could not be loaded comes last, even when it is hung up before", async () => {
  const log = [];
  const hear = (name) => () => log.push(name);
  const manager = new CallManager({
    onCallStart: hear("onCallStart"),
    onCallError: hear("onCallError"),
    onHangUp: hear("onHangUp"),
    onStatusUpdate: hear("onStatusUpdate"),
    onError() {
      log.push("onError");
      manager.hangUp();
    },
  });
  await manager.handleCall2(null, null, "wss://calls.invalid/session");
  assert.deepEqual(log, ["onCallStart", "onError", "onCallError", "onHangUp"]);
});

test("a call begins at once and ends at once while the wasm is being loaded", async () => {
  const { log, manager } = listening();
  const url = "wss://calls.invalid/session";
  const first = manager.handleCall2(null, null, url);
  assert.deepEqual(log.splice(0), ["onCallStart"]);
  assert.equal(manager.getState(), "starting");
  await assert.rejects(manager.handleCall2(null, null, url), { code: "CALL_ACTIVE" });
  manager.hangUp();
  manager.hangUp();
  assert.deepEqual(log.splice(0), ["onHangUp"]);
  assert.equal(manager.getState(), "completed");
  // The manager is free for the next call, whose failure is its own.
  const second = manager.handleCall2(null, null, url);
  await first;
  assert.deepEqual(log.splice(0), ["onCallStart"]);
  await second;
  assert.deepEqual(log, ["onCallError LOAD_FAILED true", "onHangUp"]);
});

test("the wasm loads, and without a browser a call says what is missing", async () => {
  const { log, manager } = listening();
  const bytes = readFileSync(join(js, "dist", "colloquy_sdk_bg.wasm"));
  const wasmUrl = `data:application/wasm;base64,${bytes.toString("base64")}`;
  // The network is away at first; the next try is for the same place.
  const { fetch } = globalThis;
  globalThis.fetch = () => Promise.reject(new TypeError("away"));
  await assert.rejects(init({ wasmUrl }), { code: "LOAD_FAILED" });
  globalThis.fetch = fetch;
  await init();
  for (let i = 0; i < 2; i += 1) {
    const call = manager.handleCall2(null, null, "wss://calls.invalid/session");
    assert.equal(log[0], "onCallStart");
    await call;
    assert.deepEqual(log.splice(0), ["onCallStart", "onCallError UNSUPPORTED_BROWSER true", "onHangUp"]);
    assert.equal(manager.getState(), "error");
  }
});

test("the package in one file loads without any other", async () => {
  await inline.init();
  const { CallManager: Inline } = inline;
  await assert.rejects(Inline.getAvailableDevices(), { code: "UNSUPPORTED_BROWSER", fatal: false });
  globalThis.isSecureContext = false;
  await assert.rejects(Inline.getAvailableDevices(), { code: "INSECURE_CONTEXT", fatal: false });
  delete globalThis.isSecureContext;
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

test("links of the packed pages lead to what is packed, or to the repository", () => {
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const [{ files }] = JSON.parse(execFileSync(npm, ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: js, encoding: "utf8" }));
  const packed = new Set(files.map(({ path }) => path));
  const pages = [...packed].filter((path) => path.endsWith(".md"));
  assert.ok(pages.includes("README.md") && pages.includes("CHANGELOG.md"), String(pages));
  const { repository } = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));
  const home = `${repository.url.replace(/^git\+|\.git$/g, "")}/blob/main/`;
  let links = 0;
  for (const page of pages) {
    const words = readFileSync(join(js, page), "utf8");
    for (const [, target] of words.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      links += 1;
      if (target.startsWith(home)) {
        assert.ok(existsSync(join(js, "..", target.slice(home.length))), `${page}: ${target}`);
      } else if (!/^https?:/.test(target)) {
        assert.ok(packed.has(join(dirname(page), target)), `${page}: ${target} is not packed`);
      }
    }
  }
  assert.ok(links > 0);
});

test("publint finds nothing in the packed package", async () => {
  const { messages } = await publint({ pkgDir: js, pack: "npm", strict: true });
  assert.deepEqual(messages, []);
});

for (const compiler of ["typescript", "typescript5"]) {
  const { resolve } = createRequire(import.meta.url);
  const { version } = JSON.parse(readFileSync(resolve(`${compiler}/package.json`), "utf8"));
  test(`the types fit their use, TypeScript ${version}`, () => {
    const tsc = join(dirname(resolve(`${compiler}/package.json`)), "bin", "tsc");
    execFileSync(process.execPath, [tsc, "--noEmit", "-p", join(js, "test")], { stdio: "inherit" });
  });
}

test("types and README have every error code of the crate", () => {
  const source = readFileSync(join(js, "..", "sdk-wasm", "protocol", "src", "errors.rs"), "utf8");
  const codes = [...source.matchAll(/^ {4}\w+ = "([A-Z_]+)":/gm)].map(([, code]) => code);
  assert.ok(codes.length > 15);
  for (const file of ["src/index.d.ts", "README.md"]) {
    const text = readFileSync(join(js, file), "utf8");
    for (const code of [...codes, "LOAD_FAILED"]) assert.match(text, new RegExp(`\\b${code}\\b`), `${code} in ${file}`);
  }
});

test("everything that knows callbacks by name knows the same", () => {
  const names = (file, pattern = /"(on[A-Z]\w+)"/g) => {
    const found = [...readFileSync(join(js, file), "utf8").matchAll(pattern)].map(([, name]) => name);
    return [...new Set(found)].sort();
  };
  const documented = names("src/index.d.ts", /^ {2}(on[A-Z]\w+)\??\(/gm);
  assert.ok(documented.length > 10);
  assert.deepEqual(names("src/check.mjs"), documented);
  assert.deepEqual(names("src/react.mjs").filter((name) => documented.includes(name)), documented);
  const crate = ["driver", "events", "reports", "sound"].flatMap((file) => names(`../sdk-wasm/src/${file}.rs`));
  assert.deepEqual([...new Set(crate)].sort(), documented);
  // What the SDK's own tests listen to.
  assert.deepEqual(names("../sdk-wasm/tests/fake_backend.js").filter((name) => documented.includes(name)), documented);
});

test("a second call is refused in the same words by the loader and the wasm", async () => {
  const { CALL_ACTIVE: [code, message] } = await import("../src/call-active.mjs");
  const source = readFileSync(join(js, "..", "sdk-wasm", "protocol", "src", "errors.rs"), "utf8");
  assert.ok(source.includes(`"${code}":\n        "${message}";`));
});

test("JavaScript, worklet and wasm together keep the size budget", (t) => {
  const sizes = measure(join(js, "dist"));
  t.diagnostic(`\n${describe(sizes)}`);
  const { entry, gzipped } = sizes[0];
  assert.equal(entry, "@colloquy/sdk");
  assert.ok(gzipped <= BUDGET_BYTES, `${gzipped} bytes`);
  // What the READMEs say of it.
  const kilobytes = (name) => `${Math.ceil(sizes.find((size) => size.entry === `@colloquy/sdk${name}`).gzipped / 1000)} kB`;
  const readme = readFileSync(join(js, "README.md"), "utf8");
  for (const name of ["", "/inline", "/global"]) {
    assert.match(readme, new RegExp(`^\\| \`@colloquy/sdk${name}\` \\|.*\\| ${kilobytes(name)} \\|$`, "m"));
  }
  assert.ok(readFileSync(join(js, "..", "README.md"), "utf8").includes(kilobytes("")), kilobytes(""));
});

test("the package has its licences and its guides, and nothing of how they are made", () => {
  const packed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: js, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const [{ files }] = JSON.parse(packed);
  const paths = files.map(({ path }) => path);
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    assert.ok(paths.includes(licence), licence);
    assert.equal(readFileSync(join(js, licence), "utf8"), readFileSync(join(js, "..", licence), "utf8"));
  }
  for (const guide of ["README.md", "CHANGELOG.md", "docs/README.md", "docs/first-call.md", "docs/api.md"]) assert.ok(paths.includes(guide), guide);
  assert.deepEqual(paths.filter((path) => /\.mjs$/.test(path) && !path.startsWith("dist/")), []);
});
