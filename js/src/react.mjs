// The React hook: a CallManager for as long as a component is mounted, and its events as React state.
// Types and documentation for people are in react.d.ts.

import { useEffect, useState } from "react";

import { CALL_ACTIVE } from "./call-active.mjs";
import { CallError, CallManager } from "./index.mjs";

const IDLE = { status: "idle", callId: null, agentState: null, transcript: [], error: null, hangUpReason: null };
const ACTIVE = ["starting", "ongoing", "reconnecting"];
const CALLBACKS = [
  "onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onCallStarting", "onConnected", "onRagInfo",
  "onTranscript", "onAgentStateChange", "onAudioBlockedChange", "onError",
];
/** Events that cost work, in the SDK or the backend, so callbacks for them are passed only when the component has them. */
const ON_DEMAND = ["onLevels", "onStats", "onDevicesChanged", "onUserInfo"];

export function useCall(options = {}) {
  const [state, show] = useState({ ...IDLE, muted: false });
  const [line] = useState(() => new Line(show));
  // In an effect, because React may throw a rendering away.
  useEffect(() => {
    line.options = options;
  });
  useEffect(() => {
    line.open();
    return () => line.close();
  }, [line]);
  const { start, hangUp, mute, sendText, changeDevices, startAudio, on, off } = line;
  return { ...state, isActive: isActive(state), start, hangUp, mute, sendText, changeDevices, startAudio, on, off };
}

const isActive = ({ status }) => ACTIVE.includes(status);

/** A component's manager and its operations, which are the same functions in every rendering. */
class Line {
  options = {};
  #show;
  #manager;
  /** The options that the manager was constructed with. */
  #made;
  /** A call that was asked for in this turn. */
  #asked;
  #muted = false;
  #chosen = {};
  /** Listeners beside the callbacks, for every manager of this component. */
  #listeners = [];

  constructor(show) {
    this.#show = show;
  }

  open() {
    const { options } = this;
    const config = { ...options, ...this.#chosen };
    const callbacks = {};
    const hear = (name) => (argument) => this.#hear(manager, name, argument);
    for (const name of CALLBACKS) callbacks[name] = hear(name);
    for (const name of ON_DEMAND) if (options[name]) callbacks[name] = hear(name);
    for (const name of [...CALLBACKS, ...ON_DEMAND]) delete config[name];
    const manager = new CallManager(callbacks, config);
    manager.mute(this.#muted);
    for (const [name, listener] of this.#listeners) manager.on(name, listener);
    this.#manager?.destroy();
    this.#manager = manager;
    this.#made = options;
  }

  close() {
    this.#asked = undefined;
    this.#manager?.destroy();
    this.#manager = undefined;
  }

  #hear(manager, name, argument) {
    // A component that is gone, or hidden, still hears how its call ends, but nothing that is no part of a call.
    if (manager !== this.#manager && name === "onDevicesChanged") return;
    if (manager === this.#manager || !this.#manager) {
      const { callId } = manager;
      this.#show((state) => ({ ...next(state, name, argument), callId }));
    }
    this.options[name]?.(argument);
  }

  start = async (call, customMetadata) => {
    if (this.#asked) throw new CallError(...CALL_ACTIVE);
    const asked = {};
    this.#asked = asked;
    // StrictMode mounts, unmounts and mounts again within one task: a call started by an effect of the first mount is dropped.
    await null;
    if (this.#asked !== asked) return;
    this.#asked = undefined;
    if (!this.#manager) return;
    if (!ACTIVE.includes(this.#manager.getState()) && !same(this.#made, this.options)) this.open();
    const { signedUrl, partner, character, apiKey } = call;
    const [of, to, credential] = apiKey === undefined ? [null, null, signedUrl] : [partner, character, apiKey];
    await this.#manager.handleCall2(of, to, credential, customMetadata);
  };

  hangUp = () => {
    this.#asked = undefined;
    this.#manager?.hangUp();
  };

  mute = (isMuted) => {
    this.#muted = Boolean(isMuted);
    this.#manager?.mute(this.#muted);
    this.#show((state) => ({ ...state, muted: this.#muted }));
  };

  sendText = (text) => this.#manager?.sendText(text) ?? false;

  changeDevices = async (microphoneId, speakerId) => {
    const before = this.#chosen;
    const chosen = { ...before };
    if (microphoneId !== null) chosen.microphoneId = microphoneId;
    if (speakerId !== null) chosen.speakerId = speakerId;
    // At once, because of two quick choices the later one counts.
    this.#chosen = chosen;
    try {
      await this.#manager?.changeDevices(microphoneId, speakerId);
    } catch (error) {
      if (this.#chosen === chosen) this.#chosen = before;
      throw error;
    }
  };

  startAudio = async () => {
    await this.#manager?.startAudio();
  };

  on = (name, listener) => {
    this.#manager?.on(name, listener);
    this.#listeners.push([name, listener]);
  };

  off = (name, listener) => {
    this.#manager?.off(name, listener);
    this.#listeners = this.#listeners.filter((other) => other[0] !== name || other[1] !== listener);
  };
}

/** Whether a manager made with the one options also does for the others: functions count only by being there. */
function same(made, options) {
  const facts = (given) => JSON.stringify(given, (key, value) => {
    if (key === "historyElement") return undefined;
    return typeof value === "function" ? ON_DEMAND.includes(key) : value;
  });
  return made.historyElement === options.historyElement && facts(made) === facts(options);
}

/** The state after a callback. */
function next(state, name, argument) {
  switch (name) {
    case "onCallStart":
      return { ...IDLE, muted: state.muted, status: "starting" };
    case "onStatusUpdate":
      return { ...state, status: argument };
    case "onAgentStateChange":
      return { ...state, agentState: argument };
    case "onTranscript":
      return { ...state, transcript: withLine(state.transcript, argument) };
    case "onCallError":
      return { ...state, error: argument };
    case "onAudioBlockedChange":
      return argument || state.error?.code !== "AUDIO_BLOCKED" ? state : { ...state, error: null };
    case "onHangUp": {
      // A call that could not be loaded has no status.
      const ended = state.error?.fatal ? "error" : "completed";
      return { ...state, agentState: null, hangUpReason: argument, status: isActive(state) ? ended : state.status };
    }
    default:
      return state;
  }
}

function withLine(lines, line) {
  // An empty text withdraws the line.
  if (line.text === "") return lines.filter(({ id }) => id !== line.id);
  const known = lines.some(({ id }) => id === line.id);
  return known ? lines.map((other) => (other.id === line.id ? line : other)) : [...lines, line];
}
