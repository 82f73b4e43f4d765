// Uploads whose answer was lost. The API has no key by which it knows an upload again, so the document is looked for before the upload is sent again.

import type { Clock } from "../clock";

/** Facts by which an upload is recognized. `name` is empty where the server derives it. */
export type Sent = { name: string } & ({ file: Blob } | { url: string });

/** A document that may be of an upload. Its time is in RFC 3339. */
export type Candidate = { id: string; type: string; name: string; url?: string | null; size_bytes: number; created_at: string };
export type Details = { content_hash?: string | null; duplicate_document_ids: string[] };

export type UnansweredPorts<S> = {
  /** Lists the documents that may be of an upload, with the time of the server in milliseconds; NaN if it is not known. */
  list: (source: S, signal: AbortSignal) => Promise<{ documents: Candidate[]; now: number }>;
  read: (source: S, id: string, signal: AbortSignal) => Promise<Details>;
  /** Returns the SHA-256 of a file, in hexadecimal; null where the browser has none. */
  digest: (file: Blob) => Promise<string | null>;
  clock: Clock;
};

/** Times of the server are in whole seconds. */
const SLACK_MS = 2_000;

/** The uploads of a tab whose answer was lost, and the documents of the others. */
export class Unanswered<S extends Sent> {
  /** When an upload was sent first. */
  readonly #began = new WeakMap<S, number>();
  /** Documents of uploads. None of them is that of another upload. */
  readonly #taken = new Set<string>();

  constructor(private readonly ports: UnansweredPorts<S>) {}

  /** Notes that the answer to an upload was lost, which was sent at `began`. */
  lose(source: S, began: number): void {
    if (!this.#began.has(source)) this.#began.set(source, began);
  }

  /** Notes the document of an upload. */
  take(document: string): void {
    this.#taken.add(document);
  }

  /** Returns the document that an upload made although its answer was lost; null if there is none. */
  async find(source: S, signal: AbortSignal): Promise<{ document: string; duplicates: string[] } | null> {
    const began = this.#began.get(source);
    if (began === undefined) return null;
    const { documents, now } = await this.ports.list(source, signal);
    const maxAgeMs = this.ports.clock.now() - began + SLACK_MS;
    const isNew = ({ id, created_at }: Candidate) => now - Date.parse(created_at) <= maxAgeMs && !this.#taken.has(id);
    for (const { id } of documents.filter((document) => isNew(document) && isAlike(source, document))) {
      const details = await this.ports.read(source, id, signal);
      if (!(await this.#hasContent(source, details)) || this.#taken.has(id)) continue;
      this.take(id);
      return { document: id, duplicates: details.duplicate_document_ids };
    }
    return null;
  }

  async #hasContent(source: S, { content_hash }: Details): Promise<boolean> {
    if (!("file" in source)) return true;
    const digest = await this.ports.digest(source.file);
    // Without the content, the same name and size have to do.
    return digest === null ? source.name !== "" : digest === content_hash;
  }
}

function isAlike(source: Sent, { type, name, url, size_bytes }: Candidate): boolean {
  if (!("file" in source)) return type === "url" && url === source.url;
  return type === "file" && size_bytes === source.file.size && (source.name === "" || source.name.trim() === name);
}
