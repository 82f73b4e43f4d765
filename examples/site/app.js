// The demo page: ties the SDK's call to the elements of the page. It uses the SDK as any customer would.

import { CallManager } from "/sdk/index.mjs";
import { deviceMenus } from "./devices.js";
import { showError, clearError } from "./errors.js";
import { eventList } from "./events.js";
import { Meters } from "./meters.js";
import { Timer } from "./timer.js";
import { Transcript } from "./transcript.js";

const element = (id) => document.getElementById(id);

const STATES = {
  starting: "Connecting…",
  ongoing: "Connected",
  reconnecting: "The connection was lost, coming back…",
  completed: "Call ended",
  error: "The call failed",
};
const AGENT_STATES = { listening: "Listening", thinking: "Thinking…", speaking: "Speaking" };

const settings = await fetch("config.json").then((answer) => answer.json());
const transcript = new Transcript(element("transcript"));
const meters = new Meters(element("microphone-level"), element("speaker-level"), element("orb"));
const timer = new Timer(element("timer"));
const report = eventList(element("events"));
let muted = false;

const callbacks = report.every({
  onCallStart() {
    clearError();
    transcript.clear();
    showCall(true);
    showState("starting");
  },
  onCallStarting() {
    // The microphone is allowed now, so the devices have names.
    refreshDevices();
  },
  onConnected() {
    timer.start();
    element("text").disabled = false;
    element("send").disabled = false;
  },
  onStatusUpdate: showState,
  onAgentStateChange: showAgent,
  onTranscript: (line) => transcript.show(line),
  onRagInfo: showSources,
  onUserInfo() {},
  onLevels: (levels) => meters.show(levels),
  onCallError: showError,
  onHangUp() {
    // A call that failed before it was created has had no status.
    if (document.body.dataset.call === "starting") showState("error");
    leave();
  },
});

const manager = new CallManager(callbacks, { backendUrl: settings.backendUrl });
const refreshDevices = deviceMenus(CallManager, element("microphone"), element("speaker"), changeDevices);

element("call").addEventListener("click", call);
element("hang-up").addEventListener("click", () => manager.hangUp());
element("mute").addEventListener("click", () => setMuted(!muted));
element("typed").addEventListener("submit", sendTyped);
for (const radio of element("modes").elements) {
  // Without a publishable key there is only one way.
  if (radio.value === "client") radio.disabled = !settings.publishableKey;
}

async function call() {
  clearError();
  setMuted(false);
  showState("starting");
  element("call").disabled = true;
  const metadata = { page: location.pathname, language: navigator.language };
  const mode = document.querySelector("input[name=mode]:checked").value;
  try {
    if (mode === "client") {
      const { partner, character, publishableKey } = settings;
      await manager.handleCall2(`repo:${partner}`, character, publishableKey, metadata);
    } else {
      await manager.handleCall2(null, null, await signedUrl(), metadata);
    }
  } catch (error) {
    showError(error);
    showState("error");
    leave();
  }
}

function leave() {
  timer.stop();
  meters.rest();
  showCall(false);
}

/** Asks the customer's server for a call. The secret key stays there. */
async function signedUrl() {
  const answer = await fetch("api/call", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })
    .catch(() => null);
  const body = await answer?.json().catch(() => null);
  if (answer?.ok && body?.signedUrl) return body.signedUrl;
  const { code = "NETWORK", message = "The server of this page cannot be reached." } = body?.error ?? {};
  throw Object.assign(new Error(message), { code });
}

async function changeDevices(microphoneId, speakerId) {
  try {
    await manager.changeDevices(microphoneId, speakerId);
    return true;
  } catch (error) {
    showError(error);
    return false;
  }
}

function setMuted(value) {
  muted = value;
  manager.mute(muted);
  element("mute").setAttribute("aria-pressed", String(muted));
  element("mute").textContent = muted ? "Unmute" : "Mute";
  element("orb").dataset.muted = String(muted);
}

function sendTyped(event) {
  event.preventDefault();
  const text = element("text").value.trim();
  if (manager.sendText(text)) element("text").value = "";
}

function showState(state) {
  element("state").textContent = STATES[state] ?? state;
  document.body.dataset.call = state;
}

function showAgent(state) {
  element("state").textContent = AGENT_STATES[state] ?? state;
  element("orb").dataset.agent = state;
}

function showSources({ documents }) {
  element("sources").hidden = documents.length === 0;
  element("sources").textContent = `From: ${documents.map(({ title }) => title).join(", ")}`;
}

/** Shows the buttons of a call in progress, or the one that starts a call, and keeps the focus on a useful one. */
function showCall(active) {
  const hadFocus = document.activeElement?.closest(".controls, .typed");
  element("call").hidden = active;
  element("call").disabled = false;
  element("mute").hidden = !active;
  element("hang-up").hidden = !active;
  element("modes").disabled = active;
  if (!active) {
    element("text").disabled = true;
    element("send").disabled = true;
    element("sources").hidden = true;
    delete element("orb").dataset.agent;
  }
  if (hadFocus) element(active ? "hang-up" : "call").focus();
}
