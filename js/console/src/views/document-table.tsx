// The table of documents: sorted by the server, with the sums of all that match in its caption.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { DOCUMENT, address } from "../addresses";
import type { Schemas } from "../api";
import { type DocumentFilter, type SortKey, listParameters, sortChange } from "../documents/filter";
import { counted } from "../knowledge/words";
import { Spend } from "../knowledge/spend";
import type { Span } from "../pages";
import { Link, query, setQuery } from "../router";
import { formatBytes, formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { RowAction } from "../ui/row-action";
import { Rows } from "../ui/rows";
import { Table } from "../ui/states";
import { Time } from "../ui/time";
import type { Action } from "./document-actions";
import { DocumentState, Reasons, Waiting } from "./document-state";
import type { Select, Sums } from "./documents";

type Listed = Schemas["ListedDocumentView"];
type At = { partner: string; base: string; folder: string | null };

/** A heading that sorts by its column. */
function Sorted({ by, filter, isNumber = false, children }: { by: SortKey; filter: DocumentFilter; isNumber?: boolean; children: string }) {
  const isCurrent = filter.sort === by;
  const direction = filter.order === "asc" ? "ascending" : "descending";
  return (
    <th scope="col" class={isNumber ? "number" : ""} aria-sort={isCurrent ? direction : undefined}>
      <button type="button" class={`sort ${isCurrent ? filter.order : ""}`} onClick={() => setQuery(sortChange(filter, by))}>
        {children}
        <Icon name="chevron-down" />
      </button>
    </th>
  );
}

/** A box that selects all rows that are shown. */
function SelectAll({ rows, selected, onSelect }: { rows: Listed[]; selected: ReadonlySet<string>; onSelect: Select }) {
  const box = useRef<HTMLInputElement>(null);
  const count = rows.filter(({ id }) => selected.has(id)).length;
  const isPartial = count > 0 && count < rows.length;
  useEffect(() => {
    if (box.current) box.current.indeterminate = isPartial;
  }, [isPartial]);
  const toggle = () => onSelect(() => new Set(count === rows.length ? [] : rows.map(({ id }) => id)));
  return <input ref={box} type="checkbox" aria-label="Select all shown documents" checked={count === rows.length} onChange={toggle} />;
}

function Caption({ of }: { of: Sums | undefined }) {
  if (!of) return null;
  const { total, sums } = of;
  const incomplete = sums.spend.incomplete_documents;
  const figures: ComponentChildren[] = [
    <strong>{counted(total, "document")}</strong>,
    formatBytes(sums.size_bytes),
    counted(sums.text_characters, "character"),
    counted(sums.tokens, "token"),
    <>
      spend <Spend spend={sums.spend} />
    </>,
    incomplete > 0 && `cost of ${counted(incomplete, "document")} not fully known`,
  ];
  return (
    <caption>
      <div>
        {figures.filter(Boolean).map((figure, place) => (
          <span key={place}>{figure}</span>
        ))}
      </div>
    </caption>
  );
}

function RowActions({ of: { name, state }, onAct }: Pick<RowProps, "of" | "onAct">) {
  return (
    <div>
      {state === "failed" && <RowAction icon="refresh-cw" label={`Retry ${name}`} onClick={() => onAct("retry")} />}
      <RowAction icon="wand-sparkles" label={`Rewrite ${name}`} onClick={() => onAct("rewrite")} />
      <RowAction icon="folder-input" label={`Move ${name}`} onClick={() => onAct("move")} />
      <RowAction icon="trash-2" label={`Delete ${name}`} onClick={() => onAct("delete")} />
    </div>
  );
}

type RowProps = { at: At; of: Listed; isOpen: boolean; isSelected: boolean; onToggle: () => void; onAct: (kind: Action["kind"]) => void };

/** Columns from the name to the actions. */
const COLUMNS = 7;

/** A document: its row, and a second one with what is wrong with it. */
function Row({ at: { partner, base, folder }, of, isOpen, isSelected, onToggle, onAct }: RowProps) {
  const { id, name, state, reason, warning } = of;
  return (
    <>
      <tr class={isSelected ? "selected" : ""}>
        <td class="check">
          {isOpen && <input type="checkbox" aria-label={`Select ${name}`} checked={isSelected} onChange={onToggle} />}
        </td>
        <th scope="row" class="name">
          <Link to={address(DOCUMENT, { partner, name: base, id }, listParameters(query.value))}>
            <bdi>{name}</bdi>
          </Link>
          {folder === null && (
            <span class="in-folder">
              <Icon name="folder" /> <bdi>{of.folder}</bdi>
            </span>
          )}
        </th>
        <td>
          <DocumentState state={state} of={of} />
          {of.queued_at && (
            <span class="waiting">
              since <Waiting since={of.queued_at} next={of.next_attempt_at} />
            </span>
          )}
        </td>
        <td class="number">{formatBytes(of.size_bytes)}</td>
        <td class="number">{of.tokens === 0 ? <span class="none">0</span> : formatNumber(of.tokens)}</td>
        <td class="number">
          <Spend spend={of.spend} />
        </td>
        <td>
          <Time at={of.updated_at} />
        </td>
        <td class="row-actions">
          {isOpen && <RowActions of={of} onAct={onAct} />}
        </td>
      </tr>
      {(reason || warning) && (
        <tr class={`about ${isSelected ? "selected" : ""}`}>
          <td />
          <td colSpan={COLUMNS}>
            <Reasons reason={reason} warning={warning} />
          </td>
        </tr>
      )}
    </>
  );
}

type TableProps = {
  at: At;
  rows: Listed[];
  /** True if the list goes on after these rows. */
  hasMore: boolean;
  sums: Sums | undefined;
  filter: DocumentFilter;
  selected: ReadonlySet<string>;
  /** Returns true if something can be done with a document. */
  isOpen: (row: Listed) => boolean;
  onSelect: Select;
  onAct: (kind: Action["kind"], row: Listed) => void;
  /** Gets the places of the rows near the window. */
  onView: (span: Span) => void;
};

export function DocumentTable({ at, rows, hasMore, sums, filter, selected, isOpen, onSelect, onAct, onView }: TableProps) {
  const open = rows.filter(isOpen);
  const toggle = (id: string) =>
    onSelect((now) => {
      const next = new Set(now);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return (
    <Table label="Documents">
      <Caption of={sums} />
      <thead>
        <tr>
          <th scope="col" class="check">
            {open.length > 0 && <SelectAll rows={open} selected={selected} onSelect={onSelect} />}
          </th>
          <Sorted by="name" filter={filter}>
            Name
          </Sorted>
          <Sorted by="state" filter={filter}>
            State
          </Sorted>
          <Sorted by="size" filter={filter} isNumber>
            Size
          </Sorted>
          <Sorted by="tokens" filter={filter} isNumber>
            Tokens
          </Sorted>
          <Sorted by="price" filter={filter} isNumber>
            Spend
          </Sorted>
          <Sorted by="changed" filter={filter}>
            Changed
          </Sorted>
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <Rows of={rows} hasMore={hasMore} onView={onView}>
        {(row) => (
          <Row
            key={row.id}
            at={at}
            of={row}
            isOpen={isOpen(row)}
            isSelected={selected.has(row.id)}
            onToggle={() => toggle(row.id)}
            onAct={(kind) => onAct(kind, row)}
          />
        )}
      </Rows>
    </Table>
  );
}
