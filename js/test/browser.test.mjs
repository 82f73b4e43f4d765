// The built package in Chromium: a whole call from `dist/` under a strict Content-Security-Policy.
// Skipped where there is no Chromium; CHROMIUM names another one.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const js = join(dirname(fileURLToPath(import.meta.url)), "..");
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

const PAGE = `<!doctype html><script type="module" src="/page.mjs"></script>`;
const SCRIPT = `
  import { CallManager } from "/index.mjs";
  import { Backend, wait } from "/fake_backend.js";

  const report = (body) => fetch("/report", { method: "POST", body });

  try {
    const backend = new Backend();
    let levels = 0;
    const onLevels = ({ microphone }) => { levels = Math.max(levels, microphone); };
    const manager = new CallManager({ ...backend.callbacks(false), onLevels });
    // Before the wasm is there, as a quick visitor does.
    await manager.handleCall2(null, null, "wss://calls.invalid/session", { page: "test" });
    await backend.waitFor("ongoing");
    await wait(1500);
    manager.hangUp();
    const facts = [backend.log(), levels > 0.001 ? "level" : "no level", backend.isReleased() ? "released" : "held"];
    await report(facts.join("\\n"));
  } catch (error) {
    await report(String(error.stack));
  }
`;

const FILES = {
  "/": ["text/html", () => PAGE],
  "/page.mjs": ["text/javascript", () => SCRIPT],
  "/index.mjs": ["text/javascript", () => readFileSync(join(js, "dist", "index.mjs"))],
  "/worklet.js": ["text/javascript", () => readFileSync(join(js, "dist", "worklet.js"))],
  "/colloquy_sdk_bg.wasm": ["application/wasm", () => readFileSync(join(js, "dist", "colloquy_sdk_bg.wasm"))],
  "/fake_backend.js": [
    "text/javascript",
    () => readFileSync(join(js, "..", "sdk-wasm", "tests", "fake_backend.js")),
  ],
};

test("a call from the built package runs under a strict policy", { skip: !existsSync(chromium), timeout: 60_000 }, async (t) => {
  const profile = mkdtempSync(join(tmpdir(), "colloquy-chromium-"));
  let reported;
  const report = new Promise((resolve) => { reported = resolve; });
  const server = createServer(async (request, response) => {
    if (request.url === "/report") {
      let text = "";
      for await (const chunk of request) text += chunk;
      response.end();
      reported(text);
      return;
    }
    const file = FILES[request.url];
    response.writeHead(file ? 200 : 404, {
      "Content-Type": file?.[0] ?? "text/plain",
      "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; media-src 'self' blob:",
    });
    response.end(file?.[1]());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = execFile(chromium, [
    "--headless", "--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required", "--disable-background-networking", "--remote-debugging-port=0",
    `--user-data-dir=${profile}`, `http://127.0.0.1:${server.address().port}/`,
  ]);
  t.after(async () => {
    const exited = new Promise((resolve) => browser.once("exit", resolve));
    browser.kill();
    await exited;
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  assert.equal(await report, [
    "onCallStart",
    'onStatusUpdate "starting"',
    "onCallStarting",
    "onConnected",
    'onStatusUpdate "ongoing"',
    'onStatusUpdate "completed"',
    "onHangUp",
    "level",
    "released",
  ].join("\n"));
});
