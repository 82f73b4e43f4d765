// The dialog that adds documents: files and folders, addresses, or a pasted text.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { Schemas } from "../api";
import { type Found, chosen } from "../documents/dropped";
import { type Destination, type Processing, type Source, uploads } from "../documents/uploads";
import { counted } from "../knowledge/words";
import { Problem } from "../problem";
import { keptInTab } from "../storage";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatBytes, formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { takeDrop } from "./document-drop";
import { FolderFields, folderOf } from "./document-folders";

type Kind = "files" | "addresses" | "text";
const KINDS: [Kind, string][] = [
  ["files", "Files"],
  ["addresses", "Addresses"],
  ["text", "Pasted text"],
];

/** Keeps the processing that was chosen last. */
const CHOSEN = "colloquy-processing";
const PROCESSING: [Processing, string][] = [
  ["as-is", "Make the text searchable as it is"],
  ["rewrite", "Have a model rewrite the text, then make it searchable"],
  ["none", "Only digitize the text"],
];

const invalid = (field: string, message: string) => new Problem(0, "invalid", message, field);

/** Returns the addresses of a text, one a line. */
export const addressesOf = (text: string) => [...new Set(text.split(/\s+/).filter(Boolean))];

function sourcesOf(kind: Kind, files: readonly Found[], fields: FormData, to: Destination): Source[] {
  if (kind === "files") {
    if (files.length === 0) throw invalid("file", "Choose files, or drop them here.");
    return files.map(({ file, name }) => ({ ...to, file, name, size: file.size }));
  }
  if (kind === "addresses") {
    const urls = addressesOf(String(fields.get("urls")));
    if (urls.length === 0) throw invalid("urls", "Enter an address.");
    return urls.map((url) => ({ ...to, url, name: "", size: null }));
  }
  const name = String(fields.get("title")).trim();
  const file = new File([String(fields.get("pasted"))], `${name}.md`, { type: "text/markdown" });
  return [{ ...to, file, name, size: file.size }];
}

function Files({ files }: { files: Signal<Found[] | null> }) {
  const picker = useRef<HTMLInputElement>(null);
  const folderPicker = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (folderPicker.current) folderPicker.current.webkitdirectory = true;
  }, []);
  const found = files.value ?? [];
  const size = found.reduce((sum, { file }) => sum + file.size, 0);
  const add = (more: Found[]) => (files.value = [...(files.peek() ?? []), ...more]);
  const pick = ({ currentTarget: input }: { currentTarget: HTMLInputElement }) => {
    add(chosen(input.files ?? []));
    input.value = "";
  };
  const drop = (event: DragEvent) => {
    if (!event.dataTransfer) return;
    event.preventDefault();
    event.stopPropagation();
    takeDrop(event.dataTransfer, add);
  };
  return (
    <div class="drop-zone" onDrop={drop} onDragOver={(event) => event.preventDefault()}>
      <p role="status">
        {found.length === 0 ? "Drop files or folders here." : `${counted(found.length, "file")}, ${formatBytes(size)}`}
      </p>
      <div class="buttons">
        <button type="button" onClick={() => picker.current?.click()}>
          <Icon name="file-text" /> Choose files
        </button>
        <button type="button" onClick={() => folderPicker.current?.click()}>
          <Icon name="folder" /> Choose a folder
        </button>
        {found.length > 0 && (
          <button type="button" onClick={() => (files.value = [])}>
            Remove all
          </button>
        )}
      </div>
      <input ref={picker} class="picker" type="file" name="file" multiple aria-label="Files" tabIndex={-1} onChange={pick} />
      <input ref={folderPicker} class="picker" type="file" name="directory" aria-label="A folder" tabIndex={-1} onChange={pick} />
      {found.length > 0 && (
        <ul class="names">
          {found.slice(0, 5).map(({ file, name }, place) => (
            <li key={place}>
              <bdi>{name || file.name}</bdi> <span class="hint">{formatBytes(file.size)}</span>
            </li>
          ))}
          {found.length > 5 && <li class="hint">and {formatNumber(found.length - 5)} more</li>}
        </ul>
      )}
    </div>
  );
}

function ProcessingFields() {
  const processing = useSignal<Processing>(PROCESSING.find(([value]) => value === keptInTab.get(CHOSEN))?.[0] ?? "as-is");
  return (
    <div class="fields">
      <label>
        When a document is digitized
        <select
          name="processing"
          value={processing.value}
          onChange={(event) => {
            processing.value = event.currentTarget.value as Processing;
            keptInTab.set(CHOSEN, processing.value);
          }}
        >
          {PROCESSING.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      </label>
      {processing.value === "rewrite" && (
        <label>
          Model
          <select name="tier">
            <option value="standard">standard</option>
            <option value="economy">economy</option>
          </select>
        </label>
      )}
    </div>
  );
}

function Fields({ kind, files }: { kind: Kind; files: Signal<Found[] | null> }) {
  if (kind === "files") return <Files files={files} />;
  if (kind === "addresses") {
    return (
      <label>
        Addresses of pages or files, one a line
        <textarea name="urls" rows={6} required placeholder="https://www.example.com/handbook.pdf" />
      </label>
    );
  }
  return (
    <>
      <label>
        Name
        <input name="title" maxLength={190} required />
      </label>
      <label>
        Text
        <textarea name="pasted" rows={8} required dir="auto" />
      </label>
    </>
  );
}

const ACTIONS: Record<Kind, (count: number) => string> = {
  files: (count) => (count === 0 ? "Upload" : `Upload ${counted(count, "file")}`),
  addresses: () => "Add the addresses",
  text: () => "Add the text",
};

type AddProps = {
  at: { partner: string; base: string; folder: string | null };
  /** The files that were chosen or dropped so far. */
  files: Signal<Found[] | null>;
  onClose: () => void;
};

export function AddDocuments({ at: { partner, base, folder }, files, onClose }: AddProps) {
  const kind = useSignal<Kind>("files");
  const add = async (fields: FormData) => {
    const to = {
      partner,
      base,
      folder: "",
      processing: String(fields.get("processing")) as Processing,
      tier: (fields.get("tier") ?? "standard") as Schemas["ModelTier"],
    };
    const sources = sourcesOf(kind.peek(), files.peek() ?? [], fields, to);
    const into = await folderOf(partner, base, fields, folder);
    uploads.add(sources.map((source) => ({ ...source, folder: into })));
    onClose();
  };
  return (
    <Dialog title="Add documents" onClose={onClose}>
      <Form action={ACTIONS[kind.value](files.value?.length ?? 0)} busy="Adding…" onSend={add} onCancel={onClose}>
        <fieldset class="segments">
          <legend class="hidden">Source</legend>
          {KINDS.map(([value, words]) => (
            <label key={value}>
              <input type="radio" name="kind" value={value} checked={kind.value === value} onChange={() => (kind.value = value)} />
              {words}
            </label>
          ))}
        </fieldset>
        <Fields kind={kind.value} files={files} />
        <FolderFields partner={partner} base={base} initial={folder} />
        <ProcessingFields />
      </Form>
    </Dialog>
  );
}
