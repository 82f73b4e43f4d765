// The audit log: who changed what, and when; newest first.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { AUDIT, address } from "../addresses";
import { api, may } from "../api";
import { type AuditFilter, NO_FILTER, auditQuery, isFiltered, readFilter } from "../audit/filter";
import { ACTIONS, type Change, actionWords, authorOf, homeOf, outcomeOf, shortSubject } from "../audit/words";
import { askPage } from "../problem";
import { Link, path, query, setQuery } from "../router";
import { DaysFilter, Filters } from "../ui/filters";
import { Reload } from "../ui/reload";
import { usePages } from "../ui/resource";
import { Explained } from "../ui/explained";
import { Rows } from "../ui/rows";
import { Empty, More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";

/** A text that counts when the field is left, and on Enter. */
function TextFilter({ label, name, value }: { label: string; name: string; value: string | null }) {
  const typed = useSignal(value ?? "");
  useEffect(() => {
    typed.value = value ?? "";
  }, [value]);
  const set = (event: { currentTarget: HTMLInputElement }) => setQuery({ [name]: event.currentTarget.value.trim() });
  return (
    <label>
      {label}
      <input
        name={name}
        autocomplete="off"
        placeholder="any"
        value={typed.value}
        onInput={(event) => (typed.value = event.currentTarget.value)}
        onChange={set}
        onKeyDown={(event) => event.key === "Enter" && set(event)}
      />
    </label>
  );
}

function AuditFilters({ filter }: { filter: AuditFilter }) {
  return (
    <Filters label="Filter the changes">
      <label>
        Change
        <select name="action" value={filter.action ?? ""} onChange={(event) => setQuery({ action: event.currentTarget.value })}>
          <option value="">any</option>
          {Object.entries(ACTIONS).map(([action, words]) => (
            <option key={action} value={action}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <TextFilter label="Id of the key" name="key" value={filter.key} />
      <TextFilter label="Name or id" name="subject" value={filter.subject} />
      <DaysFilter from={filter.from} to={filter.to} onSet={setQuery} />
      {isFiltered(filter) && (
        <button type="button" onClick={() => setQuery(NO_FILTER)}>
          Show all
        </button>
      )}
    </Filters>
  );
}

const CREDENTIALS: Record<Change["credential"], string> = { key: "", session: "in the console", quota: "with the key of a quota" };

function Who({ of }: { of: Change }) {
  const { key_id: id } = of;
  const sameKey = new URLSearchParams(query.value);
  if (id) sameKey.set("key", id);
  const details = [of.is_admin && of.key_id && "administrator", CREDENTIALS[of.credential]].filter(Boolean).join(", ");
  return (
    <>
      {id ? (
        <Link to={`${path.value}?${sameKey}`}>
          <bdi>{authorOf(of)}</bdi>
        </Link>
      ) : (
        authorOf(of)
      )}
      {details && <p class="reason warning">{details}</p>}
    </>
  );
}

function What({ of }: { of: Change }) {
  const { subject, parameters } = of;
  const home = homeOf(of);
  const base = of.resource === "base" ? undefined : parameters["kb"];
  const shown = subject && <bdi title={subject}>{shortSubject(subject)}</bdi>;
  return (
    <>
      {actionWords(of)} {home && may(home.scope) ? <Link to={home.to}>{shown}</Link> : shown}
      {base && (
        <p class="reason warning">
          in <bdi>{base}</bdi>
        </p>
      )}
    </>
  );
}

function Result({ of }: { of: Change }) {
  const outcome = outcomeOf(of);
  if (outcome === "done") return <>done</>;
  if (outcome === "failed") return <span class="state down">failed ({of.status})</span>;
  return (
    <span class="state">
      <Explained as="The request still runs, or the server or the client went away before it ended">unknown</Explained>
    </span>
  );
}

function Row({ of, hasPartner }: { of: Change; hasPartner: boolean }) {
  return (
    <tr>
      <td>
        <Time at={of.at} />
      </td>
      <td>
        <Who of={of} />
      </td>
      <td>
        <What of={of} />
      </td>
      {hasPartner && <td>{of.partner ? <Link to={address(AUDIT, { partner: of.partner })}>{of.partner}</Link> : <span class="none">—</span>}</td>}
      <td>
        <Result of={of} />
      </td>
    </tr>
  );
}

function Nothing({ filter }: { filter: AuditFilter }) {
  return isFiltered(filter) ? (
    <Empty icon="search" title="No change matches">
      <p>Change the filters above, or show all changes.</p>
    </Empty>
  ) : (
    <Empty icon="history" title="No changes yet">
      <p>Changes of keys, quotas, characters, knowledge bases and voices appear here, with who made them.</p>
    </Empty>
  );
}

/** The changes of a partner, or of all. */
function Changes({ partner }: { partner: string | null }) {
  const filter = readFilter(query.value);
  const changes = usePages(
    (call, cursor) => {
      const asked = { ...auditQuery(filter), ...(cursor !== undefined && { cursor }) };
      return askPage(
        partner === null
          ? api.GET("/api/audit", { ...call, params: { query: asked } })
          : api.GET("/api/audit/{partner}", { ...call, params: { path: { partner }, query: asked } }),
      );
    },
    [partner, ...Object.values(filter)],
  );
  return (
    <>
      <div class="toolbar">
        <AuditFilters filter={filter} />
        <Reload of={changes} />
      </div>
      <Shown of={changes}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Nothing filter={filter} />
          ) : (
            <>
              <Table label="Changes">
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Who</th>
                    <th scope="col">Change</th>
                    {partner === null && <th scope="col">Partner</th>}
                    <th scope="col">Result</th>
                  </tr>
                </thead>
                <Rows of={entries} hasMore={next !== null} onView={changes.view}>
                  {(change) => <Row key={change.id} of={change} hasPartner={partner === null} />}
                </Rows>
              </Table>
              <More next={next} isLoading={changes.isLoading.value} more={changes.more} isEndless={!changes.problem.value} />
            </>
          )
        }
      </Shown>
    </>
  );
}

export const Audit = ({ partner }: { partner: string }) => <Changes partner={partner} />;

export const AuditOfAll = () => <Changes partner={null} />;
