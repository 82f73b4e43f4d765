// Words of the page for calls: for states, and for what can go wrong.

import type { AgentState, CallErrorCode, CallStatus, HangUpReason } from "@colloquy/sdk";

import type { Problem } from "../problem";

/** The state of the page: that of a call, or `creating` while the server makes one. */
export type State = "idle" | "creating" | CallStatus;

const STATES: Record<State, string> = {
  idle: "Not in a call",
  creating: "Creating the call…",
  starting: "Connecting…",
  ongoing: "In the call",
  reconnecting: "The connection is lost. Connecting again…",
  completed: "The call is over",
  error: "The call failed",
};

const AGENT: Record<AgentState, string> = {
  listening: "Listening",
  thinking: "Thinking",
  speaking: "Speaking",
};

const ENDS: Partial<Record<HangUpReason, string>> = {
  local: "You hung up",
  remote: "The call was ended at the other side",
  time_limit: "The time of the call is over",
  shutdown: "The server is being restarted",
};

/** Returns the state in words. */
export function stateWords(state: State, agent: AgentState | null, end: HangUpReason | null): string {
  if (state === "ongoing" && agent) return AGENT[agent];
  return (state === "completed" && end && ENDS[end]) || STATES[state];
}

/** Advice for errors whose own message is for whoever writes a page. */
const FAILURES: Partial<Record<CallErrorCode, string>> = {
  MICROPHONE_DENIED: "The browser does not let this page use the microphone. Allow it in the settings of the site, beside the address, then call again.",
  MICROPHONE_MISSING: "There is no microphone. Connect one, then call again.",
  MICROPHONE_BUSY: "The microphone cannot be read. Another program may use it.",
  SPEAKER_MISSING: "The speaker cannot be used.",
  AUDIO_BLOCKED: "The browser holds the sound back. Press “Play the sound”.",
  INSECURE_CONTEXT: "Browsers give the microphone to pages with https and to localhost only. Open the console with https.",
  UNSUPPORTED_BROWSER: "This browser cannot make calls.",
  LOAD_FAILED: "The files for calls could not be loaded. Load the page again.",
  URL_EXPIRED: "The call waited too long for the microphone. Call again.",
  CAPACITY: "The server has no capacity for another call now. Try again later.",
  NETWORK: "The connection to the server is lost, or could not be made. A proxy in front of the server has to pass WebSockets on.",
  MEDIA: "No sound gets through to the server. A firewall may block the UDP port of its calls.",
};

/** Returns what to do about an error of the SDK. */
export const failureWords = ({ code, message }: { code: CallErrorCode; message: string }): string => FAILURES[code] ?? message;

/** Returns why the server created no call. */
export function refusalWords({ status, field, message }: Problem): string {
  if (status === 401) return "Sign in to the console, then call again.";
  return field ? `${field}: ${message}` : message;
}
