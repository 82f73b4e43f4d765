// Conversations: what is said is understood, answered, heard and written down.

import assert from "node:assert/strict";

import { LABELS } from "./stage/sound.mjs";
import { understood, understoodInPart } from "./stage/speech.mjs";
import { scene } from "./stage/stage.mjs";
import { scaled, sleep, until } from "./stage/waiting.mjs";

/** Louder than silence on the sound card, quieter than any speech. */
const LOUD = 0.005;

/**
 * How long the character speaks before browsers know that the microphone does not hear it, as with headphones. Until then
 * Chromium's echo canceller takes for echo whatever is said meanwhile, and nothing of it reaches the page.
 */
const KNOWN_AS_HEADPHONES_MS = 12_000;

/** Longer than it takes from the last word to the visitor's line. */
const NO_TURN_MS = scaled(2_000);

/** How long a character that is spoken over is listened to: the recorded words take 2.8 s. */
const SPOKEN_OVER_MS = 2_500;

/** When it is silent at the latest: well before their end, on a slow machine, too. */
const SILENT_MS = Math.min(scaled(1_500), 2_000);

/** The callbacks whose order is documented. */
const ORDER = ["onCallStart", "onCallStarting", "onConnected", "onHangUp"];

scene("speech is understood and the answer is heard", { calm: true }, async (stage) => {
  const { page, backend, sound } = stage;
  await page.call();
  const recording = sound.record("A");
  const spokenAt = await page.ears.now();
  await stage.say();
  const said = await page.says("user", "the recorded words", understood);
  const answer = await page.says("bot", "an answer");
  assert.ok(await page.ears.audible("heard", spokenAt), "the browser decoded no audible answer");
  assert.ok((await recording.stop()) > LOUD, "nothing was to be heard at the loudspeaker");

  await page.click("hang-up");
  const { callbacks, error } = await page.ended();
  assert.equal(error, null);
  const ordered = callbacks.map(({ name }) => name).filter((name) => ORDER.includes(name));
  assert.deepEqual(ordered, ORDER);
  assert.equal(callbacks.at(-1).name, "onHangUp");
  const states = callbacks.filter(({ name }) => name === "onStatusUpdate").map(({ text }) => text.match(/"(\w+)"/)[1]);
  assert.deepEqual(states, ["starting", "ongoing", "completed"]);

  const id = stage.callId;
  const { data } = await until("the call is completed", async () => {
    const status = await backend.status(id);
    return status.data.state === "completed" && status;
  });
  assert.ok(data.duration.call_seconds >= 1);
  const language = await page.driver.executeScript("return navigator.language");
  assert.deepEqual(data.metadata, { page: "/", language });
  const { available, transcript } = await backend.transcript(id);
  assert.equal(available, true);
  assert.ok(transcript.some((line) => line.originator === "user" && line.text === said), "the visitor's line is stored");
  assert.ok(transcript.some((line) => line.originator === "bot" && answer.startsWith(line.text)), "the answer is stored");
});

scene("neural models understand and answer", { calm: true, character: "greeter", models: true }, async (stage) => {
  const { page, backend } = stage;
  const { checks } = (await backend.admin("GET", "/health/deep")).content;
  assert.equal(checks.transcriber.model, "whisper-tiny.en");
  assert.match(checks.synthesizer.model, /^piper-/);
  await page.call();
  await page.says("bot", "its greeting");
  assert.ok(await page.ears.audible("heard"), "the greeting was not audible");
  await until("it listens", async () => (await page.read()).agent === "listening");
  const spokenAt = await page.ears.now();
  await stage.say();
  await page.says("user", "the recorded words", understood);
  await until("an audible answer", () => page.ears.audible("heard", spokenAt));
  await page.click("hang-up");
  const { error } = await page.ended();
  assert.equal(error, null);
});

scene("a publishable key makes a call without a server", { character: "greeter" }, async ({ page }) => {
  await page.openSettings();
  await page.fill("robotName", "Ada");
  await page.call({ mode: "client" });
  assert.equal(await page.says("bot", "its greeting"), "Hello, this is Ada.");
  assert.ok(await page.ears.audible("heard"), "the greeting was not audible");
  await page.click("hang-up");
  const { callbacks } = await page.ended();
  assert.deepEqual(callbacks.map(({ name }) => name).filter((name) => ORDER.includes(name)), ORDER);
});

