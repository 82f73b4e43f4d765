// The folders of a knowledge base, beside its documents.

import { useSignal } from "@preact/signals";

import { BASE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { PARAMETERS } from "../documents/filter";
import { FilterField, SortField } from "../knowledge/controls";
import { StateWords } from "../knowledge/figures";
import { type Sorting, readSorting, sortedQuery, sortingChanges } from "../knowledge/sorting";
import { Spend } from "../knowledge/spend";
import { useSummedPages } from "../knowledge/summed";
import { type StateCounts, counted } from "../knowledge/words";
import { ask } from "../problem";
import { Link, query, setQuery } from "../router";
import { Filters } from "../ui/filters";
import { formatBytes, formatNumber } from "../ui/format";
import { Icon, type IconName } from "../ui/icon";
import { useKept } from "../ui/kept";
import { More, Shown } from "../ui/states";
import { NewFolder } from "./base-folder-dialogs";

type Folder = Schemas["ListedFolderView"];
type Sums = Schemas["DocumentSumsView"] & { total: number };

/** Parameters of the address that belong to the folders begin with this; others belong to the documents. */
const PREFIX = "folder-";

/** Returns the address of a folder, with the sorting and filters of the present one, without the selection of its documents. */
function folderAddress(partner: string, base: string, folder: string | null): string {
  return address(BASE, { partner, name: base }, { ...Object.fromEntries(query.value), [PARAMETERS.selected]: null, folder });
}

type EntryProps = {
  icon: IconName;
  to: string;
  name: string;
  isSelected: boolean;
  figures: (StateCounts & { documents: number; size_bytes: number }) | null;
  spend: Schemas["SpendSumView"] | null;
  isOver?: boolean;
};

function Entry({ icon, to, name, isSelected, figures, spend, isOver = false }: EntryProps) {
  return (
    <li class={isSelected ? "selected" : ""}>
      <Icon name={icon} />
      <Link to={to} class="clamped" aria-current={isSelected ? "true" : undefined}>
        <bdi>{name}</bdi>
      </Link>
      <span class="number hint">{figures && formatBytes(figures.size_bytes)}</span>
      <span class="counts hint">
        {figures && <span>{counted(figures.documents, "document")}</span>}
        {isOver ? <span class="state down">being deleted</span> : figures && <StateWords of={figures} />}
      </span>
      <span class="number hint">{spend && <Spend spend={spend} />}</span>
    </li>
  );
}

function useFolders(partner: string, base: string, sorting: Sorting) {
  return useSummedPages<Folder, Sums>(
    async (call, cursor) => {
      const params = { path: { partner, kb: base }, query: sortedQuery(sorting, cursor) };
      const { folders: entries, next_cursor, sums, total } = await ask(api.GET("/api/folder-list/{partner}/{kb}", { ...call, params }));
      return { entries, next: next_cursor ?? null, summary: sums ? { ...sums, total: total ?? entries.length } : null };
    },
    [partner, base, sorting.sort, sorting.q],
    { partner, kinds: ["folder", "document"], base },
  );
}

type FoldersProps = {
  partner: string;
  base: string;
  /** Name of the selected folder; null for all documents. */
  selected: string | null;
  all: Schemas["ListedBaseView"] | null;
  isOpen: boolean;
};

/** Sums of what the filter found. */
function Found({ of }: { of: Sums }) {
  return (
    <p class="hint sums">
      {formatNumber(of.total)} found: {counted(of.documents, "document")}, {formatBytes(of.size_bytes)}, <Spend spend={of.spend} />
    </p>
  );
}

type ListProps = Pick<FoldersProps, "partner" | "base" | "selected" | "all"> & { entries: Folder[]; sums: Sums | undefined; isFiltered: boolean };

function List({ partner, base, selected, all, entries, sums, isFiltered }: ListProps) {
  const to = (folder: string | null) => folderAddress(partner, base, folder);
  // The sums are those of the folders that the filter found.
  const spend = isFiltered ? null : (sums?.spend ?? null);
  return (
    <>
      <ul>
        <Entry icon="library" to={to(null)} name="All documents" isSelected={selected === null} figures={all} spend={spend} />
        {entries.map((folder) => (
          <Entry
            key={folder.id}
            icon={folder.type === "video_channel" ? "tv" : "folder"}
            to={to(folder.name)}
            name={folder.name}
            isSelected={folder.name === selected}
            figures={folder}
            spend={folder.spend}
            isOver={Boolean(folder.deletion_requested_at)}
          />
        ))}
      </ul>
      {entries.length === 0 && <p class="none">{isFiltered ? "No folder matches." : "No folders yet. Create one to add documents."}</p>}
    </>
  );
}

export function Folders({ partner, base, selected, all, isOpen }: FoldersProps) {
  const sorting = readSorting(query.value, PREFIX);
  const folders = useFolders(partner, base, sorting);
  const isCreating = useSignal(false);
  const sums = folders.summary.value;
  const isFiltered = sorting.q !== null;
  return (
    <section class="folders" aria-labelledby="folders">
      <header>
        <h2 id="folders">Folders</h2>
        {isOpen && (
          <button type="button" onClick={() => (isCreating.value = true)}>
            <Icon name="plus" /> New
          </button>
        )}
      </header>
      <Filters label="Filter the folders">
        <FilterField name="folder-q" label="Name" value={sorting.q} onSet={(q) => setQuery(sortingChanges({ q }, PREFIX))} />
        <SortField name="folder-sort" value={sorting.sort} onSet={(sort) => setQuery(sortingChanges({ sort }, PREFIX))} />
      </Filters>
      <Shown of={useKept(folders)}>
        {({ entries, next }) => (
          <div class="list">
            <List {...{ partner, base, selected, all, entries, sums, isFiltered }} />
            <More next={next} isLoading={folders.isLoading.value} more={folders.more} />
            {sums && isFiltered && entries.length > 0 && <Found of={sums} />}
          </div>
        )}
      </Shown>
      {isCreating.value && (
        <NewFolder partner={partner} base={base} addressOf={(name) => folderAddress(partner, base, name)} onClose={() => (isCreating.value = false)} />
      )}
    </section>
  );
}
