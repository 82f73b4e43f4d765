// The chunks of a document: the parts of its final content that are embedded and found.

import { type Schemas, api } from "../api";
import type { DocumentAt } from "../documents/contents";
import { notEmbeddedWords } from "../documents/words";
import { useSummedPages } from "../knowledge/summed";
import { counted } from "../knowledge/words";
import { Problem, ask } from "../problem";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { Empty, More, Shown } from "../ui/states";
import { Time } from "../ui/time";
import { Text } from "../ui/value";

type Chunk = Schemas["ChunkView"];
type About = Pick<Schemas["ChunkPage"], "profile" | "embedded_at" | "is_stale" | "total">;
/** How the document was embedded; `false` if it was not. */
type Embedded = About | false;

function useChunks({ partner, base, id }: DocumentAt) {
  return useSummedPages<Chunk, Embedded>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base, doc_id: id }, query: { ...(cursor !== undefined && { cursor }) } };
      try {
        const { chunks, next_cursor, ...about } = await ask(api.GET("/api/document-chunks/{partner}/{kb}/{doc_id}", { ...call, params }));
        return { entries: chunks, next: next_cursor ?? null, summary: about };
      } catch (error) {
        if (error instanceof Problem && error.status === 404) return { entries: [], next: null, summary: false };
        throw error;
      }
    },
    [partner, base, id],
    { partner, kinds: ["document"], base, id },
  );
}

/** A chunk. Its path and its text make the passage that is embedded. */
function Passage({ of: { index, path, text, tokens, start, end } }: { of: Chunk }) {
  return (
    <li>
      <header>
        <ol class="crumbs" aria-label="Path">
          {path.map((title, place) => (
            <li key={place}>
              <bdi>{title}</bdi>
            </li>
          ))}
        </ol>
        <span class="hint">
          Chunk {formatNumber(index + 1)}, {counted(tokens, "token")}, bytes {formatNumber(start)} to {formatNumber(end)}
        </span>
      </header>
      <Text>{text}</Text>
    </li>
  );
}

function Stale() {
  return (
    <p class="notice">
      <Icon name="triangle-alert" /> These chunks are not searched: the final content has changed since, or the search index refused them.
    </p>
  );
}

export function Chunks({ at, of }: { at: DocumentAt; of: Schemas["DocumentView"] }) {
  const chunks = useChunks(at);
  const about = chunks.summary.value;
  return (
    <Shown of={chunks}>
      {({ entries, next }) =>
        !about ? (
          <Empty icon="file-text" title="Not embedded yet">
            <p dir="auto">{notEmbeddedWords(of.status, of.processing_error)}</p>
          </Empty>
        ) : (
          <>
            {about.is_stale && <Stale />}
            <p class="hint">
              {counted(about.total, "chunk")}, embedded <Time at={about.embedded_at} />, profile <bdi>{about.profile}</bdi>
            </p>
            <ol class="chunks">
              {entries.map((chunk) => (
                <Passage key={chunk.index} of={chunk} />
              ))}
            </ol>
            <More next={next} isLoading={chunks.isLoading.value} more={chunks.more} />
          </>
        )
      }
    </Shown>
  );
}
