// Calls that cannot be: the page shows the right code, what to do, and is ready for another call.

import assert from "node:assert/strict";
import { createServer } from "node:http";

import { createCallAtBackend } from "../../examples/server.mjs";
import { scene } from "./stage/stage.mjs";
import { PATIENCE_MS, scaled, sleep, until } from "./stage/waiting.mjs";

/** Calls, and checks that the page ends up with this error and nothing else of a call. */
async function fails({ page }, code, { mode = "server", withinMs } = {}) {
  await page.choose(mode);
  await page.click("call");
  const shown = await page.shows(`the error ${code}`, ({ error, inCall }) => error && !inCall, withinMs);
  assert.equal(shown.error.code, code);
  assert.ok(shown.error.advice.length > 10);
  assert.ok(shown.error.message.length > 10);
  assert.equal(shown.state, "error");
  const names = shown.callbacks.map(({ name }) => name);
  // A call that the customer's server refused was never begun at the SDK.
  if (names.length > 0) {
    assert.equal(names[0], "onCallStart");
    assert.deepEqual(names.slice(-1), ["onHangUp"]);
    assert.equal(names.filter((name) => name === "onHangUp").length, 1);
    assert.equal(names.filter((name) => name === "onCallError").length, 1);
  }
  return shown;
}

/** Makes the customer's server hand out a URL that something was done to. */
const withUrl = (change) => async (settings, stage) => {
  const call = await createCallAtBackend(settings);
  return { ...call, signedUrl: await change(call.signedUrl, stage) };
};

const otherSignature = (url) => url.replace(/.$/, (last) => (last === "0" ? "1" : "0"));

async function afterTwoSeconds(url) {
  await sleep(2_200);
  return url;
}

async function backendStopped(url, { backend }) {
  await backend.program.stop();
  return url;
}

async function wireSilenced(url, { wire }) {
  wire.silence();
  return url;
}

/** How much later than it should the SDK may give up; on a slow machine, too, before the next of its deadlines, ten seconds later. */
const ROOM_MS = Math.min(scaled(3_000), 9_000);

/** How long the SDK tried, by the page's clock. */
function tried(callbacks) {
  const at = Object.fromEntries(callbacks.map(({ name, atMs }) => [name, atMs]));
  return at.onHangUp - at.onCallStart;
}

/** Calls in vain, and checks that the SDK waited as long as it says, and no longer. */
async function givesUp(stage, code, afterMs, mode) {
  const { callbacks } = await fails(stage, code, { mode, withinMs: afterMs + PATIENCE_MS });
  const waited = tried(callbacks);
  assert.ok(waited > afterMs - 500 && waited < afterMs + ROOM_MS, `the SDK gave up after ${waited} ms`);
}

const firstCalls = new WeakMap();

/** The same call for everybody who asks this server. */
async function sameCall(settings) {
  if (!firstCalls.has(settings)) firstCalls.set(settings, createCallAtBackend(settings));
  return firstCalls.get(settings);
}

scene("a key that is not valid", { once: true, customer: { publishableKey: "cqp_wrong_key" } }, (stage) =>
  fails(stage, "INVALID_KEY", { mode: "client" }));

scene("a key for another origin", { once: true }, async (stage) => {
  stage.page.url = stage.page.url.replace("localhost", "127.0.0.1");
  await stage.page.open();
  await fails(stage, "INVALID_KEY", { mode: "client" });
});

scene("a character that does not exist, from the page", { once: true, customer: { character: "demo/nobody" } }, (stage) =>
  fails(stage, "INVALID_CHARACTER", { mode: "client" }));

scene("a character that does not exist, from the server", { once: true, customer: { character: "demo/nobody" } }, (stage) =>
  fails(stage, "INVALID_CHARACTER"));

scene("a customer's server with a wrong key says nothing of it", { once: true, customer: { apiKey: "cqk_wrong_key" } }, async (stage) => {
  const { error } = await fails(stage, "SERVER");
  assert.doesNotMatch(error.message, /cqk_/);
});

scene("a signed URL that was changed", { once: true, customer: { createCall: withUrl(otherSignature) } }, (stage) =>
  fails(stage, "INVALID_SIGNATURE"));

scene(
  "a signed URL that has expired",
  { backend: { COLLOQUY_CALLS_CONNECT_SECONDS: "1" }, customer: { createCall: withUrl(afterTwoSeconds) } },
  async (stage) => {
    const { driver } = stage.page;
    await driver.executeScript(countQuestions);
    await fails(stage, "URL_EXPIRED");
    assert.equal(await driver.executeScript("return window.asked"), 0, "the visitor was asked for the microphone");
  },
);

/** Put into the page: counts how often the visitor is asked for the microphone. */
function countQuestions() {
  const { getUserMedia } = MediaDevices.prototype;
  window.asked = 0;
  MediaDevices.prototype.getUserMedia = function ask(...given) {
    window.asked += 1;
    return getUserMedia.apply(this, given);
  };
}

const elsewhere = (url) => url.replace("127.0.0.1", "localhost");

