// Calls that cannot be: the page shows the right code, what to do, and is ready for another call.

import assert from "node:assert/strict";

import { createCallAtBackend } from "../../examples/server.mjs";
import { scene } from "./stage/stage.mjs";
import { sleep, until } from "./stage/waiting.mjs";

/** Calls, and checks that the page ends up with this error and nothing else of a call. */
async function fails({ page }, code, mode = "server") {
  await page.choose(mode);
  await page.click("call");
  const shown = await page.shows(`the error ${code}`, ({ error, inCall }) => error && !inCall);
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
const withUrl = (change) => async (settings, backend) => {
  const call = await createCallAtBackend(settings);
  return { ...call, signedUrl: await change(call.signedUrl, backend) };
};

const otherSignature = (url) => url.replace(/.$/, (last) => (last === "0" ? "1" : "0"));

async function afterTwoSeconds(url) {
  await sleep(2_200);
  return url;
}

async function backendStopped(url, backend) {
  await backend.program.stop();
  return url;
}

const firstCalls = new WeakMap();

/** The same call for everybody who asks this server. */
async function sameCall(settings) {
  if (!firstCalls.has(settings)) firstCalls.set(settings, createCallAtBackend(settings));
  return firstCalls.get(settings);
}

scene("a key that is not valid", { customer: { publishableKey: "cqp_wrong_key" } }, (stage) =>
  fails(stage, "INVALID_KEY", "client"));

scene("a key for another origin", {}, async (stage) => {
  stage.page.url = stage.page.url.replace("localhost", "127.0.0.1");
  await stage.page.open();
  await fails(stage, "INVALID_KEY", "client");
});

scene("a character that does not exist, from the page", { customer: { character: "demo/nobody" } }, (stage) =>
  fails(stage, "INVALID_CHARACTER", "client"));

scene("a character that does not exist, from the server", { customer: { character: "demo/nobody" } }, (stage) =>
  fails(stage, "INVALID_CHARACTER"));

scene("a customer's server with a wrong key says nothing of it", { customer: { apiKey: "cqk_wrong_key" } }, async (stage) => {
  const { error } = await fails(stage, "SERVER");
  assert.doesNotMatch(error.message, /cqk_/);
});

scene("a signed URL that was changed", { customer: { createCall: withUrl(otherSignature) } }, (stage) =>
  fails(stage, "INVALID_SIGNATURE"));

scene(
  "a signed URL that has expired",
  { backend: { COLLOQUY_CALLS_CONNECT_SECONDS: "1" }, customer: { createCall: withUrl(afterTwoSeconds) } },
  (stage) => fails(stage, "URL_EXPIRED"),
);

scene("a signed URL that is spent", { customer: { createCall: sameCall } }, async (stage) => {
  const { page } = stage;
  await page.call();
  await page.driver.switchTo().newWindow("tab");
  await page.open();
  await fails(stage, "CALL_IN_USE");
});

scene("a call that is over", { customer: { createCall: sameCall } }, async (stage) => {
  await stage.page.call();
  await stage.page.click("hang-up");
  await stage.page.ended();
  await until("the call is over", async () => (await stage.backend.status(stage.callId)).data.state === "completed");
  await fails(stage, "CALL_NOT_FOUND");
});

scene("a backend that is gone", { backend: {}, customer: { createCall: withUrl(backendStopped) } }, (stage) =>
  fails(stage, "NETWORK"));

scene("a service that is full", { backend: { COLLOQUY_MEDIA_MAX_CALLS: "1" } }, async (stage) => {
  const { page } = stage;
  await page.call();
  await page.driver.switchTo().newWindow("tab");
  await page.open();
  await fails(stage, "CAPACITY", "client");
  await fails(stage, "CAPACITY");
});

scene("a service that has been asked too often", { backend: { COLLOQUY_LIMITS_ATTEMPTS_PER_MINUTE: "1" } }, async (stage) => {
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
