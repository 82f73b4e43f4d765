// What a call goes through: connections that break, hang-ups at any moment, pages that are left or hidden.

import assert from "node:assert/strict";
import http from "node:http";
import { networkInterfaces } from "node:os";

import { WITH_EARS } from "./stage/backend.mjs";
import { understood } from "./stage/speech.mjs";
import { scene } from "./stage/stage.mjs";
import { scaled, sleep, until } from "./stage/waiting.mjs";

/** Longer than it takes from the last word to the visitor's line. */
const NO_TURN_MS = scaled(2_000);

const names = ({ callbacks }) => callbacks.map(({ name }) => name);
const count = (page, name) => names(page).filter((other) => other === name).length;
const states = ({ callbacks }) =>
  callbacks.filter(({ name }) => name === "onStatusUpdate").map(({ text }) => text.match(/"(\w+)"/)[1]);

// The signed URL is good for two seconds, more on a slow machine, and the outage is longer: it is the resume token that opens the
// session again.
const SHORT_SECONDS = scaled(2);
const SHORT = { ...WITH_EARS, COLLOQUY_CALLS_CONNECT_SECONDS: String(SHORT_SECONDS) };

scene("signalling that is lost comes back while the talk goes on", { calm: true, wire: true, backend: SHORT }, async (stage) => {
  const { page, wire } = stage;
  await page.call();
  const from = await page.ears.now();
  wire.cut();
  await page.shows("the loss", ({ state }) => state === "reconnecting");
  await Promise.all([stage.say(), sleep(1_000 * SHORT_SECONDS)]);
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

/** Put into the page: the answer to the first connection names another certificate, so that its DTLS handshake fails. */
function breakFirstHandshake() {
  const { setRemoteDescription } = RTCPeerConnection.prototype;
  window.connections = [];
  RTCPeerConnection.prototype.setRemoteDescription = function set({ type, sdp }) {
    if (!window.connections.includes(this)) window.connections.push(this);
    const other = (_, name, byte) => name + (byte === "00" ? "11" : "00");
    const given = this === window.connections[0] ? sdp.replace(/(a=fingerprint:\S+ )(..)/g, other) : sdp;
    return setRemoteDescription.call(this, { type, sdp: given });
  };
}

scene("a connection whose handshake fails is followed by another, and the call begins", {}, async ({ page }) => {
  await page.driver.executeScript(breakFirstHandshake);
  await page.click("call");
  // A browser may leave it to the SDK to see that nothing comes.
  const talking = await page.shows("the call is connected", ({ state }) => state === "ongoing", 20_000);
  assert.equal(talking.error, null);
  assert.equal(await page.driver.executeScript("return window.connections.length"), 2);
  const from = await page.ears.now();
  await page.type("What is your name?");
  await page.answers(from);
  await page.click("hang-up");
  const ended = await page.ended();
  assert.deepEqual(states(ended), ["starting", "ongoing", "completed"]);
  assert.equal(count(ended, "onConnected"), 1);
});

scene("a server that stands still for a while finds the call again", { waits: true, backend: { COLLOQUY_CALLS_HEARTBEAT_SECONDS: "2" } }, async (stage) => {
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
  { moment: "begins", callback: "onCallStart", backend: { COLLOQUY_CALLS_CONNECT_SECONDS: String(scaled(3)) } },
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

scene("a hidden page stays in its call", { calm: true, ears: true }, async (stage) => {
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
    const call = await stage.page.driver.findElement({ id: "call" });
    await until("the page works", () => call.isEnabled());
    await call.click();
    const { error, callbacks } = await stage.page.shows("the error", ({ error }) => error);
    assert.equal(error.code, "INSECURE_CONTEXT");
    assert.equal(callbacks.at(-1).name, "onHangUp");
  } finally {
    outside.closeAllConnections();
    outside.close();
  }
});
