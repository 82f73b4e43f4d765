// The chunks of a document: the parts of its final content that are embedded and found.

import { type Schemas, api } from "../api";
import type { DocumentAt } from "../documents/contents";
import { notEmbeddedWords } from "../documents/words";
import { useSummedPages } from "../knowledge/summed";
import { counted } from "../knowledge/words";
import { Problem, ask } from "../problem";
import { query, setQuery } from "../router";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { Empty, More, Shown } from "../ui/states";
import { Time } from "../ui/time";
import { Text } from "../ui/value";

/** A chunk without its id, which chunks with equal passages share: entries of a list with equal ids are one. */
type Chunk = Omit<Schemas["ChunkView"], "id">;
type About = Pick<Schemas["ChunkPage"], "profile" | "embedded_at" | "is_stale" | "total">;
/** The embedding of the document; `false` if it has none. */
type Embedded = About | false;

/** Reads the chunks from the one of an index on. The cursor of the API is the index of the chunk before. */
function useChunks({ partner, base, id }: DocumentAt, first: number) {
  return useSummedPages<Chunk, Embedded>(
    async (call, cursor) => {
      const after = cursor ?? (first > 0 ? String(first - 1) : undefined);
      const params = { path: { partner, kb: base, doc_id: id }, query: { ...(after !== undefined && { cursor: after }) } };
      try {
        const { chunks, next_cursor, ...about } = await ask(api.GET("/api/document-chunks/{partner}/{kb}/{doc_id}", { ...call, params }));
        return { entries: chunks.map(({ id: _, ...chunk }) => chunk), next: next_cursor ?? null, summary: about };
      } catch (error) {
        if (error instanceof Problem && error.status === 404) return { entries: [], next: null, summary: false };
        throw error;
      }
    },
    [partner, base, id, first],
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

/** The chunk that the address names, from 0. */
function firstOf(query: URLSearchParams): number {
  const first = Number(query.get("chunk") ?? 0);
  return Number.isSafeInteger(first) && first > 0 ? first : 0;
}

function AllChunks({ first }: { first: number }) {
  return (
    <p class="notice plain">
      <span>From chunk {formatNumber(first + 1)} on</span>
      <button type="button" onClick={() => setQuery({ chunk: null })}>
        All chunks
      </button>
    </p>
  );
}

export function Chunks({ at, of }: { at: DocumentAt; of: Schemas["DocumentView"] }) {
  const first = firstOf(query.value);
  const chunks = useChunks(at, first);
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
            {first > 0 && <AllChunks first={first} />}
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
