// States of voices in words, and how far processing has come.

import type { Schemas } from "../api";

type Voice = Schemas["LibraryVoice"];
type Listed = Schemas["ListedVoice"];
type Label = { text: string; kind: "" | "busy" | "ok" | "down" | "plain" };

/** Returns the state of a voice of the list. */
export function stateOf({ splitting_status: splitting, embedding_status: embedding, sample_count: samples }: Listed): Label {
  if (splitting === "in_progress") return { text: "splitting", kind: "busy" };
  if (embedding === "in_progress") return { text: "embedding", kind: "busy" };
  if (splitting === "failed") return { text: "splitting failed", kind: "down" };
  if (embedding === "failed") return { text: "embedding failed", kind: "down" };
  if (embedding === "completed") return { text: "ready", kind: "ok" };
  return samples === 0 ? { text: "empty", kind: "plain" } : { text: "not embedded", kind: "plain" };
}

/** Returns the seconds of a time such as `01:05`; minutes may have more digits. */
export function secondsOf(timestamp: string): number {
  const [minutes = 0, seconds = 0] = timestamp.split(":").map(Number);
  return minutes * 60 + seconds;
}

/** Returns how much of the recording has been split, from 0 to 1; null if its length is not known yet. */
export function splitShare({ samples, original_duration: duration }: Pick<Voice, "samples" | "original_duration">): number | null {
  if (typeof duration !== "number" || duration <= 0) return null;
  const last = samples.at(-1);
  return last ? Math.min(1, (secondsOf(last.source_timestamp) + last.duration) / duration) : 0;
}

/** True while the voice is split or embedded: it cannot be changed. */
export const isLocked = ({ status }: Pick<Voice, "status">) => status.splitting === "in_progress" || status.embedding === "in_progress";
