// A page's part of a test: places a call with an SDK, against a backend inside the page, and reports how it went.

import { Backend, wait } from "../../sdk-wasm/tests/fake_backend.js";

const told = new URLSearchParams(location.search);

/** A page on another server than the test's names where to report. */
const target = told.get("report") ?? "/report";

/** How many times longer this machine takes than the one that deadlines are made for. */
export const SLOWNESS = Number(told.get("slowness") ?? 1);

export const report = (body) => fetch(target, { method: "POST", mode: "no-cors", body });

/** Runs a page's script and reports what it returns, or why it failed. */
export async function reporting(script) {
  try {
    await report(await script());
  } catch (error) {
    await report(String(error.stack));
  }
}

/** Waits until a condition holds, ten seconds on a machine of ordinary speed, and says whether it does. */
export async function until(holds, seconds = 10) {
  for (let i = 0; i < 20 * seconds * SLOWNESS && !holds(); i += 1) await wait(50);
  return holds();
}

/** Waits until a condition holds, while what nobody holds is collected so many times. */
export async function collectUntil(holds, most = 100) {
  for (let i = 0; i < most && !holds(); i += 1) {
    await (globalThis.gc?.() ?? globalThis.TestUtils?.gc());
    // The SDK hears of it in a task of its own.
    await wait(20);
  }
}

/** The browsers' fake microphones beep, louder than this. */
const AUDIBLE = 0.001;

export function placeCall({ CallManager }) {
  return reporting(async () => {
    const backend = new Backend();
    let levels = 0;
    const onLevels = ({ microphone }) => { levels = Math.max(levels, microphone); };
    // On a slow machine a call lasts long enough for statistics.
    const manager = new CallManager({ ...backend.callbacks(false), onLevels, onStats: undefined });
    // Before the wasm is there, as a quick visitor does.
    await manager.handleCall2(null, null, "wss://calls.invalid/session", { page: "test" });
    if (manager.getState() !== "error") {
      await backend.waitFor("ongoing");
      await until(() => levels > AUDIBLE, 5);
      manager.hangUp();
    }
    const facts = [backend.log(), levels > AUDIBLE ? "level" : "no level", backend.isReleased() ? "released" : "held"];
    backend.uninstall();
    return facts.join("\n");
  });
}
