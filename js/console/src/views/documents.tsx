// The documents of a knowledge base, or of one of its folders.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { type Schemas, api } from "../api";
import { useIsOpen } from "../documents/closed";
import {
  type DocumentFilter, documentQuery, filterQuery, isFiltered, readDocumentFilter, readSelected, selectedChange,
} from "../documents/filter";
import type { Found } from "../documents/dropped";
import { useSummedPages } from "../knowledge/summed";
import { ask } from "../problem";
import { query, setQuery } from "../router";
import { Icon } from "../ui/icon";
import { useKept } from "../ui/kept";
import { Empty, More, Shown } from "../ui/states";
import { type Action, ActionDialog, SelectionBar, type Subject, startRetry } from "./document-actions";
import { AddDocuments } from "./document-add";
import { BulkProgress } from "./document-bulk";
import { DocumentFilters } from "./document-filters";
import { DocumentTable } from "./document-table";
import { takeDrop, useDrop } from "./document-drop";
import { Uploads } from "./document-uploads";

type Listed = Schemas["ListedDocumentView"];
type Props = { partner: string; base: string; folder: string | null };
export type Sums = { total: number; sums: Schemas["DocumentSumsView"] };

function useDocuments({ partner, base, folder }: Props, filter: DocumentFilter) {
  const asked = documentQuery(filter, folder);
  return useSummedPages<Listed, Sums>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base }, query: { ...asked, ...(cursor !== undefined && { cursor }) } };
      const { documents: entries, next_cursor, sums, total } = await ask(api.GET("/api/document-list/{partner}/{kb}", { ...call, params }));
      return { entries, next: next_cursor ?? null, summary: sums ? { sums, total: total ?? entries.length } : null };
    },
    [partner, base, JSON.stringify(asked)],
    { partner, kinds: ["document", "folder"], base },
  );
}

/** Replaces the selection. */
export type Select = (change: (now: ReadonlySet<string>) => ReadonlySet<string>) => void;

/** The selection. The address holds it as long as it is short. */
function useSelection() {
  const selected = useSignal<ReadonlySet<string>>(readSelected(query.peek()));
  const select: Select = (change) => {
    selected.value = change(selected.peek());
    setQuery(selectedChange(selected.peek()));
  };
  return { selected, select };
}

function Nothing({ filter, folder, onAdd }: { filter: DocumentFilter; folder: string | null; onAdd: () => void }) {
  if (isFiltered(filter)) {
    return (
      <Empty icon="search" title="No document matches">
        <p>Change the filters above, or show all documents.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="upload" title={folder === null ? "No documents yet" : "No documents in this folder"}>
      <p>Drop files or folders here, or add documents by address or by pasted text.</p>
      <button type="button" class="primary" onClick={onAdd}>
        <Icon name="plus" /> Add documents
      </button>
    </Empty>
  );
}

export function Documents(props: Props) {
  const { partner, base, folder } = props;
  const filter = readDocumentFilter(query.value);
  const documents = useKept(useDocuments(props, filter));
  const { selected, select } = useSelection();
  const action = useSignal<Action | null>(null);
  const adding = useSignal<Found[] | null>(null);
  const section = useRef<HTMLDivElement>(null);
  const add = () => (adding.value = []);
  const isOver = useDrop(section, (data) => {
    takeDrop(data, (found) => (adding.value = [...(adding.peek() ?? []), ...found]));
  });
  const shown = documents.data.value?.entries ?? [];
  const isOpen = useIsOpen(partner, base);
  const rows = shown.filter((row) => selected.value.has(row.id) && isOpen(row));
  const deselect = (gone: Subject[] = []) => select((now) => new Set([...now].filter((id) => gone.every((one) => one.id !== id))));
  const act = (kind: Action["kind"], on: Listed[]) => {
    if (kind === "retry") startRetry(props, on);
    else action.value = { kind, on, within: filterQuery(filter, folder) };
  };
  return (
    <div ref={section} class={`documents ${isOver.value ? "over" : ""}`}>
      <div class="toolbar">
        <DocumentFilters filter={filter} />
        <button type="button" class="primary" onClick={add}>
          <Icon name="plus" /> Add documents
        </button>
      </div>
      <Uploads base={base} />
      <BulkProgress />
      <SelectionBar on={rows} onAct={(kind) => act(kind, rows)} onClear={() => select(() => new Set())} />
      <Shown of={documents}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Nothing filter={filter} folder={folder} onAdd={add} />
          ) : (
            <>
              <DocumentTable
                at={{ partner, base, folder }}
                rows={entries}
                hasMore={next !== null}
                sums={documents.summary.value}
                filter={filter}
                selected={selected.value}
                isOpen={isOpen}
                onSelect={select}
                onAct={(kind, row) => act(kind, [row])}
                onView={documents.view}
              />
              <More next={next} isLoading={documents.isLoading.value} more={documents.more} isEndless={!documents.problem.value} />
            </>
          )
        }
      </Shown>
      {isOver.value && (
        <p class="drop" aria-hidden="true">
          <Icon name="upload" /> Drop to add {folder === null ? "documents" : `documents to ${folder}`}
        </p>
      )}
      {adding.value && <AddDocuments at={props} files={adding} onClose={() => (adding.value = null)} />}
      {action.value && (
        <ActionDialog
          partner={partner}
          base={base}
          of={action.value}
          onClose={() => (action.value = null)}
          onDone={() => deselect(action.peek()?.on)}
        />
      )}
    </div>
  );
}
