// The documents that a character carries: texts that are typed, or come from files.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import type { Schemas } from "../api";
import { MAX_DOCUMENTS, withFiles } from "../characters/text-file";
import { withParameter } from "../characters/draft";
import { Field } from "../ui/field";
import { Icon } from "../ui/icon";
import { ListEditor } from "../ui/list-editor";
import { type DraftForm, errorsOf } from "./character-form";
import { documentsOf } from "./character-knowledge";

type Document = Schemas["CharacterDocument"];

/** One document. Its text is loaded into a field only while it is open. */
function DocumentFields({ form, of, place, onChange }: { form: DraftForm; of: Document; place: number; onChange: (of: Document) => void }) {
  const isOpen = useSignal(of.title === "" && of.text === "");
  const field = `parameters.documents[${place}]`;
  return (
    <>
      <Field label={`Title of document ${place + 1}`} errors={errorsOf(form, `${field}.title`)}>
        {(control) => (
          <input {...control} name={`title-${place}`} dir="auto" autocomplete="off" value={of.title} onInput={(event) => onChange({ ...of, title: event.currentTarget.value })} />
        )}
      </Field>
      <details data-holds={`text-${place}`} open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>Text</summary>
        {isOpen.value && (
          <Field label={`Text of document ${place + 1}`} isLabelHidden errors={errorsOf(form, `${field}.text`)}>
            {(control) => (
              <textarea {...control} name={`text-${place}`} rows={10} dir="auto" value={of.text} onInput={(event) => onChange({ ...of, text: event.currentTarget.value })} />
            )}
          </Field>
        )}
      </details>
    </>
  );
}

export function Documents({ form }: { form: DraftForm }) {
  const documents = documentsOf(form.draft);
  const chooser = useRef<HTMLInputElement>(null);
  const failures = useSignal<string[]>([]);
  // Files take a moment to read, and what is typed meanwhile stays.
  const latest = useRef(form);
  latest.current = form;
  const set = (next: Document[]) => latest.current.set(withParameter(latest.current.draft, "documents", next.length > 0 ? next : undefined));
  const addFiles = async (files: File[]) => {
    const { documents, failures: failed } = await withFiles(files, () => documentsOf(latest.current.draft));
    failures.value = failed;
    if (failed.length < files.length) set(documents);
  };
  return (
    <>
      <ListEditor entries={documents} onSet={set} noun="document" nameOf={({ title }, place) => title || `document ${place + 1}`} empty={{ title: "", text: "" }} most={MAX_DOCUMENTS}>
        {(document, change, place) => <DocumentFields form={form} of={document} place={place} onChange={change} />}
      </ListEditor>{" "}
      <button type="button" onClick={() => chooser.current?.click()}>
        <Icon name="upload" /> Add text files
      </button>
      <input
        ref={chooser}
        type="file"
        name="documents"
        class="hidden"
        tabIndex={-1}
        aria-label="Text files"
        multiple
        accept=".txt,.md,.markdown,.csv,.json,text/*"
        onChange={({ currentTarget }) => {
          void addFiles([...(currentTarget.files ?? [])]);
          currentTarget.value = "";
        }}
      />
      <div role="alert" class="field-errors">
        {failures.value.map((failure, place) => (
          <p key={place}>{failure}</p>
        ))}
      </div>
    </>
  );
}
