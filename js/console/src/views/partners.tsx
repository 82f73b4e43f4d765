// All partners, for administrators.

import { useSignal } from "@preact/signals";

import { KEYS, USAGE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { differencesOf } from "../partners";
import { askPage } from "../problem";
import { Link } from "../router";
import { formatBytes } from "../ui/format";
import { Icon } from "../ui/icon";
import { Reload } from "../ui/reload";
import { usePages } from "../ui/resource";
import { RowAction } from "../ui/row-action";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { DeletePartner, EditPartner, NewPartner } from "./partner-form";

type Partner = Schemas["PartnerView"];

function Differences({ of }: { of: Partner["settings"] }) {
  const words = differencesOf(of);
  return words.length === 0 ? <span class="none">as for everybody</span> : <>{words.join(", ")}</>;
}

type RowProps = { of: Partner; onEdit: () => void; onDelete: () => void };

function Row({ of, onEdit, onDelete }: RowProps) {
  return (
    <tr>
      <th scope="row">
        <Link to={address(KEYS, { partner: of.id })}>{of.id}</Link>
      </th>
      <td class="name" dir="auto">
        {of.display_name}
      </td>
      <td>
        {formatBytes(of.storage.used_bytes)} of {formatBytes(of.storage.limit_bytes)}
      </td>
      <td>
        <Differences of={of.settings} />
      </td>
      <td>
        <Link to={address(USAGE, { partner: of.id })}>Usage</Link>
      </td>
      <td>
        <Time at={of.created_at} />
      </td>
      <td>
        <RowAction icon="pencil" label={`Edit ${of.id}`} onClick={onEdit} />
        <RowAction icon="trash-2" label={`Delete ${of.id}`} onClick={onDelete} />
      </td>
    </tr>
  );
}

export function Partners(_: { partner: string }) {
  const partners = usePages(
    (call, cursor) => askPage(api.GET("/api/partners", { ...call, params: { query: { ...(cursor !== undefined && { cursor }) } } })),
    [],
  );
  const isCreating = useSignal(false);
  const editing = useSignal<Partner | null>(null);
  const deleting = useSignal<Partner | null>(null);
  const reload = () => void partners.reload();
  return (
    <>
      <Shown of={partners}>
        {({ entries, next }) => (
          <>
            <div class="actions">
              <Reload of={partners} />
              <button type="button" class="primary" onClick={() => (isCreating.value = true)}>
                <Icon name="plus" /> Create a partner
              </button>
            </div>
            {entries.length === 0 ? (
              <Empty icon="building-2" title="No partners yet">
                <p>Create a partner to get its first key.</p>
              </Empty>
            ) : (
              <Table label="Partners">
                <thead>
                  <tr>
                    <th scope="col">Partner</th>
                    <th scope="col">Name</th>
                    <th scope="col">Storage</th>
                    <th scope="col">Settings</th>
                    <th scope="col">Usage</th>
                    <th scope="col">Created</th>
                    <th scope="col">
                      <span class="hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((partner) => (
                    <Row key={partner.id} of={partner} onEdit={() => (editing.value = partner)} onDelete={() => (deleting.value = partner)} />
                  ))}
                </tbody>
              </Table>
            )}
            <More next={next} isLoading={partners.isLoading.value} more={partners.more} />
          </>
        )}
      </Shown>
      {isCreating.value && <NewPartner onCreated={reload} onClose={() => (isCreating.value = false)} />}
      {editing.value && <EditPartner of={editing.value} onChanged={reload} onClose={() => (editing.value = null)} />}
      {deleting.value && <DeletePartner of={deleting.value} onChanged={reload} onClose={() => (deleting.value = null)} />}
    </>
  );
}
