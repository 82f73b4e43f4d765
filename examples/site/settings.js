// What the settings say. A manager keeps what it was made with, so they count from the next call on.

/** What is set, as the SDK's configuration names it. */
export function callSettings({ elements }) {
  const on = (name) => elements.namedItem(name).checked;
  const text = (name) => elements.namedItem(name).value.trim() || null;
  const urls = text("iceServer");
  return {
    audio: {
      echoCancellation: on("echoCancellation"),
      noiseSuppression: on("noiseSuppression"),
      autoGainControl: on("autoGainControl"),
    },
    personRole: text("personRole"),
    characterRole: text("characterRole"),
    iceServers: urls && [{ urls, username: text("iceUser") ?? "", credential: text("iceCredential") ?? "" }],
    iceTransportPolicy: on("relayOnly") ? "relay" : "all",
    wakeLock: on("wakeLock"),
    // The customer's server decides these for the calls that it creates.
    callTimeLimitSeconds: Number(text("timeLimit")),
    characterParams: text("robotName") && { robot_name: text("robotName") },
  };
}

/** The visitor's own character and the key for it; nothing without instructions. */
export function ownCharacter({ elements }) {
  const personality = elements.namedItem("personality").value.trim();
  if (!personality) return null;
  const description = JSON.stringify({ name: "Your character", greetings: ["Hello, I am a character of your own."] });
  return { character: { personality, description }, key: elements.namedItem("secretKey").value.trim() };
}
