// Waiting for something to become true.

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** How many times longer this machine takes than the one that deadlines are made for, at least 1 (`tests/run` measures it). */
export const SLOWNESS = Math.max(1, Number(process.env.COLLOQUY_TEST_SLOWNESS ?? 1));

/**
 * How long a test waits for what has no time of its own: long enough for a machine that is busy with other things, since how
 * fast something is, is asserted where it matters.
 */
export const PATIENCE_MS = 20_000 * SLOWNESS;

/** Asks until the answer is truthy, and returns it; fails with what was waited for. */
export async function until(what, ask, { withinMs = PATIENCE_MS, everyMs = 100 } = {}) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() >= deadline) throw new Error(`waited ${withinMs / 1000} s in vain: ${what}`);
    await sleep(everyMs);
  }
}

/** Fails when it takes longer. */
export async function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${ms / 1000} s: ${what}`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
