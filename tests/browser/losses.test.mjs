// What a call goes through: connections that break, pages that are left, hidden or shared by two calls, a hundred calls.

import assert from "node:assert/strict";
import http from "node:http";
import { networkInterfaces } from "node:os";

import { understood } from "./stage/speech.mjs";
import { scene } from "./stage/stage.mjs";
import { sleep, until } from "./stage/waiting.mjs";

/** Longer than it takes from the last word to the visitor's line. */
const NO_TURN_MS = 2_000;

const names = ({ callbacks }) => callbacks.map(({ name }) => name);
const count = (page, name) => names(page).filter((other) => other === name).length;
const states = ({ callbacks }) =>
  callbacks.filter(({ name }) => name === "onStatusUpdate").map(({ text }) => text.match(/"(\w+)"/)[1]);

// The signed URL is good for two seconds, and the outage is longer: it is the resume token that opens the session again.
const SHORT = { COLLOQUY_CALLS_CONNECT_SECONDS: "2" };

scene("signalling that is lost comes back while the talk goes on", { busy: true, wire: true, backend: SHORT }, async (stage) => {
  const { page, wire } = stage;
  await page.call();
  const from = await page.ears.now();
  wire.cut();
  await page.shows("the loss", ({ state }) => state === "reconnecting");
  await stage.say();
  wire.mend();
  await page.shows("the connection", ({ state }) => state === "ongoing");
  await page.says("user", "what was said meanwhile", understood);
  await page.answers(from);

  await page.click("mute");
  wire.cut();
  await page.shows("another loss", ({ state }) => state === "reconnecting");
  wire.mend();
  await page.shows("the connection again", ({ state }) => state === "ongoing");
  await stage.say();
  await sleep(NO_TURN_MS);
  const { muted, lines } = await page.read();
  assert.equal(muted, true);
  assert.equal(lines.filter(({ originator }) => originator === "user").length, 1, "the muted microphone was heard");

  await page.click("hang-up");
  const ended = await page.ended();
  assert.deepEqual(states(ended), ["starting", "ongoing", "reconnecting", "ongoing", "reconnecting", "ongoing", "completed"]);
  assert.equal(count(ended, "onConnected"), 1);
  assert.equal(count(ended, "onHangUp"), 1);
  assert.equal(ended.error, null);
});

scene("a server that stands still for a while finds the call again", { backend: { COLLOQUY_CALLS_HEARTBEAT_SECONDS: "2" } }, async (stage) => {
  const { page, backend } = stage;
  await page.call();
  backend.program.signal("SIGSTOP");
  await page.shows("the loss", ({ state }) => state === "reconnecting", 20_000);
  backend.program.signal("SIGCONT");
  await page.shows("the connection", ({ state }) => state === "ongoing", 15_000);
  const from = await page.ears.now();
  await page.type("What is your name?");
  await until("the answer is heard", () => page.ears.audible("heard", from));
  await page.click("hang-up");
  assert.equal(count(await page.ended(), "onHangUp"), 1);
});

/** Put into the page: calls, and hangs up as soon as this callback came. */
function hangUpAfter(callback) {
  document.getElementById("call").click();
  const timer = setInterval(() => {
    if (!document.querySelector(`[data-callback=${callback}]`)) return;
    clearInterval(timer);
    const button = document.getElementById("hang-up");
    button.click();
    button.click();
  }, 1);
}

/** Waits until the backend, too, knows that the call is over, and gives its state. */
const over = (stage) =>
  until("the call is over at the backend", async () => {
    const { data } = await stage.backend.status(stage.callId);
    return ["completed", "error"].includes(data.state) && data.state;
  }, { everyMs: 500 });

const HANG_UPS = [
  // Nobody has connected, so there is nobody to say goodbye: the signed URL expires.
  { moment: "begins", callback: "onCallStart", backend: { COLLOQUY_CALLS_CONNECT_SECONDS: "3" } },
  { moment: "connects", callback: "onCallStarting" },
];

