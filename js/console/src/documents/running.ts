// The actions on many documents of this tab. They go on while the user visits other views.

import { computed, effect } from "@preact/signals";

import { sessions } from "../api";
import { systemClock } from "../clock";
import { notify, notifyFailure } from "../ui/toasts";
import { mayBeLost } from "../unfinished";
import { Bulk, Bulks, type Change, type Target } from "./bulk";

export const bulks = new Bulks();

mayBeLost(computed(() => (bulks.shown.value.some(({ isRunning }) => isRunning.value) ? "an action on documents" : null)));

/** Texts of an action: `Moving`, and `moved` of what is done. */
export type Verbs = { doing: string; done: string };

const subject = (targets: readonly Target[]) => {
  const [first] = targets;
  return targets.length === 1 && first ? first.name : `${targets.length.toLocaleString()} documents`;
};

/** Runs an action on documents. */
export function startBulk({ doing, done }: Verbs, targets: readonly Target[], change: Change): void {
  runBulk(new Bulk(`${doing} ${subject(targets)}`, `${subject(targets)}: ${done}`, targets, change, systemClock));
}

/** Runs an action, or what is left of one, unless another one is running. */
export function runBulk(bulk: Bulk): void {
  bulks.run(bulk).then((outcome) => outcome && notify(outcome), notifyFailure);
}

effect(() => {
  if (!sessions.current.value) bulks.clear();
});
