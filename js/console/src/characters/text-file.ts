// Text files that become documents of a character.

import type { Schemas } from "../api";
import { formatBytes } from "../ui/format";

/** The longest file: a character with all its documents is sent in one request. */
export const MAX_FILE_BYTES = 900_000;

/** The most documents of a character. */
export const MAX_DOCUMENTS = 100;

export class TooLong extends Error {
  constructor() {
    super(`it has more than ${formatBytes(MAX_FILE_BYTES)}; put it into a knowledge base instead`);
  }
}

/** Reads a file as a document. Throws for one that is too long, or that is no text in UTF-8. */
export async function readTextFile(file: File): Promise<Schemas["CharacterDocument"]> {
  if (file.size > MAX_FILE_BYTES) throw new TooLong();
  const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  if (text.includes("\0")) throw new Error("not a text");
  return { title: file.name.replace(/\.[a-z]{1,8}$/i, "").slice(0, 200), text };
}

type Document = Schemas["CharacterDocument"];

/** Returns the documents with those that files became, and for each file that was not added a sentence that says why. */
export async function withFiles(files: readonly File[], present: () => readonly Document[]): Promise<{ documents: Document[]; failures: string[] }> {
  const read = await Promise.allSettled(files.map(readTextFile));
  // Others may have been typed while the files were read.
  const documents = [...present()];
  const failures = read.flatMap((result, place) => {
    const refuse = (why: string) => [`${files[place]?.name ?? ""} was not added: ${why}.`];
    if (result.status === "rejected") return refuse(result.reason instanceof TooLong ? result.reason.message : "it is not a text file");
    if (documents.length >= MAX_DOCUMENTS) return refuse(`a character has at most ${MAX_DOCUMENTS} documents; put it into a knowledge base instead`);
    documents.push(result.value);
    return [];
  });
  return { documents, failures };
}
