// Files of a drop, also those in folders.

import { counted } from "../knowledge/words";

/** A file, and the name of its document: with the folder that directly contains it, if there is one. Empty where the server makes the name. */
export type Found = { file: File; name: string };

/** The parts of `FileSystemEntry` that are read. */
export type Entry = {
  isFile: boolean;
  isDirectory: boolean;
  name: string;
  file?: (done: (file: File) => void, failed: (error: unknown) => void) => void;
  createReader?: () => { readEntries: (done: (entries: Entry[]) => void, failed: (error: unknown) => void) => void };
};

/** Files taken from a drop at most. */
export const MAX_FILES = 5_000;
/** Folders within folders that are entered at most. */
const MAX_DEPTH = 16;
/** The longest name of a document, in characters. */
const MAX_NAME = 200;

/** Returns true for files that systems hide, such as `.DS_Store`. */
const isHidden = (name: string) => name.startsWith(".") || name === "Thumbs.db" || name === "desktop.ini";

/** Characters that the server accepts in the names of files, which it cleans, but not in those of documents. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Returns the name of a document for a path: its last folder and the file. What is no name of a document is left to the server. */
export function shallowName(path: string): string {
  const name = path.split("/").filter(Boolean).slice(-2).join("/");
  return [...name].length > MAX_NAME || UNSEEN.test(name) ? "" : name;
}

async function entriesOf(folder: Entry): Promise<Entry[]> {
  const reader = folder.createReader?.();
  const all: Entry[] = [];
  // Browsers give a hundred entries at a time.
  for (;;) {
    const some = await new Promise<Entry[]>((done, failed) => (reader ? reader.readEntries(done, failed) : done([])));
    if (some.length === 0 || all.length > MAX_FILES) return all;
    all.push(...some);
  }
}

/** The files of a drop: `unread` counts the files and folders that could not be read; `isCut` is true if there are more than are taken. */
export type Collected = { found: Found[]; unread: number; isCut: boolean };

/** Returns the files of entries and of the folders among them, without hidden ones. */
export async function collect(entries: readonly Entry[]): Promise<Collected> {
  const found: Found[] = [];
  let unread = 0;
  let isCut = false;
  const visit = async (entry: Entry, path: string, depth: number): Promise<void> => {
    if (isHidden(entry.name)) return;
    if (found.length >= MAX_FILES || depth > MAX_DEPTH) {
      isCut = true;
      return;
    }
    try {
      if (entry.isDirectory) {
        for (const inner of await entriesOf(entry)) {
          await visit(inner, `${path}${entry.name}/`, depth + 1);
          if (found.length >= MAX_FILES && isCut) return;
        }
      } else if (entry.isFile && entry.file) {
        const read = entry.file.bind(entry);
        const file = await new Promise<File>((done, failed) => read(done, failed));
        found.push({ file, name: shallowName(path + entry.name) });
      }
    } catch {
      unread += 1;
    }
  };
  for (const entry of entries) await visit(entry, "", 0);
  return { found, unread, isCut };
}

/** Returns what of a drop was not taken; null if all of it was. */
export function leftOutWords({ found, unread, isCut }: Collected): string | null {
  const taken = `${counted(found.length, "file")} of the drop ${found.length === 1 ? "is" : "are"} taken`;
  const sentences = [
    isCut && `Only ${taken}: the others are too many, or in too many folders within folders.`,
    unread > 0 && `${counted(unread, "file or folder", "files or folders")} could not be read.`,
  ];
  return sentences.filter(Boolean).join(" ") || null;
}

/** Returns the files of a drop. Must be called while the drop is handled: its entries are gone afterwards. */
export function dropped(data: DataTransfer): Promise<Collected> {
  const items = [...data.items].filter(({ kind }) => kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.() as Entry | null);
  // Drops that scripts make have files without entries.
  const plain = items.filter((_, place) => !entries[place]).map((item) => item.getAsFile());
  const files = plain.filter((file): file is File => file !== null);
  return collect(entries.filter((entry): entry is Entry => entry !== null)).then(({ found, ...rest }) => ({
    found: [...found, ...chosen(files)],
    ...rest,
  }));
}

/** Returns the files of a file picker, or of the picker of a folder. */
export function chosen(files: Iterable<File>): Found[] {
  return [...files]
    .filter(({ name }) => !isHidden(name))
    .map((file) => ({ file, name: shallowName(file.webkitRelativePath || file.name) }));
}
