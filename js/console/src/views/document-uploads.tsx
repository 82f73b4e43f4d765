// The uploads of this tab: progress, failures and duplicates.

import { DOCUMENT, address } from "../addresses";
import { type Source, nameOf, uploads } from "../documents/uploads";
import type { Upload, UploadState } from "../documents/queue";
import { duplicateCount } from "../documents/words";
import { counted } from "../knowledge/words";
import { Link } from "../router";
import { formatBytes, formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { RowAction } from "../ui/row-action";

/** Uploads listed at most. */
const MAX_LISTED = 50;
function Status({ source, state }: { source: Source; state: UploadState }) {
  const { partner, base } = source;
  switch (state.name) {
    case "queued":
      return <span class="hint">queued</span>;
    case "waiting":
      return <span class="hint">Waits for the server; sent again by itself</span>;
    case "sending":
      return <progress max={1} value={state.share} aria-label={`Uploading ${nameOf(source)}`} />;
    case "failed":
      return <span class="reason">{state.problem.message}</span>;
    case "done": {
      const [other] = state.duplicates;
      return (
        <span>
          <Link to={address(DOCUMENT, { partner, name: base, id: state.document })}>uploaded</Link>
          {other && (
            <>
              {", a duplicate of "}
              <Link to={address(DOCUMENT, { partner, name: base, id: other })}>
                {state.duplicates.length === 1 ? "another document" : `${duplicateCount(state.duplicates.length)} documents`}
              </Link>
            </>
          )}
        </span>
      );
    }
  }
}

function Row({ of: { id, source, state }, base }: { of: Upload<Source>; base: string }) {
  const { name } = state.value;
  return (
    <li class={name}>
      <span class="upload-name">
        <bdi>{nameOf(source)}</bdi>
        {source.base !== base && (
          <span class="hint">
            {" to "}
            <bdi>{source.base}</bdi>
          </span>
        )}
      </span>
      {source.size !== null && <span class="hint">{formatBytes(source.size)}</span>}
      <span class="upload-status">
        <Status source={source} state={state.value} />
      </span>
      {name === "failed" && <RowAction icon="refresh-cw" label={`Upload ${nameOf(source)} again`} onClick={() => uploads.retry(id)} />}
      <RowAction
        icon="x"
        label={name === "done" || name === "failed" ? `Dismiss ${nameOf(source)}` : `Cancel ${nameOf(source)}`}
        onClick={() => uploads.remove(id)}
      />
    </li>
  );
}

/** The uploads, with the name of their knowledge base unless that is `base`. */
export function Uploads({ base }: { base: string }) {
  const all = uploads.uploads.value;
  if (all.length === 0) return null;
  const { done, failed, duplicates } = uploads.counts.value;
  const isActive = uploads.isActive.value;
  const listed = uploads.first(MAX_LISTED);
  return (
    <section class="progress-panel" aria-label="Uploads">
      <header>
        <strong>Uploads</strong>
        <span role="status">
          {formatNumber(done)} of {formatNumber(all.length)} done
          {failed > 0 && `, ${formatNumber(failed)} failed`}
          {duplicates > 0 && `, ${counted(duplicates, "duplicate")}`}
        </span>
        {failed > 0 && (
          <button type="button" onClick={() => uploads.retry()}>
            Retry failed
          </button>
        )}
        {isActive ? (
          <button type="button" onClick={() => uploads.cancel()}>
            Cancel
          </button>
        ) : (
          <button type="button" class="bare" aria-label="Dismiss the uploads" onClick={() => uploads.dismiss()}>
            <Icon name="x" />
          </button>
        )}
      </header>
      <progress max={all.length} value={done + failed} aria-label="All uploads" />
      <details open={failed > 0 || duplicates > 0 || isActive}>
        <summary>Files</summary>
        <ul class="uploads">
          {listed.map((upload) => (
            <Row key={upload.id} of={upload} base={base} />
          ))}
          {all.length > listed.length && <li class="hint">and {formatNumber(all.length - listed.length)} more</li>}
        </ul>
      </details>
    </section>
  );
}
