// The installation, for administrators: nodes, queues, models and settings.

import { api } from "../api";
import { ask } from "../problem";
import { query, setQuery } from "../router";
import { useRecent } from "../ui/recent";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Tabs } from "../ui/tabs";
import { Time } from "../ui/time";
import { NodeName } from "../system/node-name";
import { Models } from "./system-models";
import { Nodes } from "./system-nodes";
import { Queues } from "./system-queues";
import { Settings } from "./system-settings";

const TABS = ["nodes", "queues", "models", "settings"] as const;
type Tab = (typeof TABS)[number];
const TITLES: Record<Tab, string> = { nodes: "Nodes", queues: "Queues", models: "Models", settings: "Settings" };

const DATABASES = { sqlite: "SQLite", postgres: "PostgreSQL" };

function Panel({ tab }: { tab: Tab }) {
  if (tab === "queues") return <Queues />;
  if (tab === "models") return <Models />;
  if (tab === "settings") return <Settings />;
  return <Nodes />;
}

function Version() {
  const version = useRecent(useResource((call) => ask(api.GET("/api/system", call)), []));
  return (
    <Shown of={version}>
      {({ answered_by, at, version: number, revision, database, schema_version, uptime_seconds }) => (
        <dl class="facts">
          <div>
            <dt>Version</dt>
            <dd>
              {number} {revision && <code>{revision}</code>}
            </dd>
          </div>
          <div>
            <dt>Database</dt>
            <dd>
              {DATABASES[database]}, schema {schema_version}
            </dd>
          </div>
          <div>
            <dt>Node</dt>
            <dd>
              <NodeName>{answered_by.name}</NodeName>, started <Time at={new Date(Date.parse(at) - uptime_seconds * 1_000).toISOString()} />
            </dd>
          </div>
        </dl>
      )}
    </Shown>
  );
}

export function System(_: { partner: string }) {
  const tab = TABS.find((tab) => tab === query.value.get("view")) ?? "nodes";
  return (
    <div class="system">
      <Version />
      <Tabs
        label="System"
        tabs={TABS}
        titles={TITLES}
        current={tab}
        onSet={(view) => setQuery({ view: view === "nodes" ? null : view, text: null, changed: null })}
      >
        <Panel tab={tab} />
      </Tabs>
    </div>
  );
}
