// Playback: one sound at a time.

import { batch, signal } from "@preact/signals";

import { notifyFailure } from "../ui/toasts";

const audio = new Audio();

/** The sound that was played last, by its URL; null after `stop`. */
const current = signal<string | null>(null);
const isPlaying = signal(false);
/** Position in the sound, in seconds. */
const position = signal(0);

audio.addEventListener("timeupdate", () => (position.value = audio.currentTime));
audio.addEventListener("seeked", () => (position.value = audio.currentTime));
audio.addEventListener("play", () => (isPlaying.value = true));
audio.addEventListener("pause", () => (isPlaying.value = false));
audio.addEventListener("ended", () => {
  batch(() => {
    isPlaying.value = false;
    position.value = 0;
  });
});

function take(url: string): void {
  if (current.peek() === url) return;
  audio.src = url;
  batch(() => {
    current.value = url;
    isPlaying.value = false;
    position.value = 0;
  });
}

/** Plays a sound, or pauses it. Whatever else plays is stopped. */
export function toggle(url: string): void {
  if (current.peek() === url && !audio.paused) return audio.pause();
  take(url);
  audio.play().catch((error: unknown) => {
    // Another sound was chosen before this one began.
    if (error instanceof DOMException && error.name === "AbortError") return;
    notifyFailure("This browser cannot play the sound. Download it instead.");
  });
}

/** Goes to a time of a sound, in seconds. */
export function seek(url: string, seconds: number): void {
  take(url);
  audio.currentTime = seconds;
  position.value = seconds;
}

/** Stops a sound that is about to be released. */
export function release(url: string): void {
  if (current.peek() !== url) return;
  audio.pause();
  audio.removeAttribute("src");
  audio.load();
  current.value = null;
}

/** Returns true while a sound plays. */
export const plays = (url: string) => current.value === url && isPlaying.value;

/** Returns where a sound is, in seconds. */
export const positionOf = (url: string) => (current.value === url ? position.value : 0);
