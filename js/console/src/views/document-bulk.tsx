// The progress of actions on many documents, and what failed of them.

import type { Bulk } from "../documents/bulk";
import { bulks, runBulk } from "../documents/running";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";

/** Failures listed at most. */
const MAX_LISTED = 50;

function Progress({ of }: { of: Bulk }) {
  const { targets, title } = of;
  const [done, failures] = [of.done.value, of.failures.value];
  const isRunning = of.isRunning.value;
  const stopped = of.stopped.value;
  if (isRunning && targets.length === 1 && failures.length === 0) return null;
  return (
    <section class="progress-panel" aria-label={title}>
      <header>
        <strong>
          <bdi>{title}</bdi>
        </strong>
        <span role="status">
          {formatNumber(done)} of {formatNumber(targets.length)} done
          {failures.length > 0 && `, ${formatNumber(failures.length)} failed`}
          {of.isCancelled.value && ", cancelled"}
        </span>
        {stopped && !isRunning && (
          <button type="button" onClick={() => runBulk(of)}>
            Go on
          </button>
        )}
        {isRunning ? (
          <button type="button" onClick={() => of.cancel()}>
            Cancel
          </button>
        ) : (
          <button type="button" class="bare" aria-label="Dismiss" onClick={() => bulks.dismiss(of)}>
            <Icon name="x" />
          </button>
        )}
      </header>
      {stopped && (
        <p class="reason" role="alert">
          Stopped. {stopped.message}
        </p>
      )}
      <progress max={targets.length} value={done + failures.length} aria-label={title} />
      {failures.length > 0 && (
        <ul class="failures">
          {failures.slice(0, MAX_LISTED).map(({ id, name, problem }) => (
            <li key={id}>
              <bdi>{name}</bdi>: <span class="reason">{problem.message}</span>
            </li>
          ))}
          {failures.length > MAX_LISTED && <li class="hint">and {formatNumber(failures.length - MAX_LISTED)} more</li>}
        </ul>
      )}
    </section>
  );
}

export function BulkProgress() {
  return (
    <>
      {bulks.shown.value.map((bulk) => (
        <Progress key={bulk.id} of={bulk} />
      ))}
    </>
  );
}
