// The effective settings of the node that answers, with their origin.

import { type Schemas, api } from "../api";
import { ask } from "../problem";
import { query, setQuery } from "../router";
import { Filters } from "../ui/filters";
import { formatNumber } from "../ui/format";
import { AsOf, useRecent } from "../ui/recent";
import { useResource } from "../ui/resource";
import { Empty, Shown, Table } from "../ui/states";

type Setting = Schemas["SystemSetting"];

const ORIGINS: Record<string, string> = { server: "chosen by the server" };

const written = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

function Shows({ of: { value, is_secret, is_set } }: { of: Setting }) {
  if (!is_set) return <span class="none">not set</span>;
  return is_secret ? <span class="state plain">set</span> : <code>{written(value)}</code>;
}

function Row({ of }: { of: Setting }) {
  const { key, default: otherwise, is_changed, is_secret, origin, variable } = of;
  return (
    <tr>
      <th scope="row" class="key">
        <code>{key}</code>
        {is_changed && <span class="hint"> changed</span>}
      </th>
      <td class="setting">
        <Shows of={of} />
      </td>
      <td class="setting">{is_secret || otherwise === null || otherwise === undefined ? <span class="none">not set</span> : <code>{written(otherwise)}</code>}</td>
      <td>{variable ? <code>{variable}</code> : (ORIGINS[origin] ?? origin)}</td>
    </tr>
  );
}

/** Returns the settings that a text and the choice "changed only" leave. Secrets are found by their keys alone: they have no value here. */
export function filterSettings(settings: Setting[], text: string, isChangedOnly: boolean): Setting[] {
  const wanted = text.trim().toLowerCase();
  const has = (part: unknown) => written(part ?? "").toLowerCase().includes(wanted);
  return settings.filter((setting) => (setting.is_changed || !isChangedOnly) && [setting.key, setting.value, setting.variable].some(has));
}

export function Settings() {
  const settings = useRecent(useResource((call) => ask(api.GET("/api/system/settings", call)), []));
  const text = query.value.get("text") ?? "";
  const isChangedOnly = query.value.get("changed") === "only";
  return (
    <Shown of={settings}>
      {({ answered_by, at, file, settings: all }) => {
        const shown = filterSettings(all, text, isChangedOnly);
        return (
          <>
            <AsOf at={at} node={answered_by.name} of={settings} />
            <p class="hint">{file ? <>Settings file: <code>{file}</code></> : "The node has no settings file."}</p>
            <Filters label="Settings">
              <label>
                Key or value
                <input type="search" name="text" value={text} onInput={(event) => setQuery({ text: event.currentTarget.value || null })} />
              </label>
              <label class="inline">
                <input
                  type="checkbox"
                  name="changed"
                  checked={isChangedOnly}
                  onChange={(event) => setQuery({ changed: event.currentTarget.checked ? "only" : null })}
                />
                Changed only
              </label>
            </Filters>
            <p role="status">
              {formatNumber(shown.length)} of {formatNumber(all.length)} settings
            </p>
            {shown.length === 0 ? (
              <Empty icon="sliders-horizontal" title="No setting matches" />
            ) : (
              <Table label="Settings">
                <thead>
                  <tr>
                    <th scope="col">Setting</th>
                    <th scope="col">Value</th>
                    <th scope="col">Default</th>
                    <th scope="col">Origin</th>
                  </tr>
                </thead>
                <tbody>
                  {shown.map((setting) => (
                    <Row key={setting.key} of={setting} />
                  ))}
                </tbody>
              </Table>
            )}
          </>
        );
      }}
    </Shown>
  );
}
