// Time and chance, which tests replace.

export type Clock = {
  /** Milliseconds since an arbitrary time; never runs backwards. */
  now: () => number;
  /** Resolves after `ms`, or as soon as the signal aborts. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** A random number, at least 0 and below 1. */
  random: () => number;
};

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

export const systemClock: Clock = { now: () => performance.now(), sleep, random: Math.random };

/** Returns the value of a promise. Throws if it takes longer than `ms`. */
export async function within<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T> {
  const settled = new AbortController();
  const late = clock.sleep(ms, settled.signal).then(() => {
    throw new Error(`no result within ${ms} ms`);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    settled.abort();
  }
}
