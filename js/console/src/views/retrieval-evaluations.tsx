// Evaluations of the saved questions of a knowledge base: beginning one, and those that are kept.

import { useSignal } from "@preact/signals";

import { RETRIEVAL, address } from "../addresses";
import { type Schemas, api } from "../api";
import { formatFigure } from "../knowledge/retrieval";
import { ask } from "../problem";
import { Link, query, setQuery } from "../router";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { ABSENT, type Column, List } from "../ui/list";
import { usePages } from "../ui/resource";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";
import { EvaluationPage } from "./retrieval-evaluation";
import { EvaluationStatus } from "./retrieval-figures";
import { WeightFields, readWeights } from "./retrieval-form";

type Evaluation = Schemas["EvaluationView"];
type Props = { partner: string; base: string };

function useEvaluations(partner: string, base: string) {
  return usePages<Evaluation>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base }, query: { ...(cursor !== undefined && { cursor }) } };
      const { evaluations, next_cursor } = await ask(api.GET("/api/rag-evaluations/{partner}/{kb}", { ...call, params }));
      return { entries: evaluations, next: next_cursor ?? null };
    },
    [partner, base],
    { partner, kinds: ["evaluation"], base },
  );
}

function Begin({ partner, base, last, onBegun, onClose }: Props & { last: Evaluation | undefined; onBegun: () => void; onClose: () => void }) {
  const begin = async (fields: FormData) => {
    // The generated type demands fields that have defaults.
    const body = { k: Number(fields.get("k")), ...readWeights(fields) } as Schemas["EvaluationBody"];
    await ask(api.POST("/api/rag-evaluations/{partner}/{kb}", { params: { path: { partner, kb: base } }, body }));
    onClose();
    onBegun();
  };
  return (
    <Dialog title="Run an evaluation" onClose={onClose}>
      <Form action="Run" busy="Starting…" onSend={begin} onCancel={onClose}>
        <p class="hint">
          All saved questions are asked in the background. The page of an evaluation compares it with the newest one before that has the same k.
        </p>
        <label>
          Documents of each ranking that count (k)
          <input name="k" type="number" min={1} max={50} required defaultValue={last?.k ?? 10} />
        </label>
        <details>
          <summary>Weights</summary>
          <WeightFields of={{}} />
        </details>
      </Form>
    </Dialog>
  );
}

const FIGURES = [
  ["Recall", "recall"],
  ["nDCG", "ndcg"],
  ["MRR", "mrr"],
] as const;

/** Figures of the list are not compared: each is a mean over the questions that were saved then. */
function columnsOf(partner: string, base: string): Column<Evaluation>[] {
  return [
    {
      title: "Begun",
      cell: ({ id, created_at: at }) => (
        <Link to={address(RETRIEVAL, { partner, name: base }, { view: "evaluations", evaluation: id })}>
          <Time at={at} />
        </Link>
      ),
    },
    ...FIGURES.map(([title, name]) => ({ title, isNumber: true, cell: ({ figures }: Evaluation) => (figures ? formatFigure(figures[name]) : ABSENT) })),
    { title: "Questions", isNumber: true, cell: ({ questions }) => formatNumber(questions) },
    { title: "k", isNumber: true, cell: ({ k }) => formatNumber(k) },
    { title: "State", cell: (evaluation) => <EvaluationStatus of={evaluation} /> },
  ];
}

function All({ partner, base }: Props) {
  const evaluations = useEvaluations(partner, base);
  const isBeginning = useSignal(false);
  const entries = evaluations.data.value?.entries ?? [];
  const isRunning = entries.some(({ status }) => status === "queued" || status === "running");
  return (
    <>
      <div class="toolbar">
        <p class="hint">How well the saved questions find the documents that they expect. Open an evaluation to compare it with the one before. The newest 20 are kept.</p>
        <button type="button" class="primary" aria-disabled={isRunning} onClick={() => !isRunning && (isBeginning.value = true)}>
          <Icon name="play" /> Run an evaluation
        </button>
      </div>
      <List of={evaluations} label="Evaluations" columns={columnsOf(partner, base)} keyOf={({ id }) => id}>
        <Empty icon="chart-column" title="No evaluations yet">
          <p>Save some questions with the documents that answer them. Then run an evaluation before and after each change.</p>
        </Empty>
      </List>
      {isBeginning.value && (
        <Begin
          partner={partner}
          base={base}
          last={entries[0]}
          onBegun={() => void evaluations.reload()}
          onClose={() => (isBeginning.value = false)}
        />
      )}
    </>
  );
}

export function Evaluations({ partner, base }: Props) {
  const id = query.value.get("evaluation");
  if (id === null) return <All partner={partner} base={base} />;
  return <EvaluationPage key={id} partner={partner} base={base} id={id} onLeave={() => setQuery({ evaluation: null })} />;
}
