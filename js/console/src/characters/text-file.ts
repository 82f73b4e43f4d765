// Text files that become documents of a character.

import type { Schemas } from "../api";
import { formatBytes } from "../ui/format";

/** The longest file: a character with all its documents is sent in one request. */
export const MAX_FILE_BYTES = 900_000;

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
