// The SDK in WebKit. Debian's has no WebRTC, so a call ends with the code that says so; everything else of the SDK runs:
// the wasm, the microphone through the worklet, the session's socket, the conversation. For that the page gets a peer
// connection that never connects.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { ROOT } from "./stage/backend.mjs";
import { scaled } from "./stage/waiting.mjs";
import { openWebKit } from "./stage/webkit.mjs";

const TYPES = { ".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm" };
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ws://localhost:1";

let browser;
let server;

/** Opens the page anew and runs this in it, with a manager whose callbacks are logged. */
async function inPage(body) {
  await browser.driver.get(`http://localhost:${server.address().port}/`);
  await browser.driver.manage().setTimeouts({ script: scaled(30_000) });
  const result = await browser.driver.executeAsyncScript(`
    const done = arguments[arguments.length - 1];
    (async () => {
      const { CallManager } = await import("/index.mjs");
      const log = [];
      const hear = (name) => (argument) => log.push([name, argument?.code ?? argument?.text ?? argument?.callId ?? argument].filter((told) => typeof told === "string").join(" "));
      const names = ["onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onCallStarting", "onTranscript"];
      const callbacks = Object.fromEntries(names.map((name) => [name, hear(name)]));
      const signedUrl = "ws://localhost:1/v2/calls/1/session";
      const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      ${body}
    })().then(done, (error) => done({ failed: String(error) + error.stack }));
  `);
  assert.equal(result.failed ?? null, null);
  return result;
}

describe("webkit", () => {
  before(async () => {
    server = http.createServer(({ url }, response) => {
      response.setHeader("content-security-policy", POLICY);
      if (url === "/") {
        response.setHeader("content-type", "text/html");
        response.end('<!doctype html><title>page</title><div id="history"></div>');
        return;
      }
      const name = path.basename(url);
      response.setHeader("content-type", TYPES[path.extname(name)] ?? "text/plain");
      response.end(path.extname(name) in TYPES ? readFileSync(path.join(ROOT, "js/dist", name)) : "");
    });
    await new Promise((resolve) => server.listen(0, "localhost", resolve));
    browser = await openWebKit();
  });

  after(async () => {
    await browser?.close();
    server.closeAllConnections();
    server.close();
  });

  test("without WebRTC a call ends with the code that says so", async () => {
    const { log, report, missing } = await inPage(`
      const report = await CallManager.preCallCheck();
      await new CallManager(callbacks).handleCall2(null, null, signedUrl);
      return { log, report, missing: typeof RTCPeerConnection === "undefined" };
    `);
    assert.ok(missing, "this WebKit has WebRTC: let it make the calls of the other tests");
    assert.deepEqual(log, ["onCallStart /v2/calls/1", "onCallError UNSUPPORTED_BROWSER", "onHangUp error"]);
    assert.equal(report.ok, false);
    assert.equal(report.media.code, "UNSUPPORTED_BROWSER");
    assert.ok(report.microphones > 0);
  });

  test("all but the media runs, and is released", async () => {
    const { log, frames, lines, live, contexts } = await inPage(`
      const frames = [];
      const tracks = [];
      const contexts = [];
      window.RTCPeerConnection = class extends EventTarget {
        addTransceiver() { return { sender: { replaceTrack: () => Promise.resolve() } }; }
        createOffer() { return Promise.resolve({ type: "offer", sdp: "v=0" }); }
        setLocalDescription() { return Promise.resolve(); }
        close() {}
      };
      window.WebSocket = class extends EventTarget {
        readyState = 0;
        constructor() {
          super();
          window.socket = this;
          setTimeout(() => { this.readyState = 1; this.dispatchEvent(new Event("open")); }, 5);
        }
        send(frame) { frames.push(JSON.parse(frame).type); }
        close() {}
        say(message) { this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) })); }
      };
      const devices = navigator.mediaDevices;
      const native = devices.getUserMedia.bind(devices);
      devices.getUserMedia = async (wanted) => {
        const stream = await native(wanted);
        tracks.push(...stream.getTracks());
        return stream;
      };
      const createSource = AudioContext.prototype.createMediaStreamSource;
      AudioContext.prototype.createMediaStreamSource = function create(stream) {
        contexts.push(this);
        return createSource.call(this, stream);
      };
      const until = async (test) => { for (let i = 0; i < ${scaled(200)} && !test(); i += 1) await sleep(50); };
      const manager = new CallManager(callbacks, { historyElement: "history" });
      const started = manager.handleCall2(null, null, signedUrl);
      await until(() => frames.includes("hello"));
      window.socket.say({ type: "welcome", call_id: "1", character: "Guide", ice_servers: [], resume: "t", time_limit_seconds: 60, heartbeat_seconds: 5 });
      await until(() => frames.includes("offer"));
      window.socket.say({ type: "transcript", id: "1", originator: "bot", text: "Hello.", final: true, at_ms: 1 });
      const graph = contexts.length;
      const live = tracks.map(({ readyState }) => readyState);
      const lines = [...document.getElementById("history").shadowRoot.querySelectorAll("p")].map((line) => line.textContent);
      manager.hangUp();
      await started;
      await sleep(${scaled(500)});
      return {
        log, frames, lines,
        live: [live, tracks.map(({ readyState }) => readyState)],
        contexts: [graph, contexts.map(({ state }) => state)],
      };
    `);
    assert.deepEqual(log, [
      "onCallStart /v2/calls/1", "onStatusUpdate starting", "onCallStarting", "onTranscript Hello.",
      "onStatusUpdate completed", "onHangUp local",
    ]);
    assert.deepEqual(frames, ["hello", "offer", "hang_up"]);
    assert.deepEqual(lines, ["Guide: Hello."]);
    assert.deepEqual(live, [["live"], ["ended"]]);
    assert.deepEqual(contexts, [1, ["closed"]]);
  });
});
