// Details of a reply of the playground: the passages that were looked up, the time of each stage, tokens and price.

import type { Done, Prepared, Turn } from "../characters/conversation";
import { counted } from "../knowledge/words";
import { Explained } from "../ui/explained";
import { formatFraction, formatMs, formatNumber, formatUsd } from "../ui/format";

function Passages({ of }: { of: NonNullable<Prepared["retrieval"]> }) {
  return (
    <>
      <p class="part">Looked up</p>
      {of.results.length === 0 && <p class="none">Nothing was found.</p>}
      <ol class="passages">
        {of.results.map((result, place) => (
          <li key={place}>
            <strong>
              <bdi>{result.filename}</bdi>
            </strong>{" "}
            <span class="hint">
              {typeof result.score === "number" && `score ${formatFraction(result.score, 3)}`}
              {typeof result.attributes["retrievers"] === "string" && result.attributes["retrievers"] !== "" && `, by ${result.attributes["retrievers"].replaceAll(",", ", ")}`}
            </span>
            <p class="text" dir="auto">
              {result.text}
            </p>
          </li>
        ))}
      </ol>
    </>
  );
}

function Stages({ of: { times } }: { of: Done }) {
  return (
    <>
      <p class="part">Time</p>
      <dl class="stages">
        <dt>Templates</dt>
        <dd>{formatMs(times.render_ms)}</dd>
        {typeof times.retrieval_ms === "number" && (
          <>
            <dt>Looking up</dt>
            <dd>{formatMs(times.retrieval_ms)}</dd>
          </>
        )}
        {typeof times.first_text_ms === "number" && (
          <>
            <dt>Model, first text</dt>
            <dd>{formatMs(times.first_text_ms)}</dd>
          </>
        )}
        <dt>Model, all</dt>
        <dd>{formatMs(times.model_ms)}</dd>
        <dt>Total</dt>
        <dd>{formatMs(times.total_ms)}</dd>
      </dl>
    </>
  );
}

function Usage({ of: { model, usage, cost_usd: cost } }: { of: Done }) {
  const about = usage.is_estimated ? "about " : "";
  return (
    <>
      <p class="part">Tokens and price</p>
      <dl class="stages">
        <dt>Model</dt>
        <dd>
          <code>{model}</code>
        </dd>
        <dt>Input</dt>
        <dd>
          {about}
          {counted(usage.input_tokens, "token")}
          {usage.cached_input_tokens > 0 && `, ${formatNumber(usage.cached_input_tokens)} of them cached`}
        </dd>
        <dt>Output</dt>
        <dd>
          {about}
          {counted(usage.output_tokens, "token")}
          {usage.reasoning_tokens > 0 && `, ${formatNumber(usage.reasoning_tokens)} of them reasoning`}
        </dd>
        <dt>Price</dt>
        <dd>{typeof cost === "string" ? formatUsd(cost) : <Explained as="The settings of the server have no price for this model">n/a</Explained>}</dd>
      </dl>
    </>
  );
}

/** The sum of a reply in one line, and the details below it. */
export function TurnDetails({ of }: { of: Extract<Turn, { role: "assistant" }> }) {
  const { prepared, done } = of;
  if (!prepared) return null;
  const { retrieval, unknown_base: unknown } = prepared;
  const words = [
    retrieval && counted(retrieval.results.length, "passage"),
    done && formatMs(done.times.total_ms),
    done && counted(done.usage.input_tokens + done.usage.output_tokens, "token"),
    done && typeof done.cost_usd === "string" && formatUsd(done.cost_usd),
  ].filter(Boolean);
  return (
    <>
      {unknown && (
        <p class="field-errors">
          There is no knowledge base <bdi>{unknown}</bdi>: the reply does without it.
        </p>
      )}
      {words.length > 0 && (
        <details class="turn-details">
          <summary>{words.join(" · ")}</summary>
          {retrieval && <Passages of={retrieval} />}
          {done && <Stages of={done} />}
          {done && <Usage of={done} />}
        </details>
      )}
    </>
  );
}
