// A passage that a search found.

import { DOCUMENT, address } from "../addresses";
import { Link } from "../router";
import { Text } from "../ui/value";

/** Passages that have more UTF-16 units are folded. */
const LONG = 240;

/** Place of a passage: its document, its chunk, and the headings above it. */
export type PassagePlace = { document_id: string; document_name?: string | null; chunk_index: number; path?: string[] | null };

/** A link to a passage in its document, with the headings above it. */
export function PassageLink({ partner, base, of }: { partner: string; base: string; of: PassagePlace }) {
  const { document_id: id, document_name: name, chunk_index: chunk, path } = of;
  if (!name) return <span class="none">a document that was deleted</span>;
  return (
    <span class="place">
      <Link to={address(DOCUMENT, { partner, name: base, id }, { tab: "chunks", chunk: String(chunk) })}>
        <bdi>{name}</bdi>
      </Link>
      {path && path.length > 1 && <bdi class="hint"> {path.slice(1).join(" › ")}</bdi>}
    </span>
  );
}

/** The beginning of a passage, and all of it behind a disclosure if it is longer than `most`. */
export function Passage({ children, most = LONG }: { children: string; most?: number }) {
  if (children.length <= most) return <Text>{children}</Text>;
  return (
    <details class="passage">
      <summary dir="auto">
        <span class="clamped">{children}</span>
        <span class="fold">Fold the passage</span>
      </summary>
      <Text>{children}</Text>
    </details>
  );
}