scene("a character of the page's own takes a secret key", {}, async ({ page, backend }) => {
  await page.openSettings();
  await page.fill("personality", "You are a pirate.");
  await page.choose("client");
  await page.click("call");
  const { error } = await page.shows("that a publishable key is not enough", (shown) => shown.error && !shown.inCall);
  assert.equal(error.code, "INVALID_KEY");
  await page.fill("secretKey", backend.apiKey);
  await page.call({ mode: "client" });
  assert.equal(await page.says("bot", "its greeting"), "Hello, I am a character of your own.");
  assert.equal((await page.read()).lines[0].role, "Your character");
});

scene("speaking over the character silences it and cuts its line", { alone: true, character: "talker" }, async (stage) => {
  await stage.page.call();
  await interrupt(stage, KNOWN_AS_HEADPHONES_MS);
  // A word may be garbled, while the character still speaks.
  await stage.page.says("user", "some of the recorded words", understoodInPart);
  await isCut(stage);
});

scene("without echo cancellation the first words interrupt and are understood", { alone: true, character: "talker" }, async (stage) => {
  await stage.page.openSettings();
  await stage.page.flip("echoCancellation");
  await stage.page.call();
  await interrupt(stage, 1_500);
  await stage.page.says("user", "the recorded words", understood);
  await isCut(stage);
});

/** Speaks over the character once it was heard for so long, and hears that it falls silent. */
async function interrupt(stage, after) {
  const { page } = stage;
  await page.shows("the character speaks", ({ agent }) => agent === "speaking");
  await until("the character is heard", () => page.ears.audible("heard"));
  await until("the speaker's meter moves", () =>
    page.driver.executeScript("return document.getElementById('speaker-level').value > 0.2"),
  );
  await sleep(after);
  const from = await page.ears.now();
  const speaking = stage.say();
  const line = await page.says("bot", "a line that was cut", (text) => !text.includes("storms"));
  assert.match(line, /long story/);
  await speaking;
  // The character may speak anew meanwhile, when it takes a pause in the words for their end.
  const { callbacks } = await page.read();
  const changes = callbacks.filter(({ name }) => name === "onAgentStateChange");
  const changed = (state, since) => changes.find(({ text, at }) => text.includes(state) && at > since)?.at;
  const anew = changed("speaking", changed("listening", from)) ?? Infinity;
  const whileSpeaking = await page.ears.audible("heard", from, Math.min(from + SPOKEN_OVER_MS, anew));
  assert.ok(whileSpeaking, "the character was not heard before the visitor spoke");
  const silentAfter = whileSpeaking.last - from;
  assert.ok(silentAfter < SILENT_MS, `the character was silent only after ${Math.round(silentAfter)} ms`);
}

/** Ends the call, and finds its first line cut to what was heard. */
async function isCut({ page, backend, callId }) {
  await page.click("hang-up");
  await page.ended();
  const stored = await until("the transcript is stored", async () => {
    const { available, transcript } = await backend.transcript(callId);
    return available && transcript;
  });
  assert.ok(!stored[0].text.includes("storms"), "the stored line is not cut to what was heard");
}

scene("the character's own voice from the loudspeaker interrupts it only without echo cancellation", { alone: true, character: "talker" }, async (stage) => {
  const { page, sound } = stage;
  const room = await sound.echo("A");
  try {
    await page.call();
    await page.shows("the character speaks", ({ agent }) => agent === "speaking");
    await sleep(6_000);
    const { agent, lines } = await page.read();
    assert.equal(agent, "speaking", "the character fell silent");
    assert.deepEqual(lines.filter(({ originator }) => originator === "user"), []);
    await page.click("hang-up");
    await page.ended();

    await page.openSettings();
    await page.flip("echoCancellation");
    await page.call();
    await page.shows("the character speaks", (shown) => shown.agent === "speaking");
    await page.shows("an interruption", (shown) => shown.agent !== "speaking");
  } finally {
    await room.close();
  }
});

scene("a typed turn is answered aloud, from the character's documents", { character: "librarian" }, async ({ page }) => {
  await page.call();
  const from = await page.ears.now();
  const question = "When does the museum open?";
  await page.type(question);
  await page.says("user", "the typed words", (text) => text === question);
  const { sources } = await page.shows("where the answer is from", (shown) => shown.sources);
  assert.equal(sources, "From: Opening hours");
  await page.answers(from);
  const { callbacks } = await page.read();
  const reported = callbacks.find(({ name }) => name === "onRagInfo")?.text;
  assert.match(reported, /"title":"Opening hours".*"count":1/);
});

