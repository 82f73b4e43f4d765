// A field for one file: chosen, or dropped onto it.

import type { Signal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { formatBytes } from "./format";
import { Icon } from "./icon";

type FileFieldProps = {
  /** The chosen file. */
  file: Signal<File | null>;
  /** Name of the field, by which errors of the API focus it. */
  name: string;
  /** Words for the wanted file, such as `a recording`. */
  what: string;
  /** Types that the dialog of the browser offers. */
  accept: string;
};

export function FileField({ file, name, what, accept }: FileFieldProps) {
  const picker = useRef<HTMLInputElement>(null);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    event.stopPropagation();
    const [first] = event.dataTransfer?.files ?? [];
    if (first) file.value = first;
  };
  const pick = ({ currentTarget: input }: { currentTarget: HTMLInputElement }) => {
    const [first] = input.files ?? [];
    if (first) file.value = first;
    input.value = "";
  };
  return (
    <div class="drop-zone" onDrop={drop} onDragOver={(event) => event.preventDefault()}>
      <p role="status">
        {file.value ? (
          <>
            <bdi>{file.value.name}</bdi>, {formatBytes(file.value.size)}
          </>
        ) : (
          `Drop ${what} here.`
        )}
      </p>
      <div class="buttons">
        <button type="button" onClick={() => picker.current?.click()}>
          <Icon name="upload" /> {file.value ? "Choose another file" : "Choose a file"}
        </button>
      </div>
      <input ref={picker} class="picker" type="file" name={name} accept={accept} aria-label={what} tabIndex={-1} onChange={pick} />
    </div>
  );
}

/** Recordings that the API takes. */
export const RECORDINGS = "audio/*,video/mp4,video/webm,.mp3,.wav,.ogg,.oga,.opus,.flac,.m4a,.mp4,.webm";
