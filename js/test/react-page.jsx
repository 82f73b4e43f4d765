// What react.test.mjs runs in browsers: the hook under StrictMode, against a backend inside the page. Each scenario
// returns facts.

import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { flushSync } from "react-dom";

import { useCall } from "../dist/react.mjs";
import { Backend, wait } from "../../sdk-wasm/tests/fake_backend.js";
import { reporting } from "./call.mjs";

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
    for (let i = 0; i < 200; i += 1) {
      if (wanted(stage.call)) return;
      await wait(50);
    }
    throw new Error(`${wanted} is not so: ${JSON.stringify(stage.call)}`);
  };
  stage.render(options);
  return stage;
}

const line = (id, text) =>
  `{"type":"transcript","id":"${id}","originator":"user","text":"${text}","final":true,"at_ms":5}`;

const scenarios = {
  async "StrictMode makes one call, and unmounting ends it"(backend) {
    const stage = mount(backend.callbacks(false), { atOnce: true });
    await stage.until(({ status }) => status === "ongoing");
    const starts = () => backend.log().split("\n").filter((name) => name === "onCallStart").length;
    const during = [starts(), backend.captures(), stage.call.isActive, stage.seen.join(" ")];
    stage.unmount();
    await backend.waitFor("onHangUp");
    await wait(200);
    return [...during, starts(), backend.isReleased()];
  },

  async "what the call tells is state, and the operations reach it"(backend) {
    const stage = mount();
    const { start } = stage.call;
    const started = stage.call.start({ signedUrl: URL });
    await started;
    await stage.until(({ status }) => status === "ongoing");
    const second = await stage.call.start({ signedUrl: URL }).catch(({ code }) => code);
    backend.say('{"type":"agent_state","state":"thinking"}');
    backend.say(line("1", "one"));
    backend.say(line("2", "two"));
    backend.say(line("1", "three"));
    await stage.until(({ transcript }) => transcript[0]?.text === "three");
    const { agentState, transcript } = stage.call;
    stage.call.mute(true);
    await stage.until(({ muted }) => muted);
    const sent = stage.call.sendText("hello");
    const frame = JSON.parse(backend.lastFrame()).text;
    stage.call.hangUp();
    await stage.until(({ isActive }) => !isActive);
    const after = [stage.call.status, stage.call.agentState, stage.call.muted, stage.call.start === start];
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
