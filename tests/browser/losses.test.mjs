// What a call goes through: connections that break, pages that are left, hidden or shared by two calls, a hundred calls.

import assert from "node:assert/strict";
import http from "node:http";
import { networkInterfaces } from "node:os";

import { understood } from "./stage/speech.mjs";
import { scene, sharedStage } from "./stage/stage.mjs";
import { sleep, until } from "./stage/waiting.mjs";

sharedStage();

const names = ({ callbacks }) => callbacks.map(({ name }) => name);
const count = (page, name) => names(page).filter((other) => other === name).length;
const states = ({ callbacks }) =>
  callbacks.filter(({ name }) => name === "onStatusUpdate").map(({ text }) => text.match(/"(\w+)"/)[1]);

scene("signalling that is lost comes back while the talk goes on", { wire: true }, async (stage) => {
  const { page, wire } = stage;
  await page.call();
  wire.cut();
  await page.shows("the loss", ({ state }) => state === "reconnecting");
  await stage.say();
  wire.mend();
  await page.shows("the connection", ({ state }) => state === "ongoing");
  await page.says("user", "what was said meanwhile", understood);
  await page.says("bot", "an answer");
  await page.click("hang-up");
  const ended = await page.ended();
  assert.deepEqual(states(ended), ["starting", "ongoing", "reconnecting", "ongoing", "completed"]);
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

scene("a hang-up while the call connects is one hang-up", {}, async (stage) => {
  const { page } = stage;
  await page.driver.executeScript(`
    document.getElementById("call").click();
    const button = document.getElementById("hang-up");
    const timer = setInterval(() => { if (!button.hidden) { clearInterval(timer); button.click(); button.click(); } }, 1);
  `);
  const ended = await page.ended();
  await sleep(1_000);
  const later = await page.read();
  assert.equal(count(later, "onCallStart"), 1);
  assert.equal(count(later, "onHangUp"), 1);
  assert.equal(names(later).at(-1), "onHangUp");
  assert.equal(ended.error, null);
  await page.call();
});

scene("a page that is left and come back to makes another call", { character: "greeter" }, async (stage) => {
  const { page } = stage;
  await page.call();
  const first = stage.callId;
  await page.driver.get(`${stage.origin}/icon.svg`);
  await until("the first call is over", async () => (await stage.backend.status(first)).data.state === "completed");
  await page.driver.navigate().back();
  await until("the page is back", () => page.driver.executeScript("return document.getElementById('call') !== null"));
  const back = await page.read();
  if (back.callbacks.length > 0) {
    // It came out of the browser's cache, as it was left: with its call ended.
    assert.equal(count(back, "onHangUp"), 1);
    assert.equal(back.inCall, false);
  }
  await page.driver.wait(async () => (await page.read()).state !== "starting", 5_000);
  await page.ears.open();
  await page.call();
  await page.says("bot", "its greeting");
});

scene("a hidden page stays in its call", {}, async (stage) => {
  const { page } = stage;
  await page.call();
  const own = await page.driver.getWindowHandle();
  await page.driver.switchTo().newWindow("tab");
  await stage.say();
  await sleep(2_000);
  await page.driver.switchTo().window(own);
  await page.says("user", "the words said while it was hidden", understood);
  assert.equal((await page.read()).state, "ongoing");
});

/** Runs in the page: makes calls with managers of its own. */
const withManagers = (body) => `
  const done = arguments[arguments.length - 1];
  (async () => {
    const { CallManager } = await import("/sdk/index.mjs");
    const signedUrl = async () => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch("api/call", { method: "POST", headers, body: "{}" });
      return (await answer.json()).signedUrl;
    };
    const manager = (log) => {
      const hear = (name) => (argument) => log.push(argument === undefined ? name : name + " " + (argument.code ?? argument));
      const required = ["onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onConnected"];
      return new CallManager(Object.fromEntries(required.map((name) => [name, hear(name)])));
    };
    ${body}
  })().then(done, (error) => done({ failed: String(error?.stack ?? error) }));
`;

async function inPage({ page }, body) {
  await page.driver.manage().setTimeouts({ script: 50_000 });
  const result = await page.driver.executeAsyncScript(withManagers(body));
  assert.equal(result.failed ?? null, null);
  return result;
}

scene("two managers call at once and end by themselves", {}, async (stage) => {
  const { one, other } = await inPage(stage, `
    const one = [];
    const other = [];
    const [first, second] = [manager(one), manager(other)];
    await Promise.all([first.handleCall2(null, null, await signedUrl()), second.handleCall2(null, null, await signedUrl())]);
    first.hangUp();
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (second.getState() !== "ongoing") throw new Error("the second call did not go on");
    second.hangUp();
    return { one, other };
  `);
  const whole = [
    "onCallStart", "onStatusUpdate starting", "onConnected", "onStatusUpdate ongoing", "onStatusUpdate completed",
    "onHangUp",
  ];
  assert.deepEqual(one, whole);
  assert.deepEqual(other, whole);
});

const MANY = { COLLOQUY_LIMITS_ATTEMPTS_PER_MINUTE: "1000", COLLOQUY_LIMITS_REQUESTS_PER_MINUTE: "6000" };

scene("a hundred calls leave nothing behind", { browser: {}, backend: MANY, customer: { callsPerMinute: 1_000 } }, async (stage) => {
  const calls = (times) => inPage(stage, `
    const log = [];
    window.manager ??= manager(log);
    for (let call = 0; call < ${times}; call += 1) {
      await window.manager.handleCall2(null, null, await signedUrl());
      window.manager.hangUp();
    }
    return { failed: log.find((line) => line.startsWith("onCallError")) };
  `);
  // The test's ears keep every connection that they hear.
  await stage.page.driver.get(stage.page.url);
  const held = await holdings(stage);
  await calls(10);
  const before = await held();
  await calls(100);
  const after = await held();
  for (const [what, amount] of Object.entries(before)) {
    // What the browser itself keeps for a while is a few things, not one or more a call.
    const room = what.endsWith("Size") ? 1_000_000 : 20;
    assert.ok(after[what] <= amount + room, `${what} grew from ${amount} to ${after[what]}`);
  }
});

/** What the page holds: what Chromium counts; elsewhere what the SDK opened and did not close. */
async function holdings({ browser: { name, driver } }) {
  if (name === "chromium") {
    await driver.sendDevToolsCommand("Performance.enable");
    return async () => {
      await driver.sendDevToolsCommand("HeapProfiler.collectGarbage");
      await sleep(500);
      await driver.sendDevToolsCommand("HeapProfiler.collectGarbage");
      const { metrics } = await driver.sendAndGetDevToolsCommand("Performance.getMetrics");
      const counted = Object.fromEntries(metrics.map((metric) => [metric.name, metric.value]));
      const { Nodes, JSEventListeners, AudioHandlers, AudioWorkletProcessors, RTCPeerConnections, JSHeapUsedSize } = counted;
      return { Nodes, JSEventListeners, AudioHandlers, AudioWorkletProcessors, RTCPeerConnections, JSHeapUsedSize };
    };
  }
  await driver.executeScript(`
    const opened = (window.opened = []);
    for (const [name, isOpen] of [
      ["RTCPeerConnection", (peer) => peer.connectionState !== "closed"],
      ["AudioContext", (context) => context.state !== "closed"],
      ["WebSocket", (socket) => socket.readyState < WebSocket.CLOSING],
    ]) {
      window[name] = class extends window[name] {
        constructor(...given) { super(...given); opened.push([name, () => isOpen(this)]); }
      };
    }
    const devices = navigator.mediaDevices;
    const native = devices.getUserMedia.bind(devices);
    devices.getUserMedia = async (wanted) => {
      const stream = await native(wanted);
      stream.getTracks().forEach((track) => opened.push(["track", () => track.readyState === "live"]));
      return stream;
    };
  `);
  return () => driver.executeScript(`
    const held = { RTCPeerConnection: 0, AudioContext: 0, WebSocket: 0, track: 0 };
    for (const [name, isOpen] of window.opened) if (isOpen()) held[name] += 1;
    return held;
  `);
}

scene("a page without HTTPS says so", {}, async (stage) => {
  const address = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === "IPv4" && !internal);
  if (!address) return;
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
