// The characters of a partner, by name.

import { CHARACTER, NEW_CHARACTER, address } from "../addresses";
import { type Schemas, api } from "../api";
import { askPage } from "../problem";
import { Link, navigate } from "../router";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { type Column, List } from "../ui/list";
import { usePages } from "../ui/resource";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";

type Character = Schemas["CharacterEntryView"];

function columnsOf(partner: string): Column<Character>[] {
  return [
    { title: "Name", cell: ({ name }) => <Link to={address(CHARACTER, { partner, name })}>{name}</Link> },
    { title: "Version", isNumber: true, cell: ({ version }) => formatNumber(version) },
    { title: "Changed", cell: ({ updated_at: at }) => <Time at={at} /> },
    { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
  ];
}

export function Characters({ partner }: { partner: string }) {
  const characters = usePages(
    (call, cursor) =>
      askPage(api.GET("/api/characters/{partner}", { ...call, params: { path: { partner }, query: { ...(cursor !== undefined && { cursor }) } } })),
    [partner],
    { partner, kinds: ["character"] },
  );
  const create = () => navigate(address(NEW_CHARACTER, { partner }));
  return (
    <>
      {(characters.data.value?.entries.length ?? 0) > 0 && (
        <div class="actions">
          <button type="button" class="primary" onClick={create}>
            <Icon name="plus" /> Create a character
          </button>
        </div>
      )}
      <List of={characters} label="Characters" columns={columnsOf(partner)} keyOf={({ name }) => name}>
        <Empty icon="user-round" title="No characters yet">
          <p>A character says who speaks: its personality, its voice, and what it knows.</p>
          <button type="button" class="primary" onClick={create}>
            Create a character
          </button>
        </Empty>
      </List>
    </>
  );
}
