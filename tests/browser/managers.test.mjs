// Managers that share a page, and what calls leave behind.

import assert from "node:assert/strict";

import { scene } from "./stage/stage.mjs";
import { scaled, sleep, SLOWNESS } from "./stage/waiting.mjs";

/** Runs in a page: makes calls with managers of its own, whose every callback is logged. */
const withManagers = (body) => `
  const done = arguments[arguments.length - 1];
  (async () => {
    if (!window.sdk) {
      // In Firefox WebDriver's scripts, and what they import, run in a realm of their own beside the page's.
      window.watchWasm?.(WebAssembly);
      window.sdk = await import("/sdk/index.mjs");
    }
    const { CallManager } = window.sdk;
    const signedUrl = async () => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch("/api/call", { method: "POST", headers, body: "{}" });
      return (await answer.json()).signedUrl;
    };
    const SLOWNESS = ${SLOWNESS};
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const CALLBACKS = [
      "onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onCallStarting", "onConnected", "onUserInfo", "onRagInfo",
      "onTranscript", "onAgentStateChange", "onLevels", "onStats", "onDevicesChanged", "onAudioBlockedChange",
    ];
    const manager = (hear, config) =>
      new CallManager(Object.fromEntries(CALLBACKS.map((name) => [name, (argument) => hear(name, argument)])), config);
    ${body}
  })().then(done, (error) => done({ failed: String(error) + error?.stack }));
`;

async function inPage({ page }, body, withinMs = 50_000) {
  await page.driver.manage().setTimeouts({ script: scaled(withinMs) });
  const result = await page.driver.executeAsyncScript(withManagers(body));
  assert.equal(result.failed ?? null, null);
  return result;
}

scene("three managers in a page each have a good call of their own", { alone: true }, async (stage) => {
  const { calls, heard } = await inPage(stage, `
    const TURNS = [["Hello!", "Hello"], ["How are you?", "I'm well"], ["What can you do?", "What would you like"]];
    const calls = TURNS.map(([, answer]) => {
      const call = { log: [], stats: [], answered: false };
      call.manager = manager((name, argument) => {
        if (["onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onConnected"].includes(name)) {
          if (name === "onCallStart") call.id = argument.callId;
          call.log.push([name, argument?.code ?? argument].filter((told) => typeof told === "string").join(" "));
        }
        if (name === "onStats") call.stats.push(argument);
        if (name === "onTranscript" && argument.originator === "bot") call.answered ||= argument.text.includes(answer);
      });
      return call;
    });
    await Promise.all(calls.map(async ({ manager }) => manager.handleCall2(null, null, await signedUrl())));
    calls.forEach(({ manager }, index) => manager.sendText(TURNS[index][0]));
    const until = async (what, test) => {
      for (let tries = 0; !(await test()); tries += 1) {
        if (tries >= 200 * SLOWNESS) throw new Error("waited in vain: " + what);
        await sleep(50);
      }
    };
    await until("an answer to each", () => calls.every(({ answered }) => answered));
    await until("statistics of each", () => calls.every(({ stats }) => stats.length >= 2));
    await until("sound of each", async () => (await window.earEnergies()).every((energy) => energy > 0));
    const heard = await window.earEnergies();
    calls[0].manager.hangUp();
    await sleep(500);
    if (calls.some(({ manager }, index) => index > 0 && manager.getState() !== "ongoing")) throw new Error("a call did not go on");
    calls.forEach(({ manager }) => manager.hangUp());
    if (calls.some(({ manager, id }) => !id || manager.callId !== id)) throw new Error("a call has another's id");
    return { calls: calls.map(({ log, stats }) => ({ log, stats })), heard };
  `);
  assert.equal(heard.length, 3);
  for (const { log, stats } of calls) {
    assert.deepEqual(log, [
      "onCallStart", "onStatusUpdate starting", "onConnected", "onStatusUpdate ongoing", "onStatusUpdate completed",
      "onHangUp local",
    ]);
    assert.deepEqual(stats.filter(({ quality }) => quality === "poor"), []);
  }
});

const MANY = { COLLOQUY_LIMITS_ATTEMPTS_PER_MINUTE: "1000", COLLOQUY_LIMITS_REQUESTS_PER_MINUTE: "6000" };

/** How many calls are made, and three times as many if that is needed; a complete run is shortened. */
const CALLS = process.env.COLLOQUY_TEST_NIGHTLY ? 100 : 40;

/** How long they may take on a machine of ordinary speed. */
const CALLS_MS = 2_000 * CALLS;
const SETTING = { busy: true, patienceMs: 4 * CALLS_MS, browser: {}, backend: MANY, customer: { callsPerMinute: 1_000 } };

