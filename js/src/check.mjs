// What a page gives to a manager, checked when it gives it: a mistake is named to the developer at once, and not when a
// visitor calls. The wasm takes what comes through here as it is. What is of the wrong type is an error; a name that nobody
// knows is a warning, because a page may be newer than its SDK, or carry things of its own.

import { CallError } from "./error.mjs";

const REQUIRED = ["onCallStart", "onCallError", "onHangUp", "onStatusUpdate"];
const OPTIONAL = [
  "onCallStarting", "onConnected", "onUserInfo", "onRagInfo", "onTranscript", "onAgentStateChange", "onLevels",
  "onStats", "onDevicesChanged", "onAudioBlockedChange", "onError",
];

const isObject = (value) => typeof value === "object" && value !== null;

function hasJson(value) {
  try {
    return JSON.stringify(value).startsWith("{");
  } catch {
    return false;
  }
}

/** Whether the browser takes them; elsewhere only the list itself is looked at. */
function areIceServers(iceServers) {
  try {
    if (typeof RTCPeerConnection !== "undefined") new RTCPeerConnection({ iceServers }).close();
    return Array.isArray(iceServers);
  } catch {
    return false;
  }
}

/** Whether it is an address with its scheme. Without one, a browser would take it for a path below the page. */
const isAddress = (value) => value === "" || /^https?:\/\/[^/?#]/i.test(value); // An empty one is none.

const ADDRESS = ["a URL that begins with https:// or http://", isAddress];
const TEXT = ["a string", (value) => typeof value === "string"];
const FLAG = ["a boolean", (value) => typeof value === "boolean"];

/** What each key must be, in words and as a test; an absent one always may be. */
const CONFIG = {
  characterRole: TEXT,
  personRole: TEXT,
  microphoneId: TEXT,
  speakerId: TEXT,
  backendUrl: ADDRESS,
  BACKEND_URL: ADDRESS,
  callTimeLimitSeconds: ["a whole number from 1 to 14400", (value) => Number.isInteger(value) && value >= 1 && value <= 14_400],
  characterParams: ["an object", hasJson],
  historyElement: ["an element or its id", (value) => typeof value === "string" || isObject(value)],
  audio: ["an object", isObject],
  iceServers: ["an array of ICE servers", areIceServers],
  iceTransportPolicy: ["all or relay", (value) => value === "all" || value === "relay"],
  wakeLock: FLAG,
};

const AUDIO = { echoCancellation: FLAG, noiseSuppression: FLAG, autoGainControl: FLAG };

export function checkCallbacks(callbacks) {
  expect(isObject(callbacks), "callbacks", "an object");
  for (const name of [...REQUIRED, ...OPTIONAL]) {
    const there = callbacks[name] != null || REQUIRED.includes(name);
    expect(!there || typeof callbacks[name] === "function", `callbacks.${name}`, "a function");
  }
  const named = Object.keys(callbacks).filter((name) => /^on[A-Z]/.test(name));
  warn(named, "callbacks", [...REQUIRED, ...OPTIONAL]);
}

export function checkListener(name, listener) {
  if (![...REQUIRED, ...OPTIONAL].includes(name)) refuse(`there is no callback ${String(name)}`);
  expect(typeof listener === "function", "the listener", "a function");
}

export function checkConfig(config) {
  expect(config == null || isObject(config), "config", "an object");
  checkKeys(config, "config", CONFIG);
  checkKeys(config?.audio, "config.audio", AUDIO);
}

function checkKeys(given, path, keys) {
  for (const [key, [expected, isValid]] of Object.entries(keys)) {
    expect(given?.[key] == null || isValid(given[key]), `${path}.${key}`, expected);
  }
  warn(Object.keys(given ?? {}), path, Object.keys(keys));
}

function warn(names, path, known) {
  for (const name of names) {
    if (!known.includes(name)) console.warn(`colloquy: ${path}.${name} is not known, and does nothing. Is it misspelt?`);
  }
}

export function refuse(what) {
  throw new CallError("INVALID_ARGUMENT", `An argument is not valid. (${what})`);
}

function expect(holds, name, expected) {
  if (!holds) refuse(`${name} must be ${expected}`);
}
