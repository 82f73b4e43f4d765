// The usage of a partner, or of one quota: filters, chart, table and a CSV file.

import type { ComponentChildren } from "preact";

import { FOREGROUND, type Schemas, api } from "../api";
import { save } from "../documents/transfer";
import { counted } from "../knowledge/words";
import { ask } from "../problem";
import { query, setQuery } from "../router";
import {
  GROUPS, GROUP_NAMES, type Group, RANGES, RANGE_NAMES, type Range, type UsageFilter, groupChanges, rangeChanges, readUsageFilter, usageQuery,
} from "../usage/filter";
import { MEASURES, MEASURE_NAMES } from "../usage/measures";
import { type Chart, chartOf } from "../usage/series";
import { Action } from "../ui/action";
import { Filters } from "../ui/filters";
import { useKept } from "../ui/kept";
import { lazy } from "../ui/lazy";
import { Reload } from "../ui/reload";
import { type Call, type Resource, useResource } from "../ui/resource";
import { Empty, Shown } from "../ui/states";
import { UsageTable } from "./usage-table";

const UsageChart = lazy<{ of: Chart; measure: UsageFilter["measure"] }>(async () => (await import("../usage/chart")).UsageChart);

/** Whose usage: that of a quota, or of all quotas of a partner. */
export type Whose = { partner: string; quota?: string };
type Found = { report: Schemas["UsageReport"]; filter: UsageFilter };

/** A report has at most so many rows. */
const TOO_MANY = "group_by";

async function readReport(call: Call, { partner, quota }: Whose, filter: UsageFilter): Promise<Schemas["UsageReport"]> {
  const query = usageQuery(filter);
  const report = await (quota === undefined
    ? ask(api.GET("/api/usage/{partner}", { ...call, params: { path: { partner }, query } }))
    : ask(api.GET("/api/quotas/{partner}/{quota_id}/usage", { ...call, params: { path: { partner, quota_id: quota }, query } })));
  // A text is the CSV file, which was not asked for.
  return report as Schemas["UsageReport"];
}

async function saveCsv({ partner, quota }: Whose, filter: UsageFilter): Promise<void> {
  const query = usageQuery(filter);
  const call = { headers: { ...FOREGROUND, Accept: "text/csv" }, parseAs: "blob" } as const;
  const csv = await ask<Blob>(
    quota === undefined
      ? api.GET("/api/usage/{partner}", { ...call, params: { path: { partner }, query } })
      : api.GET("/api/quotas/{partner}/{quota_id}/usage", { ...call, params: { path: { partner, quota_id: quota }, query } }),
  );
  // Spreadsheets take the file for UTF-8 if it begins so.
  save(new Blob(["\ufeff", csv], { type: "text/csv" }), `usage-${quota ?? partner}-${filter.from}-${filter.to}.csv`);
}

type FiltersProps = { whose: Whose; groups: readonly Group[]; filter: UsageFilter; reloaded: Resource<Found> | null };

function UsageFilters({ whose, groups, filter, reloaded }: FiltersProps) {
  const changeDay = (name: "from" | "to") => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    if (value) setQuery({ range: null, from: filter.from, to: filter.to, [name]: value });
  };
  return (
    <>
      <Filters label="Filter the usage">
        <label>
          Days
          <select
            name="range"
            value={filter.range ?? "days"}
            onChange={({ currentTarget: { value } }) =>
              setQuery(value === "days" ? { range: null, from: filter.from, to: filter.to } : rangeChanges(value as Range))
            }
          >
            {RANGES.map((range) => (
              <option key={range} value={range}>
                {RANGE_NAMES[range]}
              </option>
            ))}
            <option value="days">from … to …</option>
          </select>
        </label>
        <label>
          From
          <input type="date" name="from" value={filter.from} max={filter.to} onChange={changeDay("from")} />
        </label>
        <label>
          Up to and including
          <input type="date" name="to" value={filter.to} min={filter.from} onChange={changeDay("to")} />
        </label>
        <label>
          Chart of
          <select name="measure" value={filter.measure} onChange={({ currentTarget: { value } }) => setQuery({ measure: value === "requests" ? null : value })}>
            {MEASURES.map((measure) => (
              <option key={measure} value={measure}>
                {MEASURE_NAMES[measure]}
              </option>
            ))}
          </select>
        </label>
        <label>
          Order of rows
          <select name="order" value={filter.isLargestFirst ? "largest" : ""} onChange={({ currentTarget: { value } }) => setQuery({ order: value })}>
            <option value="">by the columns</option>
            <option value="largest">largest first</option>
          </select>
        </label>
      </Filters>
      <div class="toolbar">
        <fieldset class="groups">
          <legend>A row for each</legend>
          {groups.map((group) => (
            <label key={group} class="inline">
              <input
                type="checkbox"
                name={`by-${group}`}
                checked={filter.groups.includes(group)}
                aria-disabled={filter.groups.join() === group}
                onChange={({ currentTarget }) => {
                  // The last one stays.
                  if (filter.groups.join() === group) currentTarget.checked = true;
                  setQuery(groupChanges(filter.groups, group));
                }}
              />
              {GROUP_NAMES[group]}
            </label>
          ))}
        </fieldset>
        <div class="actions">
          {reloaded && <Reload of={reloaded} />}
          <Action icon="download" label="Download CSV" busy="Downloading…" onRun={() => saveCsv(whose, filter)} />
        </div>
      </div>
    </>
  );
}

function Report({ partner, of: { report, filter } }: { partner: string; of: Found }) {
  const chart = chartOf(report.rows, filter);
  const hasDays = filter.groups.includes("day");
  return (
    <>
      {hasDays && chart.series.length === 0 && <p class="none">{MEASURE_NAMES[filter.measure]}: none on these days. The table has the other measures.</p>}
      {hasDays && chart.series.length > 0 && <UsageChart of={chart} measure={filter.measure} />}
      <p class="hint">{counted(report.rows.length, "row")}. Days begin at midnight UTC.</p>
      <UsageTable key={filter.groups.join()} partner={partner} report={report} filter={filter} />
    </>
  );
}

type ReportProps = {
  whose: Whose;
  /** Changes when the report is to be read again. Without it, the report has a button for that. */
  version?: number;
  /** The next step, shown where there is no usage. */
  children: ComponentChildren;
};

export function UsageReport({ whose, version, children }: ReportProps) {
  const { partner, quota } = whose;
  const groups = quota === undefined ? GROUPS : GROUPS.filter((group) => group !== "key");
  const filter = readUsageFilter(query.value, groups);
  const { from, to, groups: by } = filter;
  const usage = useResource<Found>(async (call) => ({ report: await readReport(call, whose, filter), filter }), [partner, quota, from, to, by.join(), version]);
  const kept = useKept(usage);
  return (
    <>
      <UsageFilters whose={whose} groups={groups} filter={filter} reloaded={version === undefined ? usage : null} />
      {usage.problem.value?.field === TOO_MANY ? (
        <Empty icon="triangle-alert" title="Too many rows">
          <p>Choose fewer days, or rows for less. The CSV file has all rows.</p>
        </Empty>
      ) : (
        <Shown of={kept}>
          {({ report, filter: read }) =>
            report.rows.length === 0 ? (
              <Empty icon="chart-column" title="No usage on these days">
                {children}
              </Empty>
            ) : (
              <Report partner={partner} of={{ report, filter: { ...filter, from: read.from, to: read.to, groups: read.groups } }} />
            )
          }
        </Shown>
      )}
    </>
  );
}
