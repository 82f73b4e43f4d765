// The versions of a character, and the differences of any two.

import { CHARACTER, address } from "../addresses";
import { api } from "../api";
import { versionOf } from "../characters/parameters";
import { readVersion } from "../characters/save";
import { askPage } from "../problem";
import { Link, query, setQuery } from "../router";
import { formatNumber } from "../ui/format";
import { usePages, useResource } from "../ui/resource";
import { More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { CharacterChanges } from "./character-changes";

type Props = { partner: string; name: string };

function Compared({ partner, name, from, to }: Props & { from: number; to: number }) {
  const both = useResource(
    () => Promise.all([readVersion(partner, name, from), readVersion(partner, name, to)]),
    [partner, name, from, to],
  );
  return (
    <>
      <div class="toolbar">
        <h2>
          Changes from version {formatNumber(from)} to {formatNumber(to)}
        </h2>
        <button type="button" onClick={() => setQuery({ from: null, to: null })}>
          Close
        </button>
      </div>
      <Shown of={both}>{([before, after]) => <CharacterChanges before={before} after={after} />}</Shown>
    </>
  );
}

type ChoiceProps = { name: "from" | "to"; version: number; chosen: number | null };

/** Chooses one of the two versions that are compared. */
function Choice({ name, version, chosen }: ChoiceProps) {
  const label = `Compare ${name} version ${version}`;
  return <input type="radio" name={`compare-${name}`} checked={version === chosen} aria-label={label} title={label} onChange={() => setQuery({ [name]: String(version) })} />;
}

export function Versions({ partner, name, shown }: Props & { shown: number }) {
  const versions = usePages(
    (call, cursor) => {
      const params = { path: { partner, name }, query: { ...(cursor !== undefined && { cursor }) } };
      return askPage(api.GET("/api/characters/{partner}/{name}/versions", { ...call, params }));
    },
    [partner, name],
    { partner, kinds: ["character"], id: name },
  );
  const [from, to] = [versionOf(query.value.get("from")), versionOf(query.value.get("to"))];
  return (
    <>
      <h2>Versions</h2>
      <Shown of={versions}>
        {({ entries, next }) => (
          <>
            {entries.length > 1 && <p class="hint">Choose two to compare them.</p>}
            <Table label="Versions">
              <thead>
                <tr>
                  <th scope="col">Version</th>
                  <th scope="col">Created</th>
                  {entries.length > 1 && (
                    <>
                      <th scope="col">From</th>
                      <th scope="col">To</th>
                    </>
                  )}
                </tr>
              </thead>
              <tbody>
                {entries.map(({ version, updated_at }, place) => (
                  <tr key={version}>
                    <th scope="row">
                      <Link
                        to={address(CHARACTER, { partner, name }, { version: place === 0 ? null : String(version) })}
                        aria-current={version === shown ? "true" : undefined}
                      >
                        Version {formatNumber(version)}
                      </Link>
                    </th>
                    <td>
                      <Time at={updated_at} />
                    </td>
                    {entries.length > 1 && (
                      <>
                        <td>
                          <Choice name="from" version={version} chosen={from} />
                        </td>
                        <td>
                          <Choice name="to" version={version} chosen={to} />
                        </td>
                      </>
                    )}
                  </tr>
                ))}
              </tbody>
            </Table>
            <More next={next} isLoading={versions.isLoading.value} more={versions.more} />
          </>
        )}
      </Shown>
      {from !== null && to !== null && <Compared partner={partner} name={name} from={from} to={to} />}
    </>
  );
}
