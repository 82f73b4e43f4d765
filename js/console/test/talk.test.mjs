// The page for calls: whom it calls, how a draft gets there, and what it shows of a call.

import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeBrowser, FakeClock, settle } from "./fakes.mjs";

test("the address of the page names a draft or a saved character", async () => {
  const { readTarget, talkAddress } = await load("talk/address.ts");
  const read = (address) => readTarget(new URL(address, "http://localhost").searchParams);
  for (const target of [
    { partner: "acme", draft: "0123" },
    { partner: "acme", name: "a & b", version: null },
    { partner: "acme", name: "ada", version: 3 },
  ]) {
    assert.ok(talkAddress(target).startsWith("/console/talk?"));
    assert.deepEqual(read(talkAddress(target)), target);
  }
  for (const nobody of ["?", "?partner=acme", "?character=ada", "?partner=&draft=1"]) assert.equal(read(`/console/talk${nobody}`), null, nobody);
  assert.deepEqual(read("?partner=acme&character=ada&version=x"), { partner: "acme", name: "ada", version: null });
});

test("a call is joined at the origin of the page, whatever the server calls itself", async () => {
  const { atOrigin } = await load("talk/address.ts");
  const signed = "ws://127.0.0.1:8080/v2/calls/1/session?exp=2&kid=a&sig=b";
  assert.equal(atOrigin(signed, { protocol: "http:", host: "localhost:8080" }), "ws://localhost:8080/v2/calls/1/session?exp=2&kid=a&sig=b");
  assert.equal(atOrigin(signed, { protocol: "https:", host: "talk.example" }), "wss://talk.example/v2/calls/1/session?exp=2&kid=a&sig=b");
});

test("the page gets the newest state of a draft from its editor, and notices when that is closed", async () => {
  const { newId, offer, request } = await load("talk/handover.ts");
  const browser = new FakeBrowser();
  const clock = new FakeClock();
  const join = (name, receive) => browser.join(name, receive);
  const [id, other] = [newId(), newId()];
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.notEqual(id, other);
  const called = { name: "Ada", character: { personality: "One.", parameters: {} }, values: { a: "b" } };
  const stop = offer(join, id, () => structuredClone(called));
  assert.deepEqual(await request(join, id, clock), called);
  called.character.personality = "Two.";
  assert.equal((await request(join, id, clock)).character.personality, "Two.");

  const unanswered = request(join, other, clock);
  await clock.advance(2_000);
  assert.equal(await unanswered, null);
  stop();
  const late = request(join, id, clock);
  await clock.advance(2_000);
  assert.equal(await late, null);
});

test("the draft of a closed editor is called only by who was told", async () => {
  const { Callee, closedWords } = await load("talk/callee.ts");
  const draft = { name: "Ada", character: { personality: "One.", parameters: {} }, values: {} };
  let [open, now] = [true, new Date(2026, 11, 1, 14, 3)];
  const callee = new Callee({ read: async () => (open ? structuredClone(draft) : null), now: () => now });
  assert.deepEqual(await callee.toCall(), draft);
  assert.equal(callee.closedSince.value, null);
  [open, now] = [false, new Date(2026, 11, 1, 15, 0)];
  await assert.rejects(callee.toCall(), /Press “Call” again/);
  assert.match(closedWords(callee.closedSince.value), /^The editor is closed: this is the draft of \d+:03/);
  assert.deepEqual(await callee.toCall(), draft);
  open = true;
  assert.deepEqual(await callee.toCall(), draft);
  assert.equal(callee.closedSince.value, null);

  const nobody = new Callee({ read: async () => null, now: () => now });
  await assert.rejects(nobody.toCall(), /is closed or shows something else/);
});

class FakeManager {
  static last;
  constructor(callbacks) {
    Object.assign(this, { callbacks, did: [] });
    FakeManager.last = this;
  }
  async handleCall2(...given) {
    this.did.push(["call", ...given]);
  }
  hangUp() {
    this.did.push(["hang up"]);
    this.callbacks.onStatusUpdate("completed");
    this.callbacks.onHangUp("local");
  }
  mute(isMuted) {
    this.did.push(["mute", isMuted]);
  }
  async startAudio() {
    this.did.push(["play"]);
  }
  async changeDevices(microphone, speaker) {
    this.did.push(["change", microphone, speaker]);
    if (microphone === "gone") throw Object.assign(new Error("x"), { code: "MICROPHONE_MISSING" });
  }
}

const device = (deviceId, label, isDefault = false) => ({ deviceId, label, isDefault });
const DEVICES = { microphones: [device("a", "Desk"), device("b", "Headset", true), device("", "")], speakers: [] };

async function begin(create = async () => ({ id: "1", signedUrl: "ws://a/v2/calls/1/session" })) {
  const { Call } = await load("talk/call.ts");
  const cancelled = [];
  const call = new Call({ Manager: FakeManager, create, cancel: (id) => cancelled.push(id), devices: async () => DEVICES });
  return { call, cancelled, manager: FakeManager.last };
}