scene("calls leave nothing behind", SETTING, async (stage) => {
  // Each call mostly waits for its connection, so four managers make them side by side. Each of them uses all that opens
  // something: every callback, the conversation, another microphone, the mute.
  const calls = (times) => inPage(stage, `
    const errors = [];
    window.managers ??= [1, 2, 3, 4].map(() => {
      const history = document.body.appendChild(document.createElement("div"));
      const hear = (name, argument) => name === "onCallError" && errors.push(argument.code + ": " + argument.message);
      return manager(hear, { historyElement: history });
    });
    await Promise.all(window.managers.map(async (one) => {
      for (let call = 0; call < ${times / 4}; call += 1) {
        await one.handleCall2(null, null, await signedUrl());
        one.mute(call % 2 === 0);
        if (call === 0) {
          const { microphones } = await CallManager.getAvailableDevices();
          await one.changeDevices(microphones[0].deviceId, null);
        }
        one.hangUp();
      }
    }));
    return { failed: errors[0] };
  `, CALLS_MS);
  // A page without anything of its own, which loads the SDK after the counters.
  await stage.page.driver.get(`${stage.origin}/style.css`);
  const held = await holdings(stage);
  await calls(12);
  let before = await held();
  await calls(CALLS);
  let after = await held();
  if (after.wasmBytes !== before.wasmBytes) {
    // This memory never shrinks, and a moment in which more was going on than before made it grow. What calls leave behind
    // makes it grow again, the more so with twice as many of them.
    before = after;
    await calls(CALLS);
    await calls(CALLS);
    after = await held();
  }
  assert.deepEqual(after.opened, before.opened);
  assert.equal(after.wasmBytes, before.wasmBytes, "the SDK's memory grew");
  for (const [what, amount] of Object.entries(before.browser)) {
    // What the browser itself keeps for a while is a few things, not one or more a call.
    const room = what.endsWith("Size") ? 1_000_000 : 20;
    assert.ok(after.browser[what] <= amount + room, `${what} grew from ${amount} to ${after.browser[what]}`);
  }
});

/** Put into the page before the SDK: counts what is opened and not closed, and finds the memory of the wasm. */
function countOpened() {
  const opened = [];
  const timers = new Set();
  let memory = null;
  // What is closed may go; what is open stays anyway.
  const keep = (name, thing, isOpen) => {
    const kept = new WeakRef(thing);
    opened.push([name, () => kept.deref() && isOpen(kept.deref())]);
  };
  for (const [name, isOpen] of [
    ["RTCPeerConnection", (peer) => peer.connectionState !== "closed"],
    ["AudioContext", (context) => context.state !== "closed"],
    ["WebSocket", (socket) => socket.readyState < WebSocket.CLOSING],
  ]) {
    window[name] = class extends window[name] {
      constructor(...given) {
        super(...given);
        keep(name, this, isOpen);
      }
    };
  }
  const { getUserMedia } = MediaDevices.prototype;
  MediaDevices.prototype.getUserMedia = async function ask(wanted) {
    const stream = await getUserMedia.call(this, wanted);
    stream.getTracks().forEach((track) => keep("track", track, ({ readyState }) => readyState === "live"));
    return stream;
  };
  const { setTimeout, clearTimeout } = window;
  window.setTimeout = (work, ...rest) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, ...rest);
    timers.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => {
    timers.delete(timer);
    clearTimeout(timer);
  };
  window.watchWasm = (WebAssembly) => {
    for (const way of ["instantiate", "instantiateStreaming"]) {
      const native = WebAssembly[way];
      WebAssembly[way] = async (...given) => {
        const made = await native(...given);
        memory = Object.values(made.instance.exports).find((exported) => exported instanceof WebAssembly.Memory);
        return made;
      };
    }
  };
  window.holdings = () => {
    const held = { RTCPeerConnection: 0, AudioContext: 0, WebSocket: 0, track: 0, timer: timers.size };
    for (const [name, isOpen] of opened) if (isOpen()) held[name] += 1;
    return { opened: held, everOpened: opened.length, wasmBytes: memory.buffer.byteLength };
  };
}

/** What the page holds: what was opened and not closed, the memory of the wasm, and what Chromium itself counts. */
async function holdings({ browser: { name, driver } }) {
  await driver.executeScript(countOpened);
  if (name === "chromium") await driver.sendDevToolsCommand("Performance.enable");
  return async () => {
    // The last of what is closed is closed a moment later, with the ping that is due within it.
    await sleep(scaled(1_000));
    const held = await driver.executeScript("return window.holdings()");
    assert.ok(held.everOpened > 12, "nothing is counted");
    if (name !== "chromium") return { ...held, browser: {} };
    await driver.sendDevToolsCommand("HeapProfiler.collectGarbage");
    await sleep(scaled(500));
    await driver.sendDevToolsCommand("HeapProfiler.collectGarbage");
    const { metrics } = await driver.sendAndGetDevToolsCommand("Performance.getMetrics");
    const counted = Object.fromEntries(metrics.map((metric) => [metric.name, metric.value]));
    const { Nodes, JSEventListeners, AudioHandlers, AudioWorkletProcessors, RTCPeerConnections, JSHeapUsedSize } = counted;
    return { ...held, browser: { Nodes, JSEventListeners, AudioHandlers, AudioWorkletProcessors, RTCPeerConnections, JSHeapUsedSize } };
  };
}
