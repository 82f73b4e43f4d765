// One evaluation: its figures beside those before, and what differs.

import { useSignal } from "@preact/signals";

import { type Schemas, api } from "../api";
import { changesBetween } from "../knowledge/retrieval";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { query } from "../router";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { notify } from "../ui/toasts";
import { Compared, EvaluationStatus } from "./retrieval-figures";
import { QuestionResults } from "./retrieval-question-results";

type At = { partner: string; base: string; id: string };
type Comparison = Schemas["ComparedEvaluation"];

const FIGURES = { recall: "Recall", ndcg: "nDCG", mrr: "MRR" } as const;
const NAMES = ["recall", "ndcg", "mrr"] as const;

function useEvaluation({ partner, base, id }: At) {
  return useResource<Comparison>(
    (call) => {
      const params = { path: { partner, kb: base, evaluation_id: id } };
      return ask(api.GET("/api/rag-evaluations/{partner}/{kb}/{evaluation_id}", { ...call, params }));
    },
    [partner, base, id],
    { partner, kinds: ["evaluation"], base, id },
  );
}

/** Reasons for which the figures tell less. */
function Warnings({ of: { figures, content_changed: hasChanged } }: { of: Schemas["EvaluationView"] }) {
  const words = [
    hasChanged && "Documents of the knowledge base were embedded or removed while the questions were asked.",
    figures && figures.without_vectors > 0 && `${counted(figures.without_vectors, "question")} were asked without vectors.`,
    figures && figures.without_documents > 0 && `${counted(figures.without_documents, "question")} do not count: their documents were deleted.`,
  ].filter(Boolean);
  if (words.length === 0) return null;
  return (
    <p class="notice">
      <Icon name="triangle-alert" />
      <span>{words.join(" ")}</span>
    </p>
  );
}

function Figures({ of: { evaluation, previous, common } }: { of: Comparison }) {
  const { figures, k } = evaluation;
  if (!figures) return null;
  const changes = previous ? changesBetween(previous, evaluation) : [];
  return (
    <>
      <dl class="figures">
        {NAMES.map((name) => (
          <div key={name}>
            <dt>
              {FIGURES[name]} at {formatNumber(k)}
            </dt>
            <dd>
              <Compared now={figures[name]} before={undefined} />
            </dd>
          </div>
        ))}
        <div>
          <dt>Questions</dt>
          <dd>{formatNumber(figures.questions)}</dd>
        </div>
      </dl>
      {previous && (
        <p>
          Since the evaluation begun <Time at={previous.created_at} />:{" "}
          {common ? (
            <>
              {NAMES.map((name, place) => (
                <span key={name}>
                  {place > 0 && ", "}
                  {FIGURES[name]} <Compared now={common.now[name]} before={common.before[name]} />
                </span>
              ))}{" "}
              over the {counted(common.now.questions, "question")} that both asked alike.
            </>
          ) : (
            "no question was asked alike."
          )}
        </p>
      )}
      {previous && <p class="hint">What differs: {changes.length > 0 ? changes.join(", ") : "nothing but the questions"}.</p>}
    </>
  );
}

type DeleteProps = { at: At; onDeleted: () => void; onClose: () => void };

function DeleteEvaluation({ at: { partner, base, id }, onDeleted, onClose }: DeleteProps) {
  const remove = async () => {
    const params = { path: { partner, kb: base, evaluation_id: id } };
    await ask(api.DELETE("/api/rag-evaluations/{partner}/{kb}/{evaluation_id}", { params }));
    onClose();
    notify("The evaluation is deleted");
    if (query.peek().get("evaluation") === id) onDeleted();
  };
  return (
    <Dialog title="Delete the evaluation?" onClose={onClose}>
      <p>If it is in progress, it stops. This cannot be undone.</p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}

export function EvaluationPage({ onLeave, ...at }: At & { onLeave: () => void }) {
  const evaluation = useEvaluation(at);
  const isDeleting = useSignal(false);
  return (
    <>
      <div class="toolbar">
        <button type="button" onClick={onLeave}>
          <Icon name="arrow-left" /> All evaluations
        </button>
        <button type="button" onClick={() => (isDeleting.value = true)}>
          <Icon name="trash-2" /> Delete…
        </button>
      </div>
      <Shown of={evaluation}>
        {(compared) => (
          <>
            <p class="facts">
              <EvaluationStatus of={compared.evaluation} />
              <span>
                begun <Time at={compared.evaluation.created_at} />
              </span>
              {compared.evaluation.content && (
                <span>
                  {counted(compared.evaluation.content.documents, "document")}, {counted(compared.evaluation.content.chunks, "chunk")}, profile{" "}
                  <bdi>{compared.evaluation.config.embedding_profile_name ?? "none"}</bdi>
                </span>
              )}
            </p>
            <Warnings of={compared.evaluation} />
            <Figures of={compared} />
            <h2>Questions, worst first</h2>
            <QuestionResults at={at} k={compared.evaluation.k} />
          </>
        )}
      </Shown>
      {isDeleting.value && <DeleteEvaluation at={at} onDeleted={onLeave} onClose={() => (isDeleting.value = false)} />}
    </>
  );
}