test("a call goes from its creation to its end, with what is said", async () => {
  const { call, manager } = await begin();
  const starting = call.start();
  assert.equal(call.state.value, "creating");
  await call.start();
  await starting;
  assert.deepEqual(manager.did, [["call", null, null, "ws://a/v2/calls/1/session"]]);
  const { callbacks } = manager;
  callbacks.onStatusUpdate("ongoing");
  callbacks.onAgentStateChange("listening");
  callbacks.onLevels({ microphone: 0.1, speaker: 0 });
  const line = (id, originator, text, final) => ({ id, originator, role: "", text, final, atMs: 0 });
  callbacks.onTranscript(line("b1", "bot", "Hello.", true));
  callbacks.onTranscript(line("u1", "user", "go for", false));
  callbacks.onTranscript(line("u1", "user", "go forward", true));
  callbacks.onTranscript(line("u2", "user", "ten", false));
  callbacks.onTranscript(line("u2", "user", "", true));
  assert.deepEqual(call.lines.value.map(({ id, text, final }) => [id, text, final]), [["b1", "Hello.", true], ["u1", "go forward", true]]);
  assert.deepEqual([call.state.value, call.agent.value, call.level.value, call.isOver.value], ["ongoing", "listening", 0.1, false]);
  call.mute(true);
  call.hangUp();
  assert.deepEqual(manager.did.slice(1), [["mute", true], ["hang up"]]);
  assert.deepEqual([call.state.value, call.end.value, call.level.value, call.id.value], ["completed", "local", 0, "1"]);
  assert.equal(call.lines.value.length, 2, "the words stay until the next call");

  await call.start();
  assert.deepEqual([call.lines.value.length, call.end.value], [0, null]);
});

test("a call that is given up while it is created is ended at the server, and nobody joins it", async () => {
  let made;
  const { call, cancelled, manager } = await begin(() => new Promise((resolve) => (made = resolve)));
  const starting = call.start();
  call.hangUp();
  assert.equal(call.state.value, "completed");
  made({ id: "7", signedUrl: "ws://a" });
  await starting;
  assert.deepEqual([cancelled, manager.did], [["7"], []]);
});

test("a microphone is chosen by its name, and one that is gone is not", async () => {
  const { call, manager } = await begin();
  await call.start();
  assert.deepEqual([call.microphones.value, call.microphone.value], [[], ""]);
  manager.callbacks.onConnected();
  await settle();
  assert.deepEqual([call.microphones.value.map(({ label }) => label), call.microphone.value], [["Desk", "Headset"], "b"]);
  await call.choose("a");
  assert.deepEqual([manager.did.at(-1), call.microphone.value, call.failure.value], [["change", "a", null], "a", ""]);
  await call.choose("gone");
  assert.equal(call.microphone.value, "a");
  assert.match(call.failure.value, /There is no microphone/);
  manager.callbacks.onDevicesChanged({ microphones: [device("b", "Headset", true)], speakers: [] });
  assert.equal(call.microphone.value, "b");
});

test("what fails is told in words, and the next call begins without it", async () => {
  const { Call, Problem } = await load("talk/call.ts", "problem.ts");
  let isRefused = true;
  const create = async () => {
    if (isRefused) throw new Problem(400, "invalid_parameters", "must be a string", "character.parameters.voice");
    return { id: "2", signedUrl: "ws://a" };
  };
  const call = new Call({ Manager: FakeManager, create, cancel: () => {}, devices: async () => DEVICES });
  const manager = FakeManager.last;
  await call.start();
  assert.deepEqual([call.state.value, call.failure.value], ["error", "character.parameters.voice: must be a string"]);
  isRefused = false;
  await call.start();
  assert.equal(call.failure.value, "");
  manager.callbacks.onCallError({ code: "MICROPHONE_DENIED", message: "for developers", fatal: true });
  manager.callbacks.onStatusUpdate("error");
  manager.callbacks.onHangUp("error");
  assert.match(call.failure.value, /Allow it in the settings of the site/);
  assert.equal(call.isOver.value, true);

  manager.callbacks.onCallError({ code: "AUDIO_BLOCKED", message: "x", fatal: false });
  manager.callbacks.onAudioBlockedChange(true);
  assert.equal(call.isBlocked.value, true);
  await call.play();
  manager.callbacks.onAudioBlockedChange(false);
  assert.deepEqual([call.isBlocked.value, call.failure.value, manager.did.at(-1)], [false, "", ["play"]]);
});

test("states and errors have words of their own, and other errors their message", async () => {
  const { failureWords, refusalWords, stateWords } = await load("talk/words.ts");
  assert.match(refusalWords({ status: 401, message: "no key" }), /Sign in/);
  assert.equal(refusalWords({ status: 429, message: "later" }), "later");
  assert.equal(stateWords("ongoing", "thinking", null), "Thinking");
  assert.equal(stateWords("completed", null, "time_limit"), "The time of the call is over");
  assert.equal(stateWords("completed", null, null), "The call is over");
  assert.equal(stateWords("error", null, "error"), "The call failed");
  assert.equal(failureWords({ code: "PROTOCOL", message: "told" }), "told");
});