scene("a backend that the page's policy blocks is named at once", { customer: { createCall: withUrl(elsewhere) } }, async (stage) => {
  const { error, callbacks } = await fails(stage, "NETWORK");
  assert.ok(tried(callbacks) < ROOM_MS, `the SDK gave up after ${tried(callbacks)} ms`);
  const origin = `ws://localhost:${new URL(stage.backend.url).port}`;
  assert.equal(error.message, `The page's Content-Security-Policy blocks the backend. Add ${origin} to connect-src.`);
  assert.ok(!callbacks.some(({ name }) => name === "onCallStarting"));
});

scene("a signed URL that is spent", { once: true, customer: { createCall: sameCall } }, async (stage) => {
  const { page } = stage;
  await page.call();
  await page.driver.switchTo().newWindow("tab");
  await page.open();
  await fails(stage, "CALL_IN_USE");
});

scene("a call that is over", { once: true, customer: { createCall: sameCall } }, async (stage) => {
  await stage.page.call();
  await stage.page.click("hang-up");
  await stage.page.ended();
  await until("the call is over", async () => (await stage.backend.status(stage.callId)).data.state === "completed");
  await fails(stage, "CALL_NOT_FOUND");
});

scene("a backend that is gone", { backend: {}, customer: { createCall: withUrl(backendStopped) } }, (stage) =>
  fails(stage, "NETWORK"));

scene("a backend that does not answer", { waits: true, wire: true }, async (stage) => {
  stage.wire.silence();
  await givesUp(stage, "NETWORK", 20_000, "client");
});

scene("a session that does not answer", { waits: true, wire: true, customer: { createCall: withUrl(wireSilenced) } }, (stage) =>
  givesUp(stage, "NETWORK", 10_000));

scene("a visitor who has waited enough for a backend that does not answer", { wire: true }, async ({ wire, page }) => {
  wire.silence();
  await page.choose("client");
  await page.click("call");
  await page.shows("the call is placed", ({ state, inCall }) => state === "starting" && inCall);
  await page.click("hang-up");
  const { callbacks, error } = await page.ended();
  assert.deepEqual(callbacks.map(({ name }) => name).filter((name) => name !== "onStatusUpdate"), ["onCallStart", "onHangUp"]);
  assert.equal(error, null);
});

scene("a backend that has a problem", { wire: true }, async (stage) => {
  const broken = createServer((request, response) => {
    const asks = request.method === "OPTIONS";
    response.writeHead(asks ? 204 : 500, { "access-control-allow-origin": "*", "access-control-allow-headers": "*" });
    response.end(asks ? undefined : "<h1>Internal Server Error</h1>");
  });
  await new Promise((resolve) => broken.listen(0, "127.0.0.1", resolve));
  try {
    stage.wire.lead(`http://127.0.0.1:${broken.address().port}`);
    await fails(stage, "SERVER", { mode: "client" });
  } finally {
    broken.closeAllConnections();
    broken.close();
  }
});

scene("a service that is full", { once: true, backend: { COLLOQUY_MEDIA_MAX_CALLS: "1" } }, async (stage) => {
  const { page } = stage;
  await page.call();
  await page.driver.switchTo().newWindow("tab");
  await page.open();
  await fails(stage, "CAPACITY", { mode: "client" });
  await fails(stage, "CAPACITY");
});

scene("a service that has been asked too often", { once: true, backend: { COLLOQUY_LIMITS_ATTEMPTS_PER_MINUTE: "1" } }, async (stage) => {
  await stage.page.call();
  await stage.page.click("hang-up");
  await stage.page.ended();
  await fails(stage, "RATE_LIMITED");
});

scene("media that gets through on no path", { backend: { COLLOQUY_CALLS_MEDIA_CONNECT_SECONDS: "3" } }, async (stage) => {
  // There is no relay.
  await stage.page.openSettings();
  await stage.page.flip("relayOnly");
  await fails(stage, "MEDIA");
});

const PATIENT = { COLLOQUY_CALLS_MEDIA_CONNECT_SECONDS: "50" };

scene("media that gets through on no path, at a patient backend", { waits: true, backend: PATIENT }, async (stage) => {
  await stage.page.openSettings();
  await stage.page.flip("relayOnly");
  // Firefox knows at once that nothing will come of it.
  await givesUp(stage, "MEDIA", stage.browser.name === "firefox" ? 0 : 20_000);
});

scene("a microphone that is not allowed", { browser: { asking: true } }, async (stage) => {
  await stage.browser.denyMicrophone();
  await fails(stage, "MICROPHONE_DENIED");
});

const NO_SOUND_CARD = { env: { PULSE_SERVER: "unix:/nowhere" } };

scene("a microphone that is not there", { browser: NO_SOUND_CARD }, (stage) => fails(stage, "MICROPHONE_MISSING"));

// No device of PulseAudio is ever busy, so this is what browsers say of one.
scene("a microphone that cannot be read", {}, async (stage) => {
  await stage.page.driver.executeScript(
    'navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotReadableError"))',
  );
  await fails(stage, "MICROPHONE_BUSY");
});