for (const { moment, callback, backend } of HANG_UPS) {
  scene(`a hang-up while the call ${moment} is one hang-up`, { backend }, async (stage) => {
    const { page } = stage;
    await page.driver.executeScript(hangUpAfter, callback);
    await page.ended();
    await over(stage);
    const later = await page.read();
    assert.equal(count(later, "onCallStart"), 1);
    assert.equal(count(later, "onHangUp"), 1);
    assert.equal(names(later).at(-1), "onHangUp");
    assert.equal(later.error, null);
    await page.call();
  });
}

scene("a hang-up while the connection is lost ends the call", { wire: true }, async (stage) => {
  const { page, wire } = stage;
  await page.call();
  wire.cut();
  await page.shows("the loss", ({ state }) => state === "reconnecting");
  // By now the SDK waits a while between its attempts.
  await sleep(2_000);
  wire.mend();
  await page.click("hang-up");
  const ended = await page.ended();
  assert.equal(states(ended).at(-1), "completed");
  assert.equal(ended.error, null);
  assert.equal(await over(stage), "completed");
});

/** Put into the page: types until a turn is refused, but not for ever; gives how many were taken. */
function typeUntilRefused() {
  const field = document.getElementById("text");
  for (let turn = 0; turn < 200; turn += 1) {
    field.value = `This is turn ${turn}.`;
    document.getElementById("typed").requestSubmit();
    if (field.value) return turn;
  }
  return null;
}

scene("typed turns wait for a lost connection, and the page says when there are too many", { wire: true }, async ({ page, wire }) => {
  await page.call();
  wire.cut();
  await page.shows("the loss", ({ state }) => state === "reconnecting");
  const taken = await page.driver.executeScript(typeUntilRefused);
  assert.ok(taken > 10, `${taken} turns were taken`);
  assert.match((await page.read()).unsent, /^That was not sent\./);
  assert.equal(await page.driver.executeScript("return document.getElementById('text').value"), `This is turn ${taken}.`);
  await page.click("hang-up");
  assert.equal((await page.ended()).unsent, "");
});

scene("a page that is left and come back to makes another call", { character: "greeter" }, async (stage) => {
  const { page } = stage;
  const leaveAndComeBack = async () => {
    await page.driver.get(`${stage.origin}/icon.svg`);
    await until("the page is left", async () => stage.callId === undefined || (await stage.backend.status(stage.callId)).data.state === "completed");
    await page.driver.navigate().back();
    await page.isReady();
    return page.driver.executeScript("return document.body.dataset.left === 'yes'");
  };
  // A browser that has much to do gives up a page now and then.
  let kept = false;
  for (let tries = 0; !kept && tries < 3; tries += 1) {
    await page.driver.executeScript("document.body.dataset.left = 'yes'");
    kept = await leaveAndComeBack();
  }
  assert.ok(kept, "the page did not come out of the browser's cache");
  await page.call();

  kept = await leaveAndComeBack();
  // Firefox keeps no page that had a connection when it was left, and loads it anew.
  assert.equal(kept, stage.browser.name === "chromium");
  if (kept) {
    const back = await page.read();
    assert.equal(count(back, "onHangUp"), 1);
    assert.equal(back.inCall, false);
  } else {
    await page.ears.open();
  }
  await page.call();
  await page.says("bot", "its greeting");
});

scene("a hidden page stays in its call", { busy: true }, async (stage) => {
  const { page } = stage;
  await page.call();
  await page.driver.executeScript(
    'document.addEventListener("visibilitychange", () => (window.seen ??= []).push(document.visibilityState))',
  );
  const own = await page.driver.getWindowHandle();
  await page.driver.switchTo().newWindow("tab");
  await stage.say();
  await sleep(2_000);
  await page.driver.switchTo().window(own);
  await page.says("user", "the words said while it was hidden", understood);
  assert.equal((await page.read()).state, "ongoing");
  assert.deepEqual(await page.driver.executeScript("return window.seen"), ["hidden", "visible"]);
});

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

async function inPage({ page }, body) {
  await page.driver.manage().setTimeouts({ script: 50_000 });
  const result = await page.driver.executeAsyncScript(withManagers(body));
  assert.equal(result.failed ?? null, null);
  return result;
}

