// The demo page: ties the SDK's call to the elements of the page. It uses the SDK as any customer would.

import { CallManager } from "/sdk/index.mjs";
import { findings } from "./check.js";
import { deviceMenus } from "./devices.js";
import { clearError, showError } from "./errors.js";
import { eventList } from "./events.js";
import { Meters } from "./meters.js";
import { Quality } from "./quality.js";
import { callSettings, ownCharacter } from "./settings.js";
import { Timer } from "./timer.js";

const element = (id) => document.getElementById(id);

const STATES = {
  starting: "Connecting…",
  ongoing: "Connected",
  reconnecting: "The connection was lost, coming back…",
  completed: "Call ended",
  error: "The call failed",
};
const AGENT_STATES = { listening: "Listening", thinking: "Thinking…", speaking: "Speaking" };

const published = await fetch("config.json").then((answer) => answer.json());
const meters = new Meters(element("microphone-level"), element("speaker-level"), element("orb"));
const timer = new Timer(element("timer"));
const quality = new Quality(element("quality"), element("quality-words"));
const menus = deviceMenus(element("microphone"), element("speaker"), changeDevices);
const report = eventList(element("events"));
/** The devices that the visitor chose, as the SDK's configuration names them. */
const chosen = {};
/** What is known of the visitor. */
const visitor = new Map();
let muted = false;
let settingsChanged = false;

const callbacks = report.every({
  onCallStart() {
    clearError();
    showFindings([]);
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
  onRagInfo: showSources,
  onUserInfo: showVisitor,
  // Only for the list of what is reported: the SDK itself shows the conversation, and `onCallError` gets the errors too.
  onTranscript() {},
  onError() {},
  // A click anywhere lets the browser play, too.
  onAudioBlockedChange(isBlocked) {
    if (!isBlocked && soundIsBlocked()) soundPlays();
  },
  onLevels: (levels) => meters.show(levels),
  onStats: (stats) => quality.show(stats),
  onDevicesChanged: (devices) => menus.show(devices),
  onCallError: showError,
  onHangUp() {
    // A call that ended before it was created has told of no status.
    showState(manager.getState());
    leave();
  },
});

let manager = new CallManager(callbacks, configuration());
refreshDevices();

element("call").addEventListener("click", call);
// Until this code was there, a click would have done nothing.
element("call").disabled = false;
element("check").addEventListener("click", checkFirst);
element("hang-up").addEventListener("click", () => manager.hangUp());
element("mute").addEventListener("click", () => setMuted(!muted));
// Any click does the same; the button is for those who look for one.
element("start-audio").addEventListener("click", () => manager.startAudio().catch(showError));
element("typed").addEventListener("submit", sendTyped);
element("settings").addEventListener("change", () => {
  settingsChanged = true;
});
for (const radio of element("modes").elements) {
  // Without a publishable key there is only one way.
  if (radio.value === "client") radio.disabled = !published.publishableKey;
}

function configuration() {
  return {
    backendUrl: published.backendUrl,
    historyElement: "history",
    ...chosen,
    ...callSettings(element("settings")),
  };
}

async function call() {
  // A disabled button would lose the focus of someone who calls by keyboard.
  if (isBusy("call")) return;
  setBusy("call", true);
  clearError();
  showState("starting");
  const metadata = { page: location.pathname, language: navigator.language };
  const mode = document.querySelector("input[name=mode]:checked").value;
  try {
    if (settingsChanged) manager = new CallManager(callbacks, configuration());
    settingsChanged = false;
    setMuted(false);
    if (mode === "client") {
      const { partner, character, publishableKey } = published;
      const own = ownCharacter(element("settings"));
      await manager.handleCall2(`repo:${partner}`, own?.character ?? character, own?.key || publishableKey, metadata);
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
  if (soundIsBlocked()) clearError();
  timer.stop();
  meters.rest();
  quality.hide();
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

/** Says before a call whether it would work. */
async function checkFirst() {
  if (isBusy("check")) return;
  setBusy("check", true);
  clearError();
  showFindings([{ words: "Checking…" }]);
  try {
    showFindings(findings(await CallManager.preCallCheck(configuration())));
  } catch (error) {
    showFindings([]);
    showError(error);
  }
  setBusy("check", false);
}

function showFindings(list) {
  const items = list.map(({ words, ok }) => {
    const item = document.createElement("p");
    if (ok !== undefined) item.dataset.ok = String(ok);
    item.textContent = words;
    return item;
  });
  element("findings").replaceChildren(...items);
}

function refreshDevices() {
  CallManager.getAvailableDevices().then(menus.show, () => menus.show({}));
}

async function changeDevices(microphoneId, speakerId) {
  try {
    await manager.changeDevices(microphoneId, speakerId);
  } catch (error) {
    showError(error);
    return false;
  }
  if (microphoneId !== null) chosen.microphoneId = microphoneId;
  if (speakerId !== null) chosen.speakerId = speakerId;
  return true;
}

/** Whether the page shows that the browser holds the sound back. */
function soundIsBlocked() {
  return !element("error").hidden && !element("start-audio").hidden;
}

function soundPlays() {
  const hadFocus = document.activeElement === element("start-audio");
  clearError();
  if (hadFocus) element("mute").focus();
}

function setMuted(value) {
  muted = value;
  manager.mute(muted);
  element("mute").setAttribute("aria-pressed", String(muted));
  element("orb").dataset.muted = String(muted);
}

function sendTyped(event) {
  event.preventDefault();
  const text = element("text").value.trim();
  if (!text) return;
  const sent = manager.sendText(text);
  if (sent) element("text").value = "";
  element("unsent").textContent = sent ? "" : "That was not sent. Try again when the connection is back.";
}

function isBusy(id) {
  return element(id).getAttribute("aria-disabled") === "true";
}

function setBusy(id, busy) {
  element(id).setAttribute("aria-disabled", String(busy));
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
  const titles = new Set(documents.map(({ title }) => title));
  element("sources").textContent = `From: ${[...titles].join(", ")}`;
}

/** Adds what became known of the visitor to what is shown of them. */
function showVisitor(info) {
  for (const [field, value] of Object.entries(JSON.parse(info))) {
    if (value === null) visitor.delete(field);
    else visitor.set(field, value);
  }
  element("visitor").hidden = visitor.size === 0;
  const known = [...visitor].map(([field, value]) => `${field}: ${value}`);
  element("visitor").textContent = `About you: ${known.join("; ")}`;
}

/** Shows the buttons of a call in progress, or those before a call, and keeps the focus on a useful one. */
function showCall(active) {
  const hadFocus = document.activeElement?.closest(".controls, .typed, .error");
  for (const id of ["call", "check"]) element(id).hidden = active;
  for (const id of ["mute", "hang-up"]) element(id).hidden = !active;
  setBusy("call", false);
  element("modes").disabled = active;
  document.body.classList.toggle("in-call", active);
  if (!active) {
    element("text").disabled = true;
    element("send").disabled = true;
    element("sources").hidden = true;
    element("visitor").hidden = true;
    visitor.clear();
    element("unsent").textContent = "";
    delete element("orb").dataset.agent;
  }
  if (hadFocus) element(active ? "mute" : "call").focus();
}
