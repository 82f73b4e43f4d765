// All partners, for administrators.

import { useSignal } from "@preact/signals";

import { KEYS, USAGE, address } from "../addresses";
import { type Schemas, api } from "../api";
import { differencesOf } from "../partners";
import { askPage } from "../problem";
import { Link } from "../router";
import { formatBytes } from "../ui/format";
import { Icon } from "../ui/icon";
import { type Column, List } from "../ui/list";
import { Reload } from "../ui/reload";
import { usePages } from "../ui/resource";
import { RowAction } from "../ui/row-action";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";
import { DeletePartner, EditPartner, NewPartner } from "./partner-form";

type Partner = Schemas["PartnerView"];

function Differences({ of }: { of: Partner["settings"] }) {
  const words = differencesOf(of);
  return words.length === 0 ? <span class="none">as for everybody</span> : <>{words.join(", ")}</>;
}

function columnsOf(onEdit: (partner: Partner) => void, onDelete: (partner: Partner) => void): Column<Partner>[] {
  return [
    { title: "Partner", cell: ({ id }) => <Link to={address(KEYS, { partner: id })}>{id}</Link> },
    { title: "Name", class: "name", cell: ({ display_name: name }) => <bdi>{name}</bdi> },
    { title: "Storage", cell: ({ storage }) => `${formatBytes(storage.used_bytes)} of ${formatBytes(storage.limit_bytes)}` },
    { title: "Settings", cell: ({ settings }) => <Differences of={settings} /> },
    { title: "Usage", cell: ({ id }) => <Link to={address(USAGE, { partner: id })}>Usage</Link> },
    { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
    {
      title: "Actions",
      isHidden: true,
      cell: (partner) => (
        <>
          <RowAction icon="pencil" label={`Edit ${partner.id}`} onClick={() => onEdit(partner)} />
          <RowAction icon="trash-2" label={`Delete ${partner.id}`} onClick={() => onDelete(partner)} />
        </>
      ),
    },
  ];
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
      <div class="actions">
        <Reload of={partners} />
        <button type="button" class="primary" onClick={() => (isCreating.value = true)}>
          <Icon name="plus" /> Create a partner
        </button>
      </div>
      <List
        of={partners}
        label="Partners"
        columns={columnsOf((partner) => (editing.value = partner), (partner) => (deleting.value = partner))}
        keyOf={({ id }) => id}
      >
        <Empty icon="building-2" title="No partners yet">
          <p>Create a partner to get its first key.</p>
        </Empty>
      </List>
      {isCreating.value && <NewPartner onCreated={reload} onClose={() => (isCreating.value = false)} />}
      {editing.value && <EditPartner of={editing.value} onChanged={reload} onClose={() => (editing.value = null)} />}
      {deleting.value && <DeletePartner of={deleting.value} onChanged={reload} onClose={() => (deleting.value = null)} />}
    </>
  );
}
