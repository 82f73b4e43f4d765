// What react.test.mjs runs in browsers: the hook under StrictMode, against a backend inside the page. Each scenario
// returns facts.

import { Component, StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { flushSync } from "react-dom";

import { useCall } from "../dist/react.mjs";
import { Backend, wait } from "../../sdk-wasm/tests/fake_backend.js";
import { SLOWNESS, reporting, until } from "./call.mjs";

const URL = "wss://calls.invalid/session";

/** Mounts a component that uses the hook; gives back the hook's last value and what to do with the component. */
function mount(options, { atOnce = false } = {}) {
  const stage = { seen: [] };
  function Caller({ options }) {
    const call = useCall(options);
    stage.call = call;
    if (stage.seen.at(-1) !== call.status) stage.seen.push(call.status);
    useEffect(() => {
      if (!atOnce) return undefined;
      call.start({ signedUrl: URL });
      return call.hangUp;
    }, []);
    return call.status;
  }
  const root = createRoot(document.body.appendChild(document.createElement("main")));
  stage.render = (next) => flushSync(() => root.render(<StrictMode><Caller options={next} /></StrictMode>));
  stage.unmount = () => flushSync(() => root.unmount());
  stage.until = async (wanted) => {
    if (await until(() => wanted(stage.call))) return;
    throw new Error(`${wanted} is not so: ${JSON.stringify(stage.call)}`);
  };
  stage.render(options);
  return stage;
}

const line = (id, text) =>
  `{"type":"transcript","id":"${id}","originator":"user","text":"${text}","final":true,"at_ms":5}`;

/** Shows a component that fails while it is being mounted, and gives back with which code. */
function mountFailing(options) {
  const seen = [];
  class Boundary extends Component {
    state = {};
    static getDerivedStateFromError = (error) => ({ error });
    render() {
      if (!this.state.error) return this.props.children;
      seen.push(this.state.error.code);
      return null;
    }
  }
  function Caller() {
    useCall(options);
    return null;
  }
  const root = createRoot(document.createElement("main"), { onCaughtError() {} });
  flushSync(() => root.render(<Boundary><Caller /></Boundary>));
  root.unmount();
  return seen[0];
}

const scenarios = {
  async "StrictMode makes one call, and unmounting ends it"(backend) {
    const stage = mount(backend.callbacks(false), { atOnce: true });
    await stage.until(({ status }) => status === "ongoing");
    const starts = () => backend.log().split("\n").filter((name) => name === "onCallStart").length;
    const during = [starts(), backend.captures(), stage.call.isActive, stage.seen.join(" ")];
    stage.unmount();
    await backend.waitFor("onHangUp");
    await wait(200 * SLOWNESS);
    return [...during, starts(), backend.isReleased()];
  },

  async "what the call tells is state, and the operations reach it"(backend) {
    const stage = mount();
    const { start } = stage.call;
    const started = stage.call.start({ signedUrl: URL });
    await started;
    await stage.until(({ status }) => status === "ongoing");
    const second = await stage.call.start({ signedUrl: URL }).catch(({ code }) => code);
    const heard = [];
    const hear = (state) => heard.push(state);
    stage.call.on("onAgentStateChange", hear);
    backend.say('{"type":"agent_state","state":"thinking"}');
    backend.say(line("1", "one"));
    backend.say(line("2", "two"));
    backend.say(line("1", "three"));
    backend.say(line("3", "taken"));
    await stage.until(({ transcript }) => transcript.length === 3);
    // Words that were taken back are no line any more.
    backend.say(line("3", ""));
    await stage.until(({ transcript }) => transcript.length === 2);
    const { agentState, transcript, callId } = stage.call;
    stage.call.off("onAgentStateChange", hear);
    backend.say('{"type":"agent_state","state":"speaking"}');
    await stage.until((call) => call.agentState === "speaking");
    stage.call.mute(true);
    await stage.until(({ muted }) => muted);
    const sent = stage.call.sendText("hello");
    const frame = JSON.parse(backend.lastFrame()).text;
    stage.call.hangUp();
    await stage.until(({ isActive }) => !isActive);
    const after = [heard.join(" "), callId, stage.call.hangUpReason, stage.call.status, stage.call.agentState, stage.call.muted, stage.call.start === start];
    stage.unmount();
    return [second, agentState, transcript.map(({ text }) => text).join(" "), sent, frame, ...after];
  },

  async "callbacks change during a call, configuration from the next call on"(backend) {
    const heard = [];
    const options = (name) => ({ personRole: name, onTranscript: ({ role, text }) => heard.push(`${name}:${role}:${text}`) });
    const stage = mount(options("Ann"));
    await stage.call.start({ signedUrl: URL });
    backend.say(line("1", "one"));
    await stage.until(({ transcript }) => transcript.length === 1);
    stage.render(options("Bob"));
    backend.say(line("2", "two"));
    await stage.until(({ transcript }) => transcript.length === 2);
    const captures = backend.captures();
    backend.allowAnyMicrophone();
    backend.delayMicrophone(200);
    await Promise.all(["first", "second"].map((id) => stage.call.changeDevices(id, null)));
    stage.call.hangUp();
    await stage.call.start({ signedUrl: URL });
    backend.say(line("3", "three"));
    await stage.until(({ transcript }) => transcript.length === 1);
    stage.unmount();
    const { ideal } = JSON.parse(backend.constraints()).audio.deviceId;
    return [captures, ...heard, ideal, backend.isReleased()];
  },

  async "a failed start is an error, and the next call clears it"(backend) {
    const stage = mount();
    backend.refuseMicrophone("NotAllowedError");
    await stage.call.start({ partner: "repo:acme", character: "guide", apiKey: "key" }, { page: "test" });
    await stage.until(({ isActive, error }) => error && !isActive);
    const { status, error } = stage.call;
    backend.allowMicrophone();
    await stage.call.start({ signedUrl: URL });
    await stage.until((call) => call.status === "ongoing");
    const cleared = stage.call.error;
    stage.unmount();
    const { key, body } = JSON.parse(backend.request() ?? "{}");
    return [status, error.code, error.fatal, cleared, key, JSON.stringify(body).includes("guide")];
  },

  async "blocked sound is an error until it plays, whatever brings that about"(backend) {
    const stage = mount();
    backend.blockPlayback(true);
    await stage.call.start({ signedUrl: URL });
    const blocked = ({ error }) => error?.code === "AUDIO_BLOCKED";
    await stage.until(blocked);
    const refused = await stage.call.startAudio().catch(({ code }) => code);
    const still = blocked(stage.call);
    backend.blockPlayback(false);
    await stage.call.startAudio();
    await stage.until(({ error }) => error === null);
    backend.stopPlayback();
    await stage.until(blocked);
    backend.visitor("click");
    await stage.until(({ error }) => error === null);
    stage.unmount();
    return [refused, still];
  },

  async "the SDK measures only for those who listen"(backend) {
    const heard = [];
    const stage = mount();
    const idle = backend.listeners();
    await stage.call.start({ signedUrl: URL });
    await wait(2_500);
    const asked = backend.measured();
    stage.call.hangUp();
    const hear = (name) => () => { if (!heard.includes(name)) heard.push(name); };
    stage.render({ onLevels: hear("levels"), onStats: hear("stats"), onDevicesChanged: hear("devices") });
    await stage.call.start({ signedUrl: URL });
    backend.deviceChange();
    await stage.until(() => heard.length === 3);
    stage.unmount();
    return [idle, asked, heard.sort().join(" ")];
  },

  async "options that cannot be used are named at mount and at start"(backend) {
    const atMount = mountFailing({ wakeLock: "yes" });
    // React 18 tells the page even of what a boundary catches.
    backend.forgive("config.wakeLock");
    const stage = mount({ wakeLock: true });
    stage.render({ wakeLock: "yes" });
    const atStart = await stage.call.start({ signedUrl: URL }).catch(({ code }) => code);
    const { status } = stage.call;
    stage.render({ wakeLock: false });
    await stage.call.start({ signedUrl: URL });
    await stage.until((call) => call.status === "ongoing");
    stage.unmount();
    return [atMount, atStart, status, backend.log()];
  },

  async "a device that cannot be used leaves the choice as it was"(backend) {
    const stage = mount();
    backend.allowAnyMicrophone();
    await stage.call.changeDevices("first", null);
    await stage.call.start({ signedUrl: URL });
    backend.refuseMicrophone("NotReadableError");
    const refused = await stage.call.changeDevices("second", null).catch(({ code }) => code);
    stage.call.hangUp();
    backend.allowAnyMicrophone();
    // Another configuration makes another manager, which has what was chosen.
    stage.render({ personRole: "Ann" });
    await stage.call.start({ signedUrl: URL });
    stage.unmount();
    return [refused, JSON.parse(backend.constraints()).audio.deviceId.ideal];
  },

  async "a hundred components leave nothing behind"(backend) {
    const stages = Array.from({ length: 100 }, () => mount({ onDevicesChanged() {} }));
    await until(() => backend.listeners() === 100);
    const mounted = backend.listeners();
    for (const stage of stages) stage.unmount();
    // At once, and not when somebody collects what is left.
    await wait(0);
    return [mounted, backend.listeners()];
  },
};

reporting(async () => {
  const facts = {};
  for (const [name, run] of Object.entries(scenarios)) {
    const backend = new Backend();
    facts[name] = await run(backend).catch((error) => [error.stack]);
    backend.uninstall();
  }
  return JSON.stringify(facts);
});