scene("three managers in a page each have a good call of their own", { alone: true }, async (stage) => {
  const { calls, heard } = await inPage(stage, `
    const calls = [1, 2, 3].map((number) => {
      const call = { log: [], stats: [], answered: false };
      call.manager = manager((name, argument) => {
        if (["onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onConnected"].includes(name)) {
          call.log.push([name, argument?.code ?? argument].filter(Boolean).join(" "));
        }
        if (name === "onStats") call.stats.push(argument);
        if (name === "onTranscript" && argument.originator === "bot") call.answered ||= argument.text.includes("turn " + number);
      });
      return call;
    });
    await Promise.all(calls.map(async ({ manager }) => manager.handleCall2(null, null, await signedUrl())));
    calls.forEach(({ manager }, index) => manager.sendText("This is turn " + (index + 1)));
    const until = async (what, test) => {
      for (let tries = 0; !(await test()); tries += 1) {
        if (tries === 200) throw new Error("waited in vain: " + what);
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
    return { calls: calls.map(({ log, stats }) => ({ log, stats })), heard };
  `);
  assert.equal(heard.length, 3);
  for (const { log, stats } of calls) {
    assert.deepEqual(log, [
      "onCallStart", "onStatusUpdate starting", "onConnected", "onStatusUpdate ongoing", "onStatusUpdate completed", "onHangUp",
    ]);
    assert.deepEqual(stats.filter(({ quality }) => quality === "poor"), []);
  }
});

const MANY = { COLLOQUY_LIMITS_ATTEMPTS_PER_MINUTE: "1000", COLLOQUY_LIMITS_REQUESTS_PER_MINUTE: "6000" };

scene("a hundred calls leave nothing behind", { busy: true, browser: {}, backend: MANY, customer: { callsPerMinute: 1_000 } }, async (stage) => {
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
  `);
  // A page without anything of its own, which loads the SDK after the counters.
  await stage.page.driver.get(`${stage.origin}/style.css`);
  const held = await holdings(stage);
  await calls(12);
  let before = await held();
  await calls(100);
  let after = await held();
  if (after.wasmBytes !== before.wasmBytes) {
    // This memory never shrinks, and a moment in which more was going on than before made it grow. What calls leave behind
    // makes it grow again, the more so with twice as many of them.
    before = after;
    await calls(200);
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
    await sleep(1_000);
    const held = await driver.executeScript("return window.holdings()");
    assert.ok(held.everOpened > 12, "nothing is counted");
    if (name !== "chromium") return { ...held, browser: {} };
    await driver.sendDevToolsCommand("HeapProfiler.collectGarbage");
    await sleep(500);
    await driver.sendDevToolsCommand("HeapProfiler.collectGarbage");
    const { metrics } = await driver.sendAndGetDevToolsCommand("Performance.getMetrics");
    const counted = Object.fromEntries(metrics.map((metric) => [metric.name, metric.value]));
    const { Nodes, JSEventListeners, AudioHandlers, AudioWorkletProcessors, RTCPeerConnections, JSHeapUsedSize } = counted;
    return { ...held, browser: { Nodes, JSEventListeners, AudioHandlers, AudioWorkletProcessors, RTCPeerConnections, JSHeapUsedSize } };
  };
}

scene("a page without HTTPS says so", {}, async (stage) => {
  const address = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === "IPv4" && !internal);
  assert.ok(address, "this machine has no address but loopback");
  const inside = new URL(stage.origin).port;
  const outside = http.createServer((request, response) => {
    const asked = http.request({ port: inside, path: request.url, method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    request.pipe(asked);
  });
  await new Promise((resolve) => outside.listen(0, address.address, resolve));
  try {
    await stage.page.driver.get(`http://${address.address}:${outside.address().port}/`);
    await stage.page.driver.findElement({ id: "call" }).click();
    const { error, callbacks } = await stage.page.shows("the error", ({ error }) => error);
    assert.equal(error.code, "INSECURE_CONTEXT");
    assert.equal(callbacks.at(-1).name, "onHangUp");
  } finally {
    outside.closeAllConnections();
    outside.close();
  }
});
