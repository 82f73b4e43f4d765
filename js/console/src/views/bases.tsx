// The knowledge bases of a partner.

import { useSignal } from "@preact/signals";

import { BASE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { CompactBudget } from "../knowledge/budget-bar";
import { FilterField, SortField } from "../knowledge/controls";
import { Cost, DocumentCounts } from "../knowledge/figures";
import { type Sorting, readSorting, sortedQuery, sortingChanges } from "../knowledge/sorting";
import { useSummedPages } from "../knowledge/summed";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { Link, query, setQuery } from "../router";
import { Explained } from "../ui/explained";
import { Filters } from "../ui/filters";
import { formatBytes, formatUsd } from "../ui/format";
import { Icon } from "../ui/icon";
import { useKept } from "../ui/kept";
import { RowAction } from "../ui/row-action";
import { Rows } from "../ui/rows";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { DeleteBase, NewBase } from "./base-dialogs";

type Base = Schemas["ListedBaseView"];
type Sums = Schemas["BaseSumsView"] & { total: number };

const PRICE_BASIS = "Cost of all settled requests, as the budget counts them, also for documents that were deleted";

function Row({ partner, of, onDelete }: { partner: string; of: Base; onDelete: () => void }) {
  return (
    <tr class={of.deletion_requested_at ? "over" : ""}>
      <th scope="row" class="name">
        <Link to={address(BASE, { partner, name: of.name })} class="clamped">
          <bdi>{of.name}</bdi>
        </Link>
        {of.expert_name && (
          <div class="hint clamped">
            <bdi>{of.expert_name}</bdi>
          </div>
        )}
      </th>
      <td>
        <DocumentCounts documents={of.documents} of={of} />
      </td>
      <td class="number">{formatBytes(of.size_bytes)}</td>
      <td class="number">
        <Cost usd={of.cost_usd} isLowerBound={of.has_unknown_cost} />
      </td>
      <td>
        <CompactBudget of={of.budget} />
      </td>
      <td>
        {of.deletion_requested_at ? (
          <>
            being deleted since <Time at={of.deletion_requested_at} />
          </>
        ) : (
          <Time at={of.created_at} />
        )}
      </td>
      <td>{!of.deletion_requested_at && <RowAction icon="trash-2" label={`Delete ${of.name}`} onClick={onDelete} />}</td>
    </tr>
  );
}

function Head({ sort }: { sort: Sorting["sort"] }) {
  const sorted = (by: Sorting["sort"]) => (sort !== by ? undefined : by === "name" ? "ascending" : "descending");
  return (
    <thead>
      <tr>
        <th scope="col" aria-sort={sorted("name")}>
          Name
        </th>
        <th scope="col">Documents</th>
        <th scope="col" class="number" aria-sort={sorted("size")}>
          Size
        </th>
        <th scope="col" class="number" aria-sort={sorted("price")}>
          <Explained as={PRICE_BASIS}>Cost</Explained>
        </th>
        <th scope="col">Budget</th>
        <th scope="col">Created</th>
        <th scope="col">
          <span class="hidden">Actions</span>
        </th>
      </tr>
    </thead>
  );
}

/** Sums over all knowledge bases of the list, also those of other pages. */
function Foot({ of, isFiltered }: { of: Sums; isFiltered: boolean }) {
  const name = isFiltered ? "match" : "knowledge base";
  return (
    <tfoot>
      <tr>
        <th scope="row">{of.total > 1 && "All "}
          {counted(of.total, name, isFiltered ? "matches" : "knowledge bases")}</th>
        <td>{counted(of.documents, "document")}</td>
        <td class="number">{formatBytes(of.size_bytes)}</td>
        <td class="number">
          <Explained as="Sum of the costs, as far as they are known">{formatUsd(of.cost_usd)}</Explained>
        </td>
        <td colSpan={3}>{counted(of.text_characters, "character")} of text</td>
      </tr>
    </tfoot>
  );
}

function Nothing({ isFiltered, onCreate }: { isFiltered: boolean; onCreate: () => void }) {
  if (isFiltered) {
    return (
      <Empty icon="search" title="No knowledge base matches">
        <button type="button" onClick={() => setQuery({ q: null })}>
          Show all
        </button>
      </Empty>
    );
  }
  return (
    <Empty icon="library" title="No knowledge bases yet">
      <p>Create one, then add documents to its folders.</p>
      <button type="button" class="primary" onClick={onCreate}>
        Create a knowledge base
      </button>
    </Empty>
  );
}

function useBases(partner: string, sorting: Sorting) {
  return useSummedPages<Base, Sums>(
    async (call, cursor) => {
      const params = { path: { partner }, query: sortedQuery(sorting, cursor) };
      const { knowledge_bases: entries, next_cursor, sums, total } = await ask(api.GET("/api/kb-list/{partner}", { ...call, params }));
      return { entries, next: next_cursor ?? null, summary: sums ? { ...sums, total: total ?? entries.length } : null };
    },
    [partner, sorting.sort, sorting.q],
    { partner, kinds: ["base", "budget", "folder", "document"] },
  );
}

export function KnowledgeBases({ partner }: { partner: string }) {
  const sorting = readSorting(query.value);
  const bases = useBases(partner, sorting);
  const isCreating = useSignal(false);
  const deleting = useSignal<Base | null>(null);
  const reload = () => void bases.reload();
  const create = () => (isCreating.value = true);
  return (
    <>
      <div class="toolbar">
        <Filters label="Filter the knowledge bases">
          <FilterField name="q" label="Name" value={sorting.q} onSet={(q) => setQuery(sortingChanges({ q }))} />
          <SortField name="sort" value={sorting.sort} onSet={(sort) => setQuery(sortingChanges({ sort }))} />
        </Filters>
        <button type="button" class="primary" onClick={create}>
          <Icon name="plus" /> Create a knowledge base
        </button>
      </div>
      <Shown of={useKept(bases)}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Nothing isFiltered={sorting.q !== null} onCreate={create} />
          ) : (
            <>
              <Table label="Knowledge bases">
                <Head sort={sorting.sort} />
                <Rows of={entries} hasMore={next !== null} onView={bases.view}>
                  {(base) => <Row key={base.id} partner={partner} of={base} onDelete={() => (deleting.value = base)} />}
                </Rows>
                {bases.summary.value && <Foot of={bases.summary.value} isFiltered={sorting.q !== null} />}
              </Table>
              <More next={next} isLoading={bases.isLoading.value} more={bases.more} isEndless={!bases.problem.value} />
            </>
          )
        }
      </Shown>
      {isCreating.value && <NewBase partner={partner} onClose={() => (isCreating.value = false)} />}
      {deleting.value && <DeleteBase partner={partner} of={deleting.value} onDeleted={reload} onClose={() => (deleting.value = null)} />}
    </>
  );
}
