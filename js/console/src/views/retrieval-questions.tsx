// The saved questions of a knowledge base.

import { useSignal } from "@preact/signals";

import { RETRIEVAL, address } from "../addresses";
import { type Schemas, api } from "../api";
import { questionEdits } from "../knowledge/question-edits";
import { questionAt } from "../knowledge/questions";
import { useSummedPages } from "../knowledge/summed";
import { counted } from "../knowledge/words";
import { ask, toProblem } from "../problem";
import { Link, query, setQuery } from "../router";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { RowAction } from "../ui/row-action";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { notify } from "../ui/toasts";

type Question = Schemas["QuestionView"];
type Props = { partner: string; base: string };

function useQuestions(partner: string, base: string) {
  return useSummedPages<Question, number>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base }, query: { ...(cursor !== undefined && { cursor }) } };
      const { questions, next_cursor, total } = await ask(api.GET("/api/rag-questions/{partner}/{kb}", { ...call, params }));
      return { entries: questions, next: next_cursor ?? null, summary: total ?? null };
    },
    [partner, base],
    { partner, kinds: ["question", "document"], base },
  );
}

function DeleteQuestion({ partner, base, of, onDeleted, onClose }: Props & { of: Question; onDeleted: () => void; onClose: () => void }) {
  const remove = async () => {
    const params = { path: { partner, kb: base, question_id: of.id } };
    await ask(api.DELETE("/api/rag-questions/{partner}/{kb}/{question_id}", { params })).catch((error: unknown) => {
      // Somebody else was faster.
      if (toProblem(error).status !== 404) throw error;
    });
    questionEdits.end(questionAt(partner, base, of.id, null));
    onClose();
    onDeleted();
    if (query.peek().get("question") === of.id) setQuery({ question: null });
    notify("The question is deleted");
  };
  return (
    <Dialog title="Delete the question?" onClose={onClose}>
      <p class="text" dir="auto">
        {of.user_message}
      </p>
      <p>Its results in all evaluations are deleted with it. This cannot be undone.</p>
      <Form action="Delete" busy="Deleting…" isDanger onSend={remove} onCancel={onClose} />
    </Dialog>
  );
}

/** The documents that a question expects. */
function Documents({ of }: { of: Question["expected_documents"] }) {
  if (of.length === 0) return <span class="state down">all of them were deleted</span>;
  return (
    <ul class="names">
      {of.map(({ document_id: id, document_name: name }) => (
        <li key={id}>
          <bdi>{name}</bdi>
        </li>
      ))}
    </ul>
  );
}

function Row({ partner, base, of, onDelete }: Props & { of: Question; onDelete: () => void }) {
  const { id, user_message: message, robot_message: before, character_replacement_name: name } = of;
  return (
    <tr>
      <th scope="row" class="name">
        <Link to={address(RETRIEVAL, { partner, name: base }, { question: id })} class="clamped">
          <bdi>{message}</bdi>
        </Link>
        {before && (
          <span class="hint clamped">
            after “<bdi>{before}</bdi>”
          </span>
        )}
        {name && (
          <span class="hint">
            you: <bdi>{name}</bdi>
          </span>
        )}
      </th>
      <td>
        <Documents of={of.expected_documents} />
      </td>
      <td>
        <Time at={of.updated_at} />
      </td>
      <td>
        <RowAction icon="trash-2" label={`Delete ${message.slice(0, 80)}`} onClick={onDelete} />
      </td>
    </tr>
  );
}

export function SavedQuestions({ partner, base }: Props) {
  const questions = useQuestions(partner, base);
  const deleted = useSignal<Question | null>(null);
  return (
    <>
      <Shown of={questions}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Empty icon="search" title="No saved questions yet">
              <p>Try a question, tick the documents that answer it, and save it.</p>
              <Link to={address(RETRIEVAL, { partner, name: base })}>Try a question</Link>
            </Empty>
          ) : (
            <>
              <p class="hint">{counted(questions.summary.value ?? entries.length, "question")}; a knowledge base has 500 at most.</p>
              <Table label="Saved questions">
                <thead>
                  <tr>
                    <th scope="col">Question</th>
                    <th scope="col">Expected documents</th>
                    <th scope="col">Changed</th>
                    <th scope="col">
                      <span class="hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((question) => (
                    <Row key={question.id} partner={partner} base={base} of={question} onDelete={() => (deleted.value = question)} />
                  ))}
                </tbody>
              </Table>
              <More next={next} isLoading={questions.isLoading.value} more={questions.more} />
            </>
          )
        }
      </Shown>
      {deleted.value && <DeleteQuestion partner={partner} base={base} of={deleted.value} onDeleted={() => void questions.reload()} onClose={() => (deleted.value = null)} />}
    </>
  );
}
