// Figures of a document.

import type { ComponentChildren } from "preact";

import { BASE, DOCUMENT, address } from "../addresses";
import type { Schemas } from "../api";
import { shortId } from "../calls/names";
import { readListed } from "../documents/listed";
import { moreDuplicates } from "../documents/words";
import { counted } from "../knowledge/words";
import { Spend } from "../knowledge/spend";
import { Link } from "../router";
import { formatBytes, formatNumber, formatUsd } from "../ui/format";
import { useResource } from "../ui/resource";
import { Time } from "../ui/time";
import { Waiting } from "./document-state";

type DocumentView = Schemas["DocumentView"];
type Listed = Schemas["ListedDocumentView"];

/** Duplicates that are linked at most. */
const MAX_DUPLICATES = 5;

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (children === null || children === undefined || children === false || children === "") return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Dollars; a lower bound has the sign of the server's display. */
const dollars = (usd: string | null | undefined, isComplete: boolean) => (usd ? `${isComplete ? "" : "≥ "}${formatUsd(usd)}` : "n/a");

/** The spend of a document with its parts. */
function SpendParts({ listed: { spend } }: { listed: Listed }) {
  const { reading_requests: requests, reading_unpriced: unpriced, reading_usd, rewrite_usd, rewrite_complete } = spend;
  const hasRewrite = rewrite_complete !== null && rewrite_complete !== undefined;
  return (
    <>
      <Spend spend={spend} />
      {hasRewrite && <span class="part">rewriting {dollars(rewrite_usd, rewrite_complete)}</span>}
      {requests > 0 && (
        <span class="part">
          reading {dollars(reading_usd, unpriced === 0)} in {counted(requests, "request")}
        </span>
      )}
    </>
  );
}

function Source({ of: { type, url, file_original: file } }: { of: DocumentView }) {
  if (url && /^https?:\/\//i.test(url)) {
    return (
      <a href={url} target="_blank" rel="noreferrer noopener" dir="auto">
        {url}
      </a>
    );
  }
  return <bdi>{url ?? file ?? (type === "file" ? "written here" : "no address")}</bdi>;
}

function Duplicates({ partner, base, ids }: { partner: string; base: string; ids: string[] }) {
  return (
    <>
      {ids.slice(0, MAX_DUPLICATES).map((id, place) => (
        <span key={id}>
          {place > 0 && ", "}
          <Link to={address(DOCUMENT, { partner, name: base, id })}>{`Document ${shortId(id)}`}</Link>
        </span>
      ))}
      {" "}
      {moreDuplicates(ids.length, MAX_DUPLICATES)}
    </>
  );
}

export function Facts({ partner, base, of }: { partner: string; base: string; of: DocumentView }) {
  const { id, name, folder } = of;
  const found = useResource((call) => readListed({ partner, base, id, name, folder }, call), [partner, base, id, name, folder], {
    partner,
    kinds: ["document"],
    base,
    id,
  });
  const listed = found.data.value ?? null;
  const size = listed?.size_bytes ?? of.bytes;
  const duplicates = of.duplicate_document_ids;
  return (
    <dl class="document-facts">
      <Fact name="Folder">
        <Link to={address(BASE, { partner, name: base }, { folder })}>{folder}</Link>
      </Fact>
      <Fact name={of.type === "url" ? "Address" : "File"}>
        <Source of={of} />
      </Fact>
      <Fact name="Size">{typeof size === "number" && formatBytes(size)}</Fact>
      <Fact name="Text">{typeof of.digitized_chars === "number" && counted(of.digitized_chars, "character")}</Fact>
      <Fact name="Pages">{typeof of.pages === "number" && formatNumber(of.pages)}</Fact>
      <Fact name="Final content">{typeof of.rewritten_chars === "number" && counted(of.rewritten_chars, "character")}</Fact>
      <Fact name="Spend">{listed ? <SpendParts listed={listed} /> : of.spend_display}</Fact>
      <Fact name="Tokens">{listed && formatNumber(listed.tokens)}</Fact>
      <Fact name="Model">{of.rewrite_model}</Fact>
      <Fact name="Waiting since">{listed?.queued_at && <Waiting since={listed.queued_at} next={listed.next_attempt_at} />}</Fact>
      <Fact name="Author">{of.expert_name ?? of.author}</Fact>
      <Fact name="Language">{of.language}</Fact>
      <Fact name="Created">
        <Time at={of.created_at} />
      </Fact>
      <Fact name="Changed">
        <Time at={of.updated_at} />
      </Fact>
      <Fact name="Duplicates">{duplicates.length > 0 && <Duplicates partner={partner} base={base} ids={duplicates} />}</Fact>
    </dl>
  );
}
