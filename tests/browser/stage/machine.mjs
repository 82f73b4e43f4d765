// How busy the machine was while something was played, for whoever reads of a failure: sound and signalling run in real time, and a machine that has no
// time to spare tears words and lets echoes pass.

import { readFileSync } from "node:fs";

/** The time that somebody has waited for a processor so far, in milliseconds; none where the system does not count it. */
function waited() {
  try {
    const [, total] = /^some .*total=(\d+)/m.exec(readFileSync("/proc/pressure/cpu", "utf8"));
    return Number(total) / 1_000;
  } catch {
    return undefined;
  }
}

/** Begins to look; the result tells for which part of the time since then somebody waited for a processor, from 0 to 1. */
export function watchMachine() {
  const [before, from] = [waited(), performance.now()];
  return () => (before === undefined ? 0 : (waited() - before) / (performance.now() - from));
}
