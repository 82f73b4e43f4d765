// The fields of a character, each with what saving would say about it.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

import { type Draft, type Fact, type FactsChoice, factsChoice, listOf, repeatedFacts, textOf, withFactsChoice, withParameter } from "../characters/draft";
import { type FieldProblem, problemWords, problemsOf } from "../characters/problems";
import { Field } from "../ui/field";
import { ListEditor } from "../ui/list-editor";

/** A draft that is being edited, and what is wrong with it. */
export type DraftForm = { partner: string; draft: Draft; problems: readonly FieldProblem[]; set: (draft: Draft) => void };

/** Returns what is wrong with a field, in words; `isDeep` adds what is inside it. */
export const errorsOf = ({ problems }: DraftForm, field: string, isDeep = false) => problemsOf(problems, field, isDeep).map(problemWords);

export function Section({ title, hint, children }: { title: string; hint?: string; children: ComponentChildren }) {
  return (
    <fieldset class="section">
      <legend>{title}</legend>
      {hint && <p class="hint">{hint}</p>}
      {children}
    </fieldset>
  );
}

type TextProps = { form: DraftForm; name: string; label: string; hint?: string; rows?: number; placeholder?: string };

/** A parameter that is a text. An empty field is no parameter. */
export function TextParameter({ form, name, label, hint, rows, placeholder }: TextProps) {
  const set = (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
    form.set(withParameter(form.draft, name, event.currentTarget.value === "" ? undefined : event.currentTarget.value));
  const shared = { name, dir: "auto" as const, value: textOf(form.draft, name), placeholder };
  return (
    <Field label={label} {...(hint !== undefined && { hint })} errors={errorsOf(form, `parameters.${name}`)}>
      {(control) =>
        rows ? <textarea {...control} {...shared} rows={rows} onInput={set} /> : <input {...control} {...shared} autocomplete="off" onInput={set} />
      }
    </Field>
  );
}

export function Personality({ form }: { form: DraftForm }) {
  return (
    <Field
      label="Personality"
      hint="A template: {{ robot_name }} prints a parameter; {% if person_name %} … {% endif %} and {% for q in easy_questions %} … {% endfor %} work, too."
      errors={errorsOf(form, "personality")}
    >
      {(control) => (
        <textarea
          {...control}
          class="template"
          name="personality"
          rows={18}
          dir="auto"
          spellcheck={false}
          value={form.draft.personality}
          onInput={(event) => form.set({ ...form.draft, personality: event.currentTarget.value })}
        />
      )}
    </Field>
  );
}

export function Basics({ form }: { form: DraftForm }) {
  return (
    <Section title="Who it is">
      <div class="field-grid">
        <TextParameter form={form} name="name" label="Display name" />
        <TextParameter form={form} name="robot_name" label="Calls itself" />
        <TextParameter form={form} name="person_name" label="Calls the visitor" />
        <TextParameter form={form} name="language" label="Language" hint="A name (German), a code (de), a tag (pt-BR), or auto for the visitor's." />
      </div>
    </Section>
  );
}

export function Greetings({ form }: { form: DraftForm }) {
  const set = (greetings: string[]) => form.set(withParameter(form.draft, "greetings", greetings.length > 0 ? greetings : undefined));
  return (
    <Section title="Greetings" hint="A call begins with one of them, at random. Templates work here, too.">
      <ListEditor entries={listOf<string>(form.draft, "greetings")} onSet={set} noun="greeting" empty="" most={100}>
        {(greeting, change, place) => (
          <Field label={`Greeting ${place + 1}`} isLabelHidden errors={errorsOf(form, `parameters.greetings[${place}]`)}>
            {(control) => (
              <textarea {...control} name={`greeting-${place}`} rows={2} dir="auto" value={greeting} onInput={(event) => change(event.currentTarget.value)} />
            )}
          </Field>
        )}
      </ListEditor>
    </Section>
  );
}

const OWN = "own";
const NONE = "none";

/** The words for a late reply: the server's sentence, the character's own, or none. */
function Patience({ form }: { form: DraftForm }) {
  const { draft, set } = form;
  const message = draft.parameters["patience_message"];
  const choice = typeof message !== "string" ? "" : message === "" ? NONE : OWN;
  // A sentence comes back with its choice.
  const typed = useRef("");
  if (choice === OWN) typed.current = textOf(draft, "patience_message");
  const choose = (chosen: string) =>
    set(withParameter(draft, "patience_message", chosen === OWN ? typed.current || "One moment, please." : chosen === NONE ? "" : undefined));
  const delay = draft.parameters["patience_ms"];
  return (
    <>
      <div class="field-grid">
        <Field label="When a reply is late" errors={choice === OWN ? [] : errorsOf(form, "parameters.patience_message")}>
          {(control) => (
            <select {...control} name="patience" value={choice} onChange={(event) => choose(event.currentTarget.value)}>
              <option value="">say the server's sentence</option>
              <option value={OWN}>say a sentence of its own</option>
              <option value={NONE}>say nothing</option>
            </select>
          )}
        </Field>
        <Field label="Late after, in milliseconds" hint="500 to 60000; empty for the server's." errors={errorsOf(form, "parameters.patience_ms")}>
          {(control) => (
            <input
              {...control}
              name="patience_ms"
              inputMode="numeric"
              autocomplete="off"
              value={delay === undefined || delay === null ? "" : String(delay)}
              onInput={({ currentTarget: { value } }) => set(withParameter(draft, "patience_ms", value === "" ? undefined : /^\d+$/.test(value) ? Number(value) : value))}
            />
          )}
        </Field>
      </div>
      {choice === OWN && <OwnPatience form={form} />}
    </>
  );
}

/** The sentence, which may be empty while it is typed: that is nothing to say. */
function OwnPatience({ form }: { form: DraftForm }) {
  return (
    <Field label="Its sentence" errors={errorsOf(form, "parameters.patience_message")}>
      {(control) => (
        <input
          {...control}
          name="patience_message"
          dir="auto"
          autocomplete="off"
          value={textOf(form.draft, "patience_message")}
          onInput={(event) => form.set(withParameter(form.draft, "patience_message", event.currentTarget.value))}
        />
      )}
    </Field>
  );
}

export function Conversation({ form }: { form: DraftForm }) {
  return (
    <Section title="In a conversation">
      <TextParameter form={form} name="interruption_message" label="When a sound without words interrupts it" placeholder="for example: Yes?" />
      <Patience form={form} />
      <TextParameter form={form} name="conversation_prefix" label="Text before the conversation" rows={2} hint="Stands behind the personality, unless that prints {{ conversation_prefix }}." />
    </Section>
  );
}

/** The facts that calls find out about the visitor: the fields of the server, those of the character, or none. */
export function Facts({ form }: { form: DraftForm }) {
  const { draft, set } = form;
  // Fields come back with their choice.
  const typed = useRef<readonly Fact[]>([]);
  if (draft.facts !== null && draft.facts.length > 0) typed.current = draft.facts;
  const choose = (chosen: string) => set(withFactsChoice(draft, chosen as FactsChoice, typed.current));
  const repeated = repeatedFacts(draft);
  const errors = (fact: Fact) => [
    ...(repeated.includes(fact.name) ? ["Another field has this name."] : []),
    ...errorsOf(form, `parameters.profile_schema.${fact.name}`, true),
  ];
  return (
    <Section title="Facts about the visitor" hint="What a call finds out and tells the page while it goes on.">
      <Field label="Fields" errors={errorsOf(form, "parameters.profile_schema")}>
        {(control) => (
          <select {...control} name="facts" value={factsChoice(draft)} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="server">those of the server</option>
            <option value="own">these fields</option>
            <option value="none">none</option>
          </select>
        )}
      </Field>
      {draft.facts !== null && draft.facts.length > 0 && (
        <ListEditor
          entries={draft.facts}
          onSet={(facts) => set({ ...draft, facts })}
          noun="field"
          empty={{ name: "", description: "", others: {} }}
          most={50}
          isOrdered={false}
        >
          {(fact, change, place) => (
            <div class="field-grid">
              <Field label="Name" errors={errors(fact)}>
                {(control) => (
                  <input {...control} name={`fact-${place}`} autocomplete="off" value={fact.name} onInput={(event) => change({ ...fact, name: event.currentTarget.value })} />
                )}
              </Field>
              <Field label="Meaning" errors={[]}>
                {(control) => (
                  <input
                    {...control}
                    name={`meaning-${place}`}
                    dir="auto"
                    autocomplete="off"
                    value={fact.description}
                    onInput={(event) => change({ ...fact, description: event.currentTarget.value })}
                  />
                )}
              </Field>
            </div>
          )}
        </ListEditor>
      )}
    </Section>
  );
}
