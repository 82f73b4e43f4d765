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

/** The first and the longest pause between two questions of `until`. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 400;

/** Asks until the answer is truthy, and returns it; fails with what was waited for. The longer it takes, the seldomer it asks. */
export async function until(what, ask, { withinMs = PATIENCE_MS, everyMs } = {}) {
  const deadline = new Deadline(what, withinMs);
  for (let pause = everyMs ?? FIRST_PAUSE_MS; ; pause = everyMs ?? Math.min(1.3 * pause, LONGEST_PAUSE_MS)) {
    const answer = await ask();
    if (answer) return answer;
    deadline.check();
    await sleep(pause);
  }
}

/** How long one script waits in a page, which is shorter than what a script may take. */
const SCRIPT_MS = 4_000;

/** What browsers say of a script whose page was left while it ran. */
const LEFT = /unloaded|navigat|discarded|no such execution context|cannot find context|target frame detached/i;

/**
 * Waits in the page until `look` returns something truthy there, and returns it; fails with what was waited for. It looks whenever the
 * document changes, and now and then for what is no part of it, so that a page which does nothing is asked for nothing. `look` is put into the page as
 * text: all that it needs is in `given`.
 */
export async function untilInPage(driver, what, look, given = [], { withinMs = PATIENCE_MS } = {}) {
  const deadline = new Deadline(what, withinMs);
  for (;;) {
    const answer = await driver.executeAsyncScript(`(${watch})(${look}, arguments)`, Math.min(deadline.leftMs, SCRIPT_MS), ...given).catch((error) => {
      if (!LEFT.test(error.message)) throw error;
      return sleep(FIRST_PAUSE_MS);
    });
    if (answer?.failed) throw new Error(`${what}: ${answer.failed}`);
    if (answer) return answer.found;
    deadline.check();
  }
}

/** Put into the page: looks until something is found, or until the time is over. */
function watch(look, given) {
  const [forMs, ...rest] = given;
  const done = rest.pop();
  const end = performance.now() + forMs;
  let last = -Infinity;
  let soon;
  const finish = (answer) => {
    observer.disconnect();
    clearInterval(seldom);
    clearTimeout(soon);
    done(answer);
  };
  const attempt = () => {
    soon = undefined;
    last = performance.now();
    try {
      const found = look(...rest);
      if (found) finish({ found });
      else if (last >= end) finish(null);
    } catch (error) {
      finish({ failed: String(error?.stack ?? error) });
    }
  };
  const observer = new MutationObserver(() => {
    if (performance.now() - last > 30) attempt();
    else soon ??= setTimeout(attempt, 30);
  });
  const seldom = setInterval(attempt, 250);
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot).filter(Boolean);
  for (const root of [document, ...shadows]) observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  attempt();
}

/** When a wait is in vain. */
class Deadline {
  #what;
  #patience;
  #at;

  constructor(what, withinMs) {
    this.#what = what;
    this.#patience = scaled(withinMs);
    this.#at = Date.now() + this.#patience;
  }

  get leftMs() {
    return Math.max(0, this.#at - Date.now());
  }

  /** Fails if it is over. */
  check() {
    if (this.leftMs === 0) throw new Error(`waited ${this.#patience / 1000} s in vain: ${this.#what}`);
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
