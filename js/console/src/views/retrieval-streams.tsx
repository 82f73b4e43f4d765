// The rankings of the streams, side by side.

import type { Schemas } from "../api";
import { STREAMS, STREAM_NAMES, STREAM_TEXTS, STREAM_WORDS, type Stream } from "../knowledge/retrieval";
import { formatMs, formatNumber, formatScore } from "../ui/format";
import { Passage, PassageLink } from "./retrieval-passage";

type At = { partner: string; base: string };
type View = Schemas["SearchView"];
type Ranking = Schemas["StreamView"];
type Hit = Schemas["HitView"];

/** Passages that have more UTF-16 units are folded: three columns have little room. */
const MAX_LENGTH = 120;

/** Ranks in the fused ranking, by document and chunk. */
type Fused = ReadonlyMap<string, number>;

const placeOf = ({ document_id, chunk_index }: { document_id: string; chunk_index: number }) => `${document_id} ${chunk_index}`;

function fusedRanks({ combined_results: results }: View): Fused {
  const places = results.flatMap((result) => [result, ...result.duplicates].map((place) => [placeOf(place), result.rank] as const));
  return new Map(places);
}

function HitItem({ partner, base, of, fused }: At & { of: Hit; fused: number | undefined }) {
  return (
    <li>
      <header>
        <strong class="rank">{formatNumber(of.rank)}</strong>
        <PassageLink partner={partner} base={base} of={of} />
      </header>
      <p class="hint">
        Score {formatScore(of.score)}, {fused === undefined ? "not among the results" : `result ${formatNumber(fused)}`}
      </p>
      {typeof of.text === "string" && <Passage most={MAX_LENGTH}>{of.text}</Passage>}
    </li>
  );
}

function RankingList({ partner, base, of, fused }: At & { of: Ranking; fused: Fused }) {
  const { query, results, time_ms: time } = of;
  return (
    <>
      <h4>
        {query === "replaced" ? "With the name" : "As asked"} <span class="hint">{formatMs(time)}</span>
      </h4>
      {results.length === 0 ? (
        <p class="none">Nothing found</p>
      ) : (
        <ol class="hits">
          {results.slice(0, STREAM_TEXTS).map((hit) => (
            <HitItem key={hit.rank} partner={partner} base={base} of={hit} fused={fused.get(placeOf(hit))} />
          ))}
        </ol>
      )}
      {results.length > STREAM_TEXTS && <p class="hint">{formatNumber(results.length - STREAM_TEXTS)} more</p>}
    </>
  );
}

/** Why a stream has no ranking. */
function absence(stream: Stream, { config, without_vectors: why }: View): string {
  if (stream === "dense" && (why || config.embedding_profile_name === "words")) return why ? `No vectors: ${why}.` : "The knowledge base has no vectors.";
  return config[`rrf_weight_${stream}`] === 0 ? "Its weight is 0." : "Nothing found";
}

export function Streams({ partner, base, of }: At & { of: View }) {
  const fused = fusedRanks(of);
  return (
    <div class="streams">
      {STREAMS.map((stream) => {
        const all = of.streams.filter(({ retriever }) => retriever === stream);
        // Without vectors, the API has rankings of this stream that are empty.
        const rankings = stream === "dense" && all.every(({ results }) => results.length === 0) ? [] : all;
        return (
          <section key={stream} class={`panel ${stream}`} aria-labelledby={`stream-${stream}`}>
            <h3 id={`stream-${stream}`}>{STREAM_NAMES[stream]}</h3>
            <p class="hint">{STREAM_WORDS[stream]}</p>
            {rankings.length === 0 && <p class="none">{absence(stream, of)}</p>}
            {rankings.map((ranking) => (
              <RankingList key={ranking.query} partner={partner} base={base} of={ranking} fused={fused} />
            ))}
          </section>
        );
      })}
    </div>
  );
}
