// The first view of an operator: what goes on, what went wrong lately, and the health of the server.

import { type Schemas, api, may, sessions } from "../api";
import { Problem, problemOf } from "../problem";
import { formatBytes, formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { lazy } from "../ui/lazy";
import { type Call, useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { CallsInState, FailedDeliveries } from "./overview-calls";
import { UnfinishedKnowledge } from "./overview-knowledge";

const Spend = lazy(async () => (await import("./overview-spend")).Spend);
const SpendOfAll = lazy(async () => (await import("./overview-spend")).SpendOfAll);

type Report = Schemas["DeepReport"];
type Health = { report: Report; at: string };

const SUMMARY: Record<string, string> = {
  ok: "All parts work.",
  degraded: "Some parts are degraded.",
  down: "Some parts do not answer.",
};

/** Explanations of `missing_protection`. */
const PROTECTIONS: Record<string, string> = {
  confinement: "No process can be confined, so no file is decoded.",
  seccomp: "Decoding processes are not restricted to the system calls that they need (seccomp).",
  landlock: "Decoding processes are not restricted to their files (Landlock).",
  landlock_tcp: "Decoding processes are not kept from the network by Landlock.",
};

/** Reads the report, which comes with 503 if a part is down. */
async function readHealth(call: Call): Promise<Health> {
  const answer = await api.GET("/health/deep", call).catch((error: unknown) => {
    throw error instanceof Problem ? error : new Problem(0, "unreachable", "The server cannot be reached.");
  });
  const report = (answer.data ?? answer.error) as Partial<Report> | undefined;
  if (!report?.checks) throw problemOf(answer);
  return { report: report as Report, at: new Date().toISOString() };
}

function Checks({ label, checks }: { label: string; checks: Report["checks"] }) {
  return (
    <Table label={label}>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">State</th>
          <th scope="col">Model</th>
          <th scope="col" class="number">
            Answered in
          </th>
          <th scope="col">What to do</th>
        </tr>
      </thead>
      <tbody>
        {Object.entries(checks).map(([name, check]) => (
          <tr key={name}>
            <th scope="row">{name.replaceAll("_", " ")}</th>
            <td>
              <span class={`state ${check.state}`}>{check.state}</span>
            </td>
            <td>{check.model ?? ""}</td>
            <td class="number">{formatNumber(check.time_ms)} ms</td>
            <td>{check.warning ?? (check.state === "down" ? "The log of the server has the reason." : "")}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function HealthReport({ report }: { report: Report }) {
  const { status, checks, models, memory, missing_protection: missing } = report;
  return (
    <>
      <p>
        <span class={`state ${status}`}>{status}</span> {SUMMARY[status] ?? ""}
      </p>
      <Checks label="Parts of the server" checks={checks} />
      {Object.keys(models).length > 0 && (
        <>
          <h3>Models of text generation</h3>
          <Checks label="Models of text generation" checks={models} />
        </>
      )}
      {missing.length > 0 && (
        <>
          <h3>Missing protection</h3>
          <ul>
            {missing.map((name) => (
              <li key={name}>{PROTECTIONS[name] ?? name}</li>
            ))}
          </ul>
        </>
      )}
      {typeof memory.resident_bytes === "number" && <p>Memory of the server: {formatBytes(memory.resident_bytes)}</p>}
    </>
  );
}

function HealthSection() {
  const health = useResource(readHealth, []);
  const isLoading = health.isLoading.value;
  return (
    <section aria-labelledby="health">
      <h2 id="health">Health</h2>
      <Shown of={health}>
        {({ report, at }) => (
          <>
            <div class="actions">
              <span class="hint">
                Checked <Time at={at} />
              </span>
              <button type="button" aria-disabled={isLoading} onClick={() => !isLoading && void health.reload()}>
                <Icon name="refresh-cw" /> {isLoading ? "Checking…" : "Check again"}
              </button>
            </div>
            <HealthReport report={report} />
          </>
        )}
      </Shown>
    </section>
  );
}

/** The sections of a partner, as far as the scopes of the session allow. */
function PartnerSections({ partner }: { partner: string }) {
  if (!may("calls") && !may("knowledge") && !may("webhooks") && !may("keys")) return <p>Choose a view in the menu.</p>;
  return (
    <>
      {may("calls") && <CallsInState partner={partner} title="Calls in progress" state="ongoing" none="Nobody is calling." />}
      {may("calls") && <CallsInState partner={partner} title="Calls of the last 7 days that failed" state="error" none="None." isRecent />}
      {may("webhooks") && <FailedDeliveries partner={partner} />}
      {(may("keys") || may("knowledge")) && <Spend partner={partner} />}
      {may("knowledge") && <UnfinishedKnowledge partner={partner} />}
    </>
  );
}

export function Overview({ partner }: { partner: string }) {
  return (
    <>
      {partner !== "" && <PartnerSections partner={partner} />}
      {sessions.current.value?.isAdmin === true && <SpendOfAll />}
      {sessions.current.value?.isAdmin === true && <HealthSection />}
    </>
  );
}
