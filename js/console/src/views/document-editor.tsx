// An editor for a text of a document. What changed on the server meanwhile is not overwritten unasked.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import {
  type DocumentAt, type Replaced, type Tagged, type WritableVariant, isConflict, readTagged, replacedBy, writeText,
} from "../documents/contents";
import { type Edit, textEdits } from "../documents/edits";
import { partAt } from "../documents/markdown";
import { counted } from "../knowledge/words";
import { toProblem } from "../problem";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { Markdown } from "../ui/markdown";
import { TextEditor } from "../ui/text-editor";
import { notify } from "../ui/toasts";
import { Compared } from "./difference";
import { Discard } from "./discard";

/**
 * Why a text was not written: `now` is the content that others wrote meanwhile, null if they removed it; with `isWaiting` it is the same as before, and a
 * text of others waits for the budget.
 */
type Conflict = { now: Tagged | null; isWaiting: boolean };

const WHAT: Record<WritableVariant, string> = { digitized: "digitized text", rewritten: "final content" };

type ConflictProps = { theirs: Conflict; own: string; onOverwrite: () => void; onDiscard: () => void; isBusy: boolean };

function ConflictNotice({ theirs, own, onOverwrite, onDiscard, isBusy }: ConflictProps) {
  const { now, isWaiting } = theirs;
  return (
    <div class="conflict">
      <p role="alert">
        <Icon name="triangle-alert" />{" "}
        {isWaiting
          ? "Nothing was saved: another text was saved before and waits for the budget of the base."
          : "Nothing was saved: the text has changed since you began to edit it."}
      </p>
      {!isWaiting && <Compared title="Compare the text of now with yours" before={now?.text ?? ""} after={own} />}
      <div class="actions start">
        <button type="button" class="danger" aria-disabled={isBusy} onClick={onOverwrite}>
          {isWaiting ? "Replace the waiting text" : "Overwrite with mine"}
        </button>
        <button type="button" onClick={onDiscard}>
          Discard mine
        </button>
      </div>
    </div>
  );
}

/** Pause in typing after which the preview is made again. */
const PREVIEW_MS = 250;

/** The formatted text around the cursor. */
function Preview({ text, cursor }: { text: string; cursor: Signal<number> }) {
  const shown = useSignal(partAt(text, cursor.peek()));
  const position = cursor.value;
  useEffect(() => {
    const timer = setTimeout(() => (shown.value = partAt(text, position)), PREVIEW_MS);
    return () => clearTimeout(timer);
  }, [text, position]);
  const { text: part, index, count } = shown.value;
  return (
    <section class="preview" aria-label="Preview" tabIndex={0}>
      <h2 class="hidden">Preview</h2>
      {count > 1 && (
        <p class="hint">
          Part {formatNumber(index + 1)} of {formatNumber(count)}, where the cursor is
        </p>
      )}
      <Markdown source={part} />
    </section>
  );
}

export function Editor({ at, name, variant }: { at: DocumentAt; name: string; variant: WritableVariant }) {
  const textAt = { ...at, variant };
  const edit: Edit = textEdits.of(textAt) ?? { at: textAt, name, before: null, text: "" };
  const isBusy = useSignal(false);
  const error = useSignal("");
  const conflict = useSignal<Conflict | null>(null);
  const isDiscarding = useSignal(false);
  const isPreviewed = useSignal(false);
  const cursor = useSignal(0);
  const field = useRef<HTMLDivElement>(null);
  const editor = useRef<TextEditor | null>(null);
  const hasChanges = textEdits.isChanged(edit);
  useEffect(() => {
    const onText = (text: string) => {
      const now = textEdits.peek(textAt);
      // An edit that has ended stays so.
      if (now) textEdits.set({ ...now, text });
    };
    const options = { label: `The ${WHAT[variant]}`, text: edit.text, onText, onCursor: (position: number) => (cursor.value = position) };
    const made = new TextEditor(field.current as HTMLDivElement, options);
    editor.current = made;
    // Who comes by the tabs, or back to the page, keeps the focus there.
    if (textEdits.takesFocus(textAt)) made.focus();
    return () => made.close();
  }, []);
  useEffect(() => editor.current?.setReadOnly(isBusy.value), [isBusy.value]);

  const write = async (replaced: Replaced) => {
    try {
      const isWritten = await writeText(at, variant, (textEdits.peek(textAt) ?? edit).text, replaced);
      textEdits.end(textAt);
      notify(isWritten ? `The ${WHAT[variant]} is saved` : `The ${WHAT[variant]} is kept until the budget has room for it`);
    } catch (thrown) {
      if (!isConflict(thrown)) throw thrown;
      const now = await readTagged(at, variant);
      const isWaiting = (now?.tag ?? null) === (typeof replaced === "object" ? replaced.tag : null);
      conflict.value = { now, isWaiting };
    }
  };
  const save = async (replaced: Replaced) => {
    if (isBusy.value) return;
    isBusy.value = true;
    error.value = "";
    await write(replaced).catch((thrown: unknown) => (error.value = toProblem(thrown).message));
    isBusy.value = false;
  };
  const discard = () => textEdits.end(textAt);
  /** Returns the edit with all that was typed, if it changes something. */
  const changed = () => {
    editor.current?.flush();
    const now = textEdits.peek(textAt) ?? edit;
    return textEdits.isChanged(now) ? now : null;
  };
  const saveChanged = () => {
    const now = changed();
    if (now) void save(replacedBy(now.before));
  };
  const theirs = conflict.value;
  const overwrite = ({ now, isWaiting }: Conflict) => void save(isWaiting ? "any" : replacedBy(now));
  return (
    <div class="editor">
      {theirs && (
        <ConflictNotice theirs={theirs} own={edit.text} isBusy={isBusy.value} onOverwrite={() => overwrite(theirs)} onDiscard={discard} />
      )}
      <div class={isPreviewed.value ? "editing beside" : "editing"}>
        <div ref={field} class="text-editor" />
        {isPreviewed.value && <Preview text={edit.text} cursor={cursor} />}
      </div>
      <p class="error" role="alert">
        {error.value}
      </p>
      <div class="actions">
        <span class="hint">{counted(edit.text.length, "character")}</span>
        <button type="button" aria-pressed={isPreviewed.value} onClick={() => (isPreviewed.value = !isPreviewed.value)}>
          Preview
        </button>
        <button type="button" onClick={() => (changed() ? (isDiscarding.value = true) : discard())}>
          {hasChanges ? "Discard" : "Cancel"}
        </button>
        <button type="button" class="primary" aria-disabled={isBusy.value || !hasChanges} onClick={saveChanged}>
          {isBusy.value ? "Saving…" : "Save"}
        </button>
      </div>
      {variant === "rewritten" && <p class="hint">Saved content is embedded again and searched as soon as that is done.</p>}
      {isDiscarding.value && <Discard what="The text" onDiscard={discard} onClose={() => (isDiscarding.value = false)} />}
    </div>
  );
}
