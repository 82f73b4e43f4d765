// The check before a call, in words.

import { advice } from "./errors.js";
import { milliseconds, path } from "./quality.js";

const PERMISSIONS = {
  granted: "The microphone is allowed.",
  prompt: "Your browser will ask for the microphone.",
  unknown: "Your browser does not say whether the microphone is allowed.",
  denied: "The microphone is blocked. Allow it in the browser's site settings.",
  unsupported: "This browser gives the page no microphone.",
};

/** What `CallManager.preCallCheck` found: a list of `{ words, ok }`, the conclusion first. */
export function findings({ ok, permission, microphones, speakers, backend, media }) {
  return [
    { ok, words: ok ? "A call should work." : "A call would probably fail." },
    { ok: permission !== "denied" && permission !== "unsupported", words: PERMISSIONS[permission] },
    { ok: microphones > 0, words: microphones > 0 ? `Microphones: ${microphones}.` : advice("MICROPHONE_MISSING") },
    // Without a list the system's speaker is used.
    { ok: true, words: speakers > 0 ? `Speakers: ${speakers}.` : "The system chooses the speaker." },
    { ok: backend.ok, words: backend.ok ? `The service answers in ${milliseconds(backend.ms)}.` : advice(backend.code) },
    // What keeps the service away keeps the sound away, and was said above.
    ...(backend.ok ? [sound(media)] : []),
  ];
}

function sound(media) {
  if (!media.ok) return { ok: false, words: advice(media.code) };
  const [way] = path(media);
  return { ok: true, words: `Sound gets through in ${milliseconds(media.ms)}${way ? ` (${way})` : ""}.` };
}
