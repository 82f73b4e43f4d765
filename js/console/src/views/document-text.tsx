// A text of a document: read in parts, and edited.

import { useSignal } from "@preact/signals";

import type { Schemas } from "../api";
import {
  type DocumentAt, MAX_EDITED, type Variant, type WritableVariant, readTagged, readText, saveContent,
} from "../documents/contents";
import { textEdits } from "../documents/edits";
import { PART_LENGTH, firstParts } from "../documents/parts";
import { Action } from "../ui/action";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { lazy } from "../ui/lazy";
import { Empty, Shown } from "../ui/states";
import { notify } from "../ui/toasts";
import { ReadAgain, useLiveContents } from "./document-live";

type DocumentView = Schemas["DocumentView"];

const Editor = lazy(async () => (await import("./document-editor")).Editor);

/** A text of which parts are shown one after the other: a page with all of a long one would freeze. */
export function LongText({ text }: { text: string }) {
  const count = useSignal(1);
  const { parts, rest } = firstParts(text, count.value);
  if (text === "") return <p class="none">The text is empty.</p>;
  return (
    <>
      <div class="long">
        {parts.map((part, place) => (
          <pre key={place} class="text" dir="auto">
            {part}
          </pre>
        ))}
      </div>
      {rest > 0 && (
        <div class="more">
          <button type="button" onClick={() => (count.value += 1)}>
            Show {formatNumber(Math.min(rest, PART_LENGTH))} more of {formatNumber(rest)} characters
          </button>
        </div>
      )}
    </>
  );
}

const EMPTY: Record<Exclude<Variant, "original">, { title: string; next: string }> = {
  digitized: { title: "No digitized text yet", next: "It appears here when the original has been read. You can also write it." },
  rewritten: { title: "No final content yet", next: "Rewrite the document, or write the content yourself. Only final content is searched." },
  draft: { title: "No draft", next: "A draft appears here while the document is rewritten." },
};

function fileOf(of: DocumentView, variant: Variant): string | null | undefined {
  const files = { original: of.file_original, digitized: of.file_digitized, rewritten: of.file_rewritten, draft: of.file_draft };
  return files[variant];
}

type TextProps = { at: DocumentAt; of: DocumentView; variant: Exclude<Variant, "original">; onEdit: (variant: WritableVariant) => void };

/** Edits a text, or the final content that a draft becomes. */
function Edit({ at, of, variant, onEdit }: TextProps) {
  const edit = async () => {
    const target = variant === "draft" ? "rewritten" : variant;
    const kept = textEdits.of({ ...at, variant: target });
    if (kept && textEdits.isChanged(kept)) {
      notify("Your unsaved changes are shown; save or discard them first");
      textEdits.open(kept);
      return onEdit(target);
    }
    const before = await readTagged(at, target);
    const text = variant === "draft" ? (await readText(at, variant)).content : (before?.text ?? "");
    textEdits.open({ at: { ...at, variant: target }, name: of.name, before, text });
    onEdit(target);
  };
  return <Action icon="pencil" label={variant === "draft" ? "Edit as the final content" : "Edit"} busy="Opening…" onRun={edit} />;
}

/** A text that exists, with what can be done with it. One that is too long to be shown can be downloaded. */
function Read({ at, of, variant, onEdit }: TextProps) {
  const characters = { digitized: of.digitized_chars, rewritten: of.rewritten_chars, draft: 0 }[variant] ?? 0;
  const live = useLiveContents(at, of, characters, (call) => readText(at, variant, call), [variant]);
  const text = live.contents.data.value?.content;
  const save = () => saveContent(at, variant, fileOf(of, variant) ?? `${at.id}.md`);
  return (
    <>
      <div class="actions">
        <ReadAgain of={live} />
        {text !== undefined &&
          (text.length <= MAX_EDITED ? (
            <Edit at={at} of={of} variant={variant} onEdit={onEdit} />
          ) : (
            <span class="hint">Too long to edit here. Download it, and upload it changed.</span>
          ))}
        <Action icon="download" label="Download" busy="Downloading…" onRun={save} />
      </div>
      <Shown of={live.contents}>{({ content }) => <LongText text={content} />}</Shown>
    </>
  );
}

export function TextContent(props: TextProps) {
  const { at, of, variant, onEdit } = props;
  const target = variant === "draft" ? null : variant;
  if (target && textEdits.of({ ...at, variant: target })) return <Editor at={at} name={of.name} variant={target} />;
  if (fileOf(of, variant)) return <Read {...props} />;
  const { title, next } = EMPTY[variant];
  const write = () => {
    if (!target) return;
    textEdits.open({ at: { ...at, variant: target }, name: of.name, before: null, text: "" });
    onEdit(target);
  };
  return (
    <Empty icon="file-text" title={title}>
      <p>{next}</p>
      {target && (
        <button type="button" onClick={write}>
          <Icon name="pencil" /> Write it
        </button>
      )}
    </Empty>
  );
}
