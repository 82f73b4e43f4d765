// Sounds that are shown: read a few at a time, and decoded for their waveforms.

import { readSound } from "./library";
import { peaksOf } from "./peaks";

/** A sound that can be played. */
export type Sound = {
  url: string;
  /** Null if the browser cannot decode the sound, which it may still play. */
  peaks: number[] | null;
  /** In seconds; null if that is not known. */
  duration: number | null;
};

/** Type of the blobs, never that of the server. */
const TYPE = "audio/ogg";
/** A low rate is enough for a picture. */
const RATE_HZ = 8_000;
const AT_ONCE = 3;

let running = 0;
const waiting: (() => void)[] = [];

/** Runs a task once fewer than {@link AT_ONCE} others run. */
async function inTurn<T>(task: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  running += 1;
  try {
    return await task();
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}

async function decode(blob: Blob): Promise<Pick<Sound, "peaks" | "duration">> {
  try {
    const context = new OfflineAudioContext(1, 1, RATE_HZ);
    const decoded = await context.decodeAudioData(await blob.arrayBuffer());
    return { peaks: peaksOf(decoded.getChannelData(0)), duration: decoded.duration };
  } catch {
    return { peaks: null, duration: null };
  }
}

/** Loads the sound of a path. The caller revokes its URL. */
export function loadSound(path: string, signal: AbortSignal): Promise<Sound> {
  return inTurn(async () => {
    signal.throwIfAborted();
    const blob = await readSound(path, signal);
    const decoded = await decode(blob);
    signal.throwIfAborted();
    return { url: URL.createObjectURL(new Blob([blob], { type: TYPE })), ...decoded };
  });
}
