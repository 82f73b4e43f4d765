// What the page shows of the SDK besides the conversation: the check, the settings, the quality, devices, held-back sound.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { ROOT } from "./stage/backend.mjs";
import { scene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const checked = (page) =>
  page.shows("what the check found", ({ findings }) => findings.length > 1, 25_000).then(({ findings }) => findings);

scene("the check before a call finds that it would work", {}, async ({ page }) => {
  await page.click("check");
  const findings = await checked(page);
  assert.deepEqual(findings.filter(({ ok }) => !ok), []);
  const words = findings.map((finding) => finding.words);
  assert.equal(words[0], "A call should work.");
  assert.ok(words.some((text) => /^The service answers in .+ ms\.$/.test(text)), words.join(" "));
  assert.match(words.at(-1), /^Sound gets through in .+ ms \(direct, UDP\)\.$/);
  assert.equal((await page.read()).error, null);
  // It leaves nothing behind that a call would stumble over.
  await page.call();
});

scene("the check before a call says what keeps it from working", { backend: {} }, async ({ page, backend }) => {
  await backend.program.stop();
  await page.click("check");
  const findings = await checked(page);
  assert.deepEqual(findings.filter(({ ok }) => !ok).map(({ words }) => words), [
    "A call would probably fail.",
    "The service cannot be reached. Check your connection, then call again.",
  ]);
});

/** Put into the page: keeps what the browser is asked for. */
function overhear() {
  window.asked = [];
  const devices = navigator.mediaDevices;
  const getUserMedia = devices.getUserMedia.bind(devices);
  devices.getUserMedia = (constraints) => {
    window.asked.push(constraints.audio);
    return getUserMedia(constraints);
  };
  const Native = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Native {
    constructor(configuration, ...rest) {
      super(configuration, ...rest);
      window.asked.push({ policy: configuration.iceTransportPolicy });
    }
  };
}

scene("the settings count from the next call on", {}, async ({ page }) => {
  await page.driver.executeScript(overhear);
  const asked = async () => Object.assign({}, ...(await page.driver.executeScript("return window.asked")));
  await page.call();
  await page.openSettings();
  for (const name of ["echoCancellation", "autoGainControl", "relayOnly"]) await page.flip(name);
  const first = await asked();
  assert.notEqual(first.policy, "relay");
  assert.ok(first.echoCancellation && first.noiseSuppression && first.autoGainControl);
  await page.click("hang-up");
  await page.ended();

  await page.click("call");
  // There is no relay, so the call comes no further, and Firefox knows it at once.
  await until("a connection through relays only", async () => (await asked()).policy === "relay");
  const second = await asked();
  assert.equal(second.echoCancellation, false);
  assert.equal(second.noiseSuppression, true);
  assert.equal(second.autoGainControl, false);
  await page.driver.executeScript("document.getElementById('hang-up').click()");
  await page.ended();
});

// The backend stands still for a while, so it is the scene's own.
scene("the quality of a call is shown while it lasts", { waits: true, backend: {} }, async ({ page, backend }) => {
  assert.equal((await page.read()).quality, null);
  await page.call();
  const { quality } = await page.shows("a measured round trip", (shown) => / ms · /.test(shown.quality ?? ""));
  assert.match(quality, /^(Good|Fair|Poor) · .+ ms · \d+ % loss · direct, UDP$/);
  const isPoor = (shown) => shown.quality?.startsWith("Poor");
  await page.shows("a quality that is not poor", (shown) => shown.quality && !isPoor(shown));
  // Three seconds without a sign of the backend, and two until the next report.
  backend.program.signal("SIGSTOP");
  await page.shows("a poor connection", isPoor, 9_000);
  backend.program.signal("SIGCONT");
  await page.shows("a better one", (shown) => shown.quality && !isPoor(shown), 40_000);
  await page.click("hang-up");
  await page.ended();
  assert.equal((await page.read()).quality, null);
});

scene("a device that is plugged in is offered", {}, async ({ page }) => {
  await page.driver.executeScript(() => {
    const devices = navigator.mediaDevices;
    const listed = devices.enumerateDevices.bind(devices);
    const headset = Object.create(MediaDeviceInfo.prototype, {
      kind: { value: "audioinput" },
      deviceId: { value: "headset" },
      label: { value: "Headset" },
    });
    devices.enumerateDevices = async () => [...(await listed()), headset];
    devices.dispatchEvent(new Event("devicechange"));
  });
  await until("the headset is in the menu", () => page.offers("microphone", "Headset"));
});

scene("sound that the browser holds back is played after a click", { character: "greeter" }, async ({ page }) => {
  await page.driver.executeScript(() => {
    const { play } = HTMLMediaElement.prototype;
    // The way around the refusal.
    Object.defineProperty(HTMLMediaElement.prototype, "autoplay", { get: () => false, set() {} });
    HTMLMediaElement.prototype.play = () => Promise.reject(new DOMException("no click yet", "NotAllowedError"));
    window.allowPlaying = () => {
      HTMLMediaElement.prototype.play = function () {
        window.played = play.call(this).then(() => true);
        return window.played;
      };
    };
  });
  await page.click("call");
  const { error, inCall } = await page.shows("that the sound is held back", (shown) => shown.error);
  assert.equal(error.code, "AUDIO_BLOCKED");
  assert.ok(inCall, "the call goes on");
  assert.ok(await page.driver.executeScript("return document.getElementById('start-audio').checkVisibility()"));
  await page.driver.executeScript("allowPlaying()");
  await page.click("start-audio");
  await page.shows("that it is solved", (shown) => !shown.error);
  assert.equal(await page.driver.executeScript("return window.played"), true);
  const from = await page.ears.now();
  await page.type("What is your name?");
  await until("the character is heard", () => page.ears.audible("heard", from));
});

test("the page has advice for every error of the SDK", () => {
  const types = readFileSync(path.join(ROOT, "js/src/index.d.ts"), "utf8");
  const union = types.slice(types.indexOf("export type CallErrorCode"), types.indexOf("/** A failure:"));
  const codes = [...union.matchAll(/^ {2}\| "([A-Z_]+)"/gm)].map(([, code]) => code);
  assert.ok(codes.length > 20);
  const site = readFileSync(path.join(ROOT, "examples/site/errors.js"), "utf8");
  assert.deepEqual(codes.filter((code) => !site.includes(`  ${code}: "`)), []);
});
