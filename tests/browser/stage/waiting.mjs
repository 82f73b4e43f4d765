// Waiting for something to become true.

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** How many times longer this machine takes than the one that deadlines are made for, at least 1 (`tests/run` measures it). */
export const SLOWNESS = Math.max(1, Number(process.env.COLLOQUY_TEST_SLOWNESS ?? 1));

/** A time that is made for a machine of ordinary speed, for this one: a whole number, as programs want it. */
export const scaled = (time) => Math.ceil(time * SLOWNESS);

/**
 * How long a test waits for what has no time of its own: long enough for a machine that is busy with other things, since how
 * fast something is, is asserted where it matters. This, and what `until` and `within` are given, is for a machine of ordinary speed.
 */
export const PATIENCE_MS = 20_000;

/** Asks until the answer is truthy, and returns it; fails with what was waited for. */
export async function until(what, ask, { withinMs = PATIENCE_MS, everyMs = 100 } = {}) {
  const patience = scaled(withinMs);
  const deadline = Date.now() + patience;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() >= deadline) throw new Error(`waited ${patience / 1000} s in vain: ${what}`);
    await sleep(everyMs);
  }
}

/** Fails when it takes longer. */
export async function within(ms, what, promise) {
  const patience = scaled(ms);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${patience / 1000} s: ${what}`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
