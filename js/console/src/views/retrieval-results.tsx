// Results of a search: the fused ranking with the share of each stream, the prompt, and the rankings of the streams.

import type { ComponentChildren } from "preact";

import type { Schemas } from "../api";
import { type Part, STREAMS, STREAM_NAMES, partsOf, streamName } from "../knowledge/retrieval";
import { counted } from "../knowledge/words";
import { formatMs, formatNumber, formatScore, formatShare } from "../ui/format";
import { Icon } from "../ui/icon";
import { Empty } from "../ui/states";
import { Text } from "../ui/value";
import { ExpectedCheck, type Expecting } from "./retrieval-expected";
import { Passage, PassageLink } from "./retrieval-passage";
import { Streams } from "./retrieval-streams";

type At = { partner: string; base: string };
type View = Schemas["SearchView"];
type Result = Schemas["ResultView"];

/** Returns a fraction as a length of SVG. */
const svgLength = (fraction: number) => `${(100 * fraction).toFixed(2)}%`;
const withName = (query: string) => (query === "replaced" ? " with the name" : "");

/** The parts of a fused score. The list below the bar has their numbers. */
function Shares({ parts }: { parts: Part[] }) {
  return (
    <>
      <svg class="share-bar" aria-hidden="true" focusable="false">
        {parts.map(({ retriever, query, begin, width }) => (
          <rect key={retriever + query} class={`${retriever} ${query}`} x={svgLength(begin)} width={svgLength(width)} height="100%" />
        ))}
      </svg>
      <ul class="shares">
        {parts.map(({ retriever, query, rank, share, ofScore }) => (
          <li key={retriever + query} class={retriever}>
            {streamName(retriever)}
            {withName(query)}: {formatShare(ofScore)} ({formatScore(share)}), rank {formatNumber(rank)}
          </li>
        ))}
      </ul>
    </>
  );
}

type ResultProps = At & Expecting & { of: Result; best: number; isInPrompt: boolean };

function ResultItem({ partner, base, of, best, isInPrompt, expected, onExpect }: ResultProps) {
  const { rank, fusion_score: score, document_id: id, document_name: name, duplicates, text } = of;
  return (
    <li>
      <header>
        <strong class="rank">{formatNumber(rank)}</strong>
        <PassageLink partner={partner} base={base} of={of} />
        {isInPrompt && <span class="state ok">in the prompt</span>}
        {name && <ExpectedCheck id={id} name={name} expected={expected} onExpect={onExpect} label={`Expected: ${name}, result ${rank}`} />}
      </header>
      <Passage>{text}</Passage>
      {duplicates.length > 0 && <p class="hint">The same text stands in {counted(duplicates.length, "other place")}.</p>}
      <p class="hint">Fused score {formatScore(score)}</p>
      <Shares parts={partsOf(of, best)} />
    </li>
  );
}

function Fused({ partner, base, of, expected, onExpect }: At & Expecting & { of: View }) {
  const best = Math.max(0, ...of.combined_results.map((result) => result.fusion_score));
  return (
    <ol class="results">
      {of.combined_results.map((result) => (
        <ResultItem
          key={`${result.document_id} ${result.chunk_index}`}
          partner={partner}
          base={base}
          of={result}
          best={best}
          isInPrompt={of.prompt.ranks.includes(result.rank)}
          expected={expected}
          onExpect={onExpect}
        />
      ))}
    </ol>
  );
}

/** Why there are no vectors, if there are none. */
function Vectors({ of: { config, without_vectors: why } }: { of: View }) {
  if (why) {
    return (
      <p class="notice">
        <Icon name="triangle-alert" /> Searched by words alone: {why}.
      </p>
    );
  }
  if (config.embedding_profile_name !== "words") return null;
  return <p class="hint">This knowledge base has no vectors, since the server had no embedder. Passages are found by their words.</p>;
}

function Queries({ of: { original, replaced } }: { of: Schemas["QueriesView"] }) {
  return (
    <dl class="queries">
      <dt>Question as asked</dt>
      <dd class="text" dir="auto">
        {original}
      </dd>
      <dt>With the name</dt>
      <dd class="text" dir="auto">
        {replaced ?? <span class="none">no difference</span>}
      </dd>
    </dl>
  );
}

function Facts({ of: { timings, query_languages: languages, config } }: { of: View }) {
  return (
    <p class="facts">
      {typeof timings.embedding_ms === "number" && <span>embedding {formatMs(timings.embedding_ms)}</span>}
      <span>search {formatMs(timings.search_ms)}</span>
      <span>in all {formatMs(timings.total_ms)}</span>
      <span>languages {languages.length > 0 ? languages.join(", ") : "none"}</span>
      <span>
        profile <bdi>{config.embedding_profile_name ?? "none"}</bdi>
      </span>
    </p>
  );
}

function Prompt({ of: { ranks, text } }: { of: Schemas["PromptView"] }) {
  if (text === "") return <p class="none">Nothing: no result has to do with the question.</p>;
  return (
    <details>
      <summary>{counted(ranks.length, "passage")}, as they stand in the system prompt</summary>
      <p class="hint">
        A character searches with the default weights, and uses what was said before only if the question names little. Passages of documents that the
        character carries itself come in turn with these.
      </p>
      <Text>{text}</Text>
    </details>
  );
}

type ResultsProps = At & Expecting & { of: View; children: ComponentChildren };

/** The results of a search. The children follow the fused ranking. */
export function Results({ partner, base, of, expected, onExpect, children }: ResultsProps) {
  return (
    <>
      <Vectors of={of} />
      <Queries of={of.queries} />
      <Facts of={of} />
      {of.combined_results.length === 0 ? (
        <>
          <Empty icon="search" title="Nothing was found">
            <p>{of.config.embedding_profile_name ? "No passage of this knowledge base has these words." : "Nothing of this knowledge base is embedded yet."}</p>
          </Empty>
          {children}
        </>
      ) : (
        <>
          <h2>
            Results <span class="hint">{formatNumber(of.total_results)}</span>
          </h2>
          <p class="legend">
            {STREAMS.map((stream) => (
              <span key={stream} class={stream}>
                {STREAM_NAMES[stream]}
              </span>
            ))}
          </p>
          <Fused partner={partner} base={base} of={of} expected={expected} onExpect={onExpect} />
          {children}
          <h2>What a character would be told</h2>
          <Prompt of={of.prompt} />
          <h2>Streams</h2>
          <Streams partner={partner} base={base} of={of} />
        </>
      )}
    </>
  );
}