scene("the page learns what a visitor tells of themselves, and nothing else", { character: "librarian" }, async (stage) => {
  const { page, backend } = stage;
  await page.call();
  const turn = async (text) => {
    const from = await page.ears.now();
    await page.type(text);
    await page.answers(from);
  };
  await turn("When does the museum open?");
  await turn("My name is Ada and I live in Berlin.");
  const { visitor } = await page.shows("what is known of the visitor", (shown) => shown.visitor);
  assert.equal(visitor, "About you: city: Berlin; name: Ada");
  const { callbacks } = await page.read();
  const told = callbacks.filter(({ name }) => name === "onUserInfo");
  assert.equal(told.length, 1);
  assert.match(told[0].text, /Berlin.*Ada/);

  // Browsers report what they receive every few seconds.
  const read = async (rest) => (await backend.admin("GET", `${stage.callId}/${rest}`)).content.data;
  await until("the quality is followed", async () => (await read("quality")).points.length > 0);
  await page.click("hang-up");
  await page.ended();
  const { facts } = await until("what the visitor told is kept", async () => {
    const found = await read("visitor");
    return Object.keys(found.facts).length > 0 && found;
  });
  assert.deepEqual(facts, { city: "Berlin", name: "Ada" });
  const { points } = await until("the quality is kept", async () => {
    const found = await read("quality");
    return found.points.length > 0 && !found.is_open && found;
  });
  // Of a page on this machine.
  const point = points.at(-1);
  assert.ok(point.round_trip_ms < 1_000, JSON.stringify(points));
  assert.ok(point.jitter_ms < 1_000 && point.loss_received < 0.5, JSON.stringify(points));
  assert.equal(typeof points.find(({ round_trip_ms: ms }) => ms !== null)?.round_trip_ms, "number", JSON.stringify(points));
});

scene("a muted microphone gives no turn, and stays muted when devices change", { calm: true, ears: true }, async (stage) => {
  const { page, sound } = stage;
  await page.call();
  await page.click("mute");
  await page.chooseDevice("microphone", LABELS.microphoneB);
  await stage.say("B");
  await sleep(NO_TURN_MS);
  const quiet = await page.read();
  assert.equal(quiet.muted, true);
  assert.deepEqual(quiet.lines, []);
  await page.click("mute");

  await page.chooseDevice("speaker", LABELS.speakerB);
  await sleep(scaled(500));
  const old = sound.record("A");
  const chosen = sound.record("B");
  // The old microphone hears noise, in which no word would be understood.
  await Promise.all([stage.say("B"), stage.hiss("A")]);
  await page.says("user", "the recorded words", understood);
  await page.says("bot", "an answer");
  assert.ok((await chosen.stop()) > LOUD, "the chosen speaker was silent");
  assert.ok((await old.stop()) < LOUD, "the old speaker still plays");
  const { lines, error } = await page.read();
  assert.equal(lines.filter(({ originator }) => originator === "user").length, 1, "the old microphone is still heard");
  assert.equal(error, null);
});

scene("the secret key never reaches the page, and nothing breaks its policy", { character: "greeter" }, async (stage) => {
  const { page } = stage;
  await page.call();
  await page.says("bot", "its greeting");
  await page.click("hang-up");
  await page.ended();
  const resources = await page.driver.executeScript(
    "return performance.getEntriesByType('resource').map(({ name }) => name)",
  );
  assert.ok(resources.some((url) => url.endsWith(".wasm")), "the SDK was loaded");
  const own = [page.url, ...resources].filter((url) => url.startsWith(stage.origin) && !url.endsWith("/api/call"));
  for (const url of own) {
    const text = await fetch(url).then((answer) => answer.text());
    assert.ok(!text.includes(stage.backend.apiKey), `${url} holds the secret key`);
  }
  const state = await page.driver.executeScript(
    "return document.documentElement.outerHTML + JSON.stringify(localStorage) + document.cookie",
  );
  assert.ok(!state.includes(stage.backend.apiKey), "the page holds the secret key");
  const complaints = (await stage.browser.console()).filter((line) => /SEVERE|Content.Security.Policy/i.test(line));
  assert.deepEqual(complaints, []);
});

scene("a microphone that is unplugged is replaced by the other", { calm: true, ears: true, sound: true }, async (stage) => {
  const { page, sound } = stage;
  await page.call();
  await sound.unplug("A");
  // Nothing in the page tells when the other one is there: Chromium does not notice what PulseAudio loses. So the words are said
  // until they are heard.
  await until("what the other microphone hears is understood", async () => {
    await stage.say("B");
    await sleep(NO_TURN_MS);
    const { lines } = await page.read();
    return lines.some(({ originator, text }) => originator === "user" && understood(text));
  });
  assert.equal((await page.read()).error, null);
});
