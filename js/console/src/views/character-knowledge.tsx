// The knowledge of a character: documents that it carries, and a knowledge base.

import { useSignal } from "@preact/signals";

import { type Schemas, api, may } from "../api";
import { type Draft, listOf, textOf, withParameter } from "../characters/draft";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { Field } from "../ui/field";
import { formatBytes } from "../ui/format";
import { lazy } from "../ui/lazy";
import { useResource } from "../ui/resource";
import { type DraftForm, Section, errorsOf } from "./character-form";

type Document = Schemas["CharacterDocument"];

const Documents = lazy(async () => (await import("./character-documents")).Documents);

/** The reference of a knowledge base, with the names of those there are. */
function Base({ form }: { form: DraftForm }) {
  const { partner, draft, set } = form;
  const bases = useResource(
    (call) => ask(api.GET("/api/kb-list/{partner}", { ...call, params: { path: { partner }, query: { sort: "name", limit: 100 } } })),
    [partner],
    { partner, kinds: ["base"] },
  );
  const reference = (name: string) => `${partner}/${name}`;
  return (
    <Field label="Knowledge base" hint={`Written ${partner}/name; empty if it answers from its own documents alone.`} errors={errorsOf(form, "parameters.rag_index_required")}>
      {(control) => (
        <>
          <input
            {...control}
            name="rag_index_required"
            list="bases"
            dir="auto"
            autocomplete="off"
            value={textOf(draft, "rag_index_required")}
            onInput={({ currentTarget: { value } }) => set(withParameter(draft, "rag_index_required", value === "" ? undefined : value))}
          />
          <datalist id="bases">
            {bases.data.value?.knowledge_bases.map(({ name }) => (
              <option key={name} value={reference(name)} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

function PlainBase({ form }: { form: DraftForm }) {
  const { draft, set } = form;
  return (
    <Field label="Knowledge base" errors={errorsOf(form, "parameters.rag_index_required")}>
      {(control) => (
        <input
          {...control}
          name="rag_index_required"
          dir="auto"
          autocomplete="off"
          value={textOf(draft, "rag_index_required")}
          onInput={({ currentTarget: { value } }) => set(withParameter(draft, "rag_index_required", value === "" ? undefined : value))}
        />
      )}
    </Field>
  );
}

const bytesOf = (documents: readonly Document[]) => new Blob(documents.map(({ text }) => text)).size;

export const documentsOf = (draft: Draft) => listOf<Document>(draft, "documents");

export function Knowledge({ form }: { form: DraftForm }) {
  const { draft, set } = form;
  const documents = documentsOf(draft);
  const isOpen = useSignal(false);
  const isUsed = draft.parameters["rag_enabled"] === true;
  const errors = errorsOf(form, "parameters.documents", true);
  return (
    <Section title="Knowledge">
      <label class="checkbox">
        <input type="checkbox" name="rag_enabled" checked={isUsed} onChange={(event) => set(withParameter(draft, "rag_enabled", event.currentTarget.checked))} />
        Answers from what is looked up
      </label>
      {may("knowledge") ? <Base form={form} /> : <PlainBase form={form} />}
      <details data-holds="title- text-" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>
          {counted(documents.length, "document")} of its own{documents.length > 0 && `, ${formatBytes(bytesOf(documents))}`}
        </summary>
        {isOpen.value && <Documents form={form} />}
      </details>
      {!isOpen.value && errors.length > 0 && (
        <div class="field-errors">
          {errors.map((error) => (
            <p key={error}>{error}</p>
          ))}
        </div>
      )}
      {documents.length > 0 && !isUsed && <p class="hint">The documents are not used while this is off.</p>}
    </Section>
  );
}
