// The preview of a draft: the problems that saving would name, or the texts with their placeholders filled in.

import type { Checking } from "../characters/check";
import { type FieldProblem, controlsOf, offsetOf, problemWords } from "../characters/problems";
import { counted } from "../knowledge/words";
import { Field } from "../ui/field";
import { Icon } from "../ui/icon";
import { reveal } from "../ui/reveal";
import { Text } from "../ui/value";

const PLACEHOLDER = "character_params.";

/** The name of a placeholder that has no value; null for another problem. */
const placeholderOf = (problem: FieldProblem | null | undefined) => (problem?.field.startsWith(PLACEHOLDER) ? problem.field.slice(PLACEHOLDER.length) : null);

type ValuesProps = { missing: string | null; values: Record<string, string>; onSet: (values: Record<string, string>) => void };

/** Values of placeholders that only requests give. */
function Values({ missing, values, onSet }: ValuesProps) {
  const names = [...new Set([...Object.keys(values), ...(missing === null ? [] : [missing])])];
  if (names.length === 0) return null;
  return (
    <fieldset>
      <legend>Values from requests</legend>
      <p class="hint">Calls and requests give these (character_params). What you type here is for this preview and the playground, and is not saved.</p>
      <div class="field-grid">
        {names.map((name) => (
          <Field key={name} label={name} errors={[]}>
            {(control) => (
              <input {...control} name={`value-${name}`} dir="auto" autocomplete="off" value={values[name] ?? ""} onInput={(event) => onSet({ ...values, [name]: event.currentTarget.value })} />
            )}
          </Field>
        ))}
      </div>
    </fieldset>
  );
}

function Rendered({ title, text }: { title: string; text: string | null | undefined }) {
  if (!text) return null;
  return (
    <>
      <h2>{title}</h2>
      <Text>{text}</Text>
    </>
  );
}

/** Goes to the field of a problem, in a template to its place. */
async function goTo({ field, line, column }: FieldProblem): Promise<void> {
  const form = document.querySelector<HTMLElement>(".character-fields");
  const control = form && (await reveal(form, controlsOf(field)));
  if (!control) return;
  control.focus();
  control.scrollIntoView({ block: "center" });
  if (control instanceof HTMLTextAreaElement && line) {
    const offset = offsetOf(control.value, line, column ?? 1);
    control.setSelectionRange(offset, offset);
  }
}

function Problem({ of, isEdited }: { of: FieldProblem; isEdited: boolean }) {
  return (
    <li>
      {isEdited && controlsOf(of.field).length > 0 ? (
        <button type="button" class="link" onClick={() => void goTo(of)}>
          {of.field}
        </button>
      ) : (
        <code>{of.field}</code>
      )}{" "}
      {problemWords(of)}
    </li>
  );
}

type PreviewProps = {
  checking: Checking;
  /** False for a version that is saved: its problems lead to no field. */
  isEdited?: boolean;
  /** Problems that the console sees by itself. */
  extra: readonly string[];
  values: Record<string, string>;
  onValues: (values: Record<string, string>) => void;
};

export function Preview({ checking, isEdited = true, extra, values, onValues }: PreviewProps) {
  const { result, failure, isCurrent, again } = checking;
  const problems = result.value?.problems ?? [];
  const count = problems.length + extra.length;
  const unfilled = result.value?.unfilled;
  const missing = placeholderOf(unfilled);
  const rendered = result.value?.rendered;
  return (
    <div class="preview" aria-busy={!isCurrent.value}>
      <p class="check-state" role="status">
        {failure.value ? (
          <>
            <Icon name="triangle-alert" /> The check failed: {failure.value.message}{" "}
            <button type="button" onClick={again}>
              Try again
            </button>
          </>
        ) : !result.value ? (
          "Checking…"
        ) : count > 0 ? (
          <>
            <Icon name="circle-alert" /> {counted(count, "problem")}
            {isEdited && ": it cannot be saved"}
          </>
        ) : (
          <>
            <Icon name="check" /> {isEdited ? "It can be saved" : "No problems"}
          </>
        )}
        {result.value && !failure.value && !isCurrent.value && (
          <span class="hint" aria-hidden="true">
            {" "}
            checking…
          </span>
        )}
      </p>
      {count > 0 && (
        <ul class="problems">
          {problems.map((problem, place) => (
            <Problem key={place} of={problem} isEdited={isEdited} />
          ))}
          {extra.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      <Values missing={missing} values={values} onSet={onValues} />
      {unfilled && missing === null && (
        <p class="field-errors">
          <code>{unfilled.field}</code> {problemWords(unfilled)}
        </p>
      )}
      {missing !== null && (
        <p class="hint">
          <code>{missing}</code> has no value of its own: requests must give it, or give it above to see the text.
        </p>
      )}
      {rendered && (
        <>
          <Rendered title="Personality, as the model reads it" text={rendered.personality} />
          {rendered.greetings.map((greeting, place) => (
            <Rendered key={place} title={`Greeting ${place + 1}`} text={greeting} />
          ))}
          <Rendered title="When a sound interrupts it" text={rendered.interruption_message} />
          <Rendered title="When a reply is late" text={rendered.patience_message} />
        </>
      )}
    </div>
  );
}
