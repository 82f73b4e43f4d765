// The error box: the code of what failed, and what the visitor can do about it.

const ADVICE = {
  MICROPHONE_DENIED: "Allow the microphone for this page in the browser's site settings, then call again.",
  MICROPHONE_MISSING: "Connect a microphone, or choose another one, then call again.",
  MICROPHONE_BUSY: "Close other programs that use the microphone, then call again.",
  SPEAKER_MISSING: "Choose another speaker.",
  AUDIO_BLOCKED: "Your browser waits for a click before it plays sound.",
  INSECURE_CONTEXT: "Open this page over HTTPS, or on localhost.",
  UNSUPPORTED_BROWSER: "Update your browser, or use another one.",
  LOAD_FAILED: "Reload the page. If that does not help, use another browser.",
  INVALID_ARGUMENT: "This page has a mistake. Please tell its owner.",
  CALL_ACTIVE: "A call is in progress. Hang up before you call again.",
  INVALID_KEY: "The page's key was not accepted. Please tell the owner of this page.",
  INVALID_CHARACTER: "The character is not there. Please tell the owner of this page.",
  INVALID_SIGNATURE: "The call could not be opened. Please call again.",
  URL_EXPIRED: "The invitation to the call has expired. Please call again.",
  CALL_IN_USE: "This call is open in another window. Close it there, or call again.",
  CALL_NOT_FOUND: "The call is over. Please call again.",
  CAPACITY: "All lines are busy. Please try again in a moment.",
  RATE_LIMITED: "Too many calls. Please wait a minute.",
  PROTOCOL: "The page and the service do not fit together. Reload the page, then call again.",
  NETWORK: "The service cannot be reached. Check your connection, then call again.",
  MEDIA: "The sound cannot get through. Try another network, or turn off “Through a relay only”.",
  SERVER: "The service has a problem. Please try again in a moment.",
};

const box = () => document.getElementById("error");
const part = (name) => document.getElementById(`error-${name}`);

/** What a visitor can do about a failure with this code. New codes may come. */
export function advice(code) {
  return ADVICE[code] ?? "Please try again.";
}

/** Shows an error of the SDK or of the customer's server. */
export function showError(error) {
  part("code").textContent = error?.code ?? "ERROR";
  part("advice").textContent = advice(error?.code);
  part("message").textContent = error?.message ?? "";
  document.getElementById("start-audio").hidden = error?.code !== "AUDIO_BLOCKED";
  box().hidden = false;
}

export function clearError() {
  box().hidden = true;
}
