// The form of a question to a knowledge base.

import { type Asked, DEFAULT_WEIGHTS, WEIGHTS, WEIGHT_LABELS, type Weights, weightsOf } from "../knowledge/retrieval";
import { type Fields, fieldsOf } from "../knowledge/question-drafts";
import { Problem } from "../problem";
import { Form } from "../ui/form";

/** The longest texts that the API takes, in characters. */
const MAX_TEXT = 20_000;
const MAX_NAME = 200;

/** Fields of the weights. An empty field is the default. */
export function WeightFields({ of, draft }: { of: Weights; draft?: Fields | null }) {
  return (
    <fieldset>
      <legend>Weights</legend>
      <p class="hint">An empty field is the default. Characters search with the defaults.</p>
      <div class="limit-fields">
        {WEIGHTS.map((name) => (
          <label key={name}>
            {WEIGHT_LABELS[name]}
            <input name={name} type="number" min={0} max={1_000} step="any" defaultValue={draft?.[name] ?? of[name] ?? ""} placeholder={String(DEFAULT_WEIGHTS[name])} />
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Reads the fields of the weights. */
export function readWeights(fields: FormData): Weights {
  const weights = weightsOf((name) => String(fields.get(name) ?? ""));
  if (!weights) throw new Problem(400, "invalid", "Weights are numbers from 0 to 1,000.");
  return weights;
}

const isSentBy = ({ key, shiftKey, isComposing }: KeyboardEvent) => key === "Enter" && !shiftKey && !isComposing;

type QuestionProps = {
  of: Asked | null;
  /** Texts that were typed before the form was left; they take the place of those of `of`. */
  draft: Fields | null;
  onType: (fields: Fields) => void;
  onAsk: (asked: Asked) => Promise<void>;
};

/** A question, with what was said before it and the weights of the search behind a disclosure. */
export function QuestionForm({ of, draft, onType, onAsk }: QuestionProps) {
  const text = (fields: FormData, name: string) => String(fields.get(name) ?? "").trim();
  const send = async (fields: FormData) => {
    const message = text(fields, "user_message");
    if (message === "") throw new Problem(400, "invalid", "Enter a question.", "user_message");
    const [before, name] = [text(fields, "robot_message"), text(fields, "character_replacement_name")];
    await onAsk({ message, before, name, weights: readWeights(fields) });
  };
  const press = (event: KeyboardEvent) => {
    if (!isSentBy(event)) return;
    event.preventDefault();
    (event.currentTarget as HTMLTextAreaElement).form?.requestSubmit();
  };
  const hasTyped = Object.entries(draft ?? {}).some(([name, text]) => name !== "user_message" && text !== "");
  const hasMore = hasTyped || (of !== null && (of.before !== "" || of.name !== "" || Object.keys(of.weights).length > 0));
  return (
    <Form action="Search" busy="Searching…" onType={(fields) => onType(fieldsOf(fields))} onSend={send}>
      <label>
        Question
        <textarea name="user_message" rows={2} maxLength={MAX_TEXT} required defaultValue={draft?.user_message ?? of?.message ?? ""} dir="auto" onKeyDown={press} />
      </label>
      <details open={hasMore}>
        <summary>What was said before, a name for “you”, and weights</summary>
        <label>
          What the character said before
          <textarea name="robot_message" rows={2} maxLength={MAX_TEXT} defaultValue={draft?.robot_message ?? of?.before ?? ""} dir="auto" />
        </label>
        <label>
          Name that stands for “you” in a second form of the question
          <input name="character_replacement_name" maxLength={MAX_NAME} autocomplete="off" defaultValue={draft?.character_replacement_name ?? of?.name ?? ""} dir="auto" />
        </label>
        <WeightFields of={of?.weights ?? {}} draft={draft} />
      </details>
    </Form>
  );
}
