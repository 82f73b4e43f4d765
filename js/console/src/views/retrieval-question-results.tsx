// The result of each question of an evaluation.

import { RETRIEVAL, address } from "../addresses";
import { type Schemas, api } from "../api";
import { ask } from "../problem";
import { Link } from "../router";
import { formatNumber } from "../ui/format";
import { usePages } from "../ui/resource";
import { Empty, More, Shown, Table } from "../ui/states";
import { Compared } from "./retrieval-figures";

type At = { partner: string; base: string; id: string };
type Result = Schemas["QuestionResultView"];
type Found = Schemas["FoundDocumentView"];

const SCORES = { recall: "Recall", ndcg: "nDCG", reciprocal_rank: "1 / rank" } as const;
const NAMES = ["recall", "ndcg", "reciprocal_rank"] as const;

function useResults({ partner, base, id }: At) {
  return usePages<Result>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base, evaluation_id: id }, query: { ...(cursor !== undefined && { cursor }) } };
      const { results, next_cursor } = await ask(api.GET("/api/rag-evaluations/{partner}/{kb}/{evaluation_id}/results", { ...call, params }));
      return { entries: results, next: next_cursor ?? null };
    },
    [partner, base, id],
    { partner, kinds: ["evaluation"], base, id },
  );
}

/** The rank of an expected document. */
function Place({ of: { document_name: name, rank, previous_rank: before }, k, isCompared }: { of: Found; k: number; isCompared: boolean }) {
  const isMissed = typeof rank !== "number" || rank > k;
  const words = typeof rank === "number" ? `rank ${formatNumber(rank)}` : "not found";
  const earlier = typeof before === "number" ? `rank ${formatNumber(before)}` : "not found";
  return (
    <li>
      <bdi>{name ?? "a document that was deleted"}</bdi> <span class={`state ${isMissed ? "down" : "ok"}`}>{words}</span>
      {isCompared && before !== rank && <span class="hint"> before: {earlier}</span>}
    </li>
  );
}

function Row({ partner, base, k, of }: { partner: string; base: string; k: number; of: Result }) {
  const { question_id: id, user_message: message, scores, previous, expected, is_changed: isChanged, without_vectors: why } = of;
  return (
    <tr>
      <th scope="row" class="name">
        <Link to={address(RETRIEVAL, { partner, name: base }, { question: id })} class="clamped">
          <bdi>{message}</bdi>
        </Link>
        {isChanged && <span class="hint">changed since</span>}
        {why && <span class="hint">without vectors: {why}</span>}
      </th>
      <td>
        <ul class="names">
          {expected.map((found) => (
            <Place key={found.document_id} of={found} k={k} isCompared={Boolean(previous)} />
          ))}
        </ul>
      </td>
      {NAMES.map((name) => (
        <td key={name} class="number">
          {scores ? <Compared now={scores[name]} before={previous?.[name]} /> : <span class="none">—</span>}
        </td>
      ))}
    </tr>
  );
}

export function QuestionResults({ at, k }: { at: At; k: number }) {
  const results = useResults(at);
  return (
    <Shown of={results}>
      {({ entries, next }) =>
        entries.length === 0 ? (
          <Empty icon="chart-column" title="No results yet" />
        ) : (
          <>
            <Table label="Results of the questions, worst first">
              <thead>
                <tr>
                  <th scope="col">Question</th>
                  <th scope="col">Expected documents</th>
                  {NAMES.map((name) => (
                    <th key={name} scope="col" class="number">
                      {SCORES[name]}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {entries.map((result) => (
                  <Row key={result.question_id} partner={at.partner} base={at.base} k={k} of={result} />
                ))}
              </tbody>
            </Table>
            <More next={next} isLoading={results.isLoading.value} more={results.more} />
          </>
        )
      }
    </Shown>
  );
}
