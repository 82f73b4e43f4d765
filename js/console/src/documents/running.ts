// The action on many documents that runs in this tab. It goes on while the user visits other views.

import { effect, signal } from "@preact/signals";

import { sessions } from "../api";
import { systemClock } from "../clock";
import { notify, notifyFailure } from "../ui/toasts";
import { Bulk, type Change, type Target } from "./bulk";

/** The action that runs, or the last one, until its failures are dismissed. */
export const bulk = signal<Bulk | null>(null);

/** Texts of an action: `Moving`, and `moved` of what is done. */
export type Verbs = { doing: string; done: string };

const subject = (targets: readonly Target[]) => {
  const [first] = targets;
  return targets.length === 1 && first ? first.name : `${targets.length.toLocaleString()} documents`;
};

/** Runs an action on documents, unless another one is running. */
export function startBulk({ doing, done }: Verbs, targets: readonly Target[], change: Change): void {
  if (bulk.peek()?.isRunning.peek()) return notifyFailure("Another action is running. Wait for it or cancel it.");
  const started = new Bulk(`${doing} ${subject(targets)}`, `${subject(targets)}: ${done}`, targets, change, systemClock);
  bulk.value = started;
  void runBulk(started);
}

/** Runs what is left of an action. It is dismissed unless something failed or is left. */
export async function runBulk(started: Bulk): Promise<void> {
  await started.run();
  if (bulk.peek() !== started || started.failures.peek().length > 0 || started.stopped.peek()) return;
  bulk.value = null;
  if (!started.isCancelled.peek()) notify(started.outcome);
}

effect(() => {
  if (sessions.current.value) return;
  bulk.peek()?.cancel();
  bulk.value = null;
});
