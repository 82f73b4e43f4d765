// The switches of the settings. A manager keeps what it was made with, so they count from the next call on.

/** What is switched, as the SDK's configuration names it. */
export function callSettings({ elements }) {
  const on = (name) => elements.namedItem(name).checked;
  return {
    audio: {
      echoCancellation: on("echoCancellation"),
      noiseSuppression: on("noiseSuppression"),
      autoGainControl: on("autoGainControl"),
    },
    iceTransportPolicy: on("relayOnly") ? "relay" : "all",
    wakeLock: on("wakeLock"),
  };
}
