// One character: its newest version or an older one, and the list of its versions.

import type { ComponentChildren } from "preact";

import { CALLS, CHARACTER, CHARACTERS, address } from "../addresses";
import { type Schemas, api, may } from "../api";
import { otherParameters, versionOf } from "../characters/parameters";
import { ask, askPage } from "../problem";
import { Link, query } from "../router";
import { Back } from "../ui/back";
import { formatNumber } from "../ui/format";
import { usePages, useResource } from "../ui/resource";
import { More, Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { Text, Value, Values } from "../ui/value";

type CharacterView = Schemas["CharacterView"];
type Parameters = Schemas["CharacterParameters"];
type Props = { partner: string; name: string };

/** A name and a value, if there is a value. */
function Entry({ name, of }: { name: string; of: unknown }) {
  if (of === null || of === undefined || of === "") return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <Value of={of} />
      </dd>
    </>
  );
}

function Section({ title, isShown, children }: { title: string; isShown: boolean; children: ComponentChildren }) {
  if (!isShown) return null;
  return (
    <>
      <h2>{title}</h2>
      {children}
    </>
  );
}

function Basics({ of: { version, updated_at, reference, parameters } }: { of: CharacterView }) {
  return (
    <dl>
      <dt>Version</dt>
      <dd>
        {formatNumber(version)}, <Time at={updated_at} />
      </dd>
      <dt>Reference</dt>
      <dd>
        <code>{reference}</code>
      </dd>
      <Entry name="Display name" of={parameters.name} />
      <Entry name="Calls itself" of={parameters.robot_name} />
      <Entry name="Calls the visitor" of={parameters.person_name} />
      <Entry name="Language" of={parameters.language} />
      <Entry name="Voice" of={parameters.voice} />
      <dt>Knowledge</dt>
      <dd>{parameters.rag_enabled ? (parameters.rag_index_required ?? "its own documents") : "not used"}</dd>
      <Entry name="When interrupted" of={parameters.interruption_message} />
      <Entry name="When a reply is late" of={parameters.patience_message} />
      <Entry name="A reply is late after" of={typeof parameters.patience_ms === "number" ? `${formatNumber(parameters.patience_ms)} ms` : null} />
      <Entry name="Before the conversation" of={parameters.conversation_prefix} />
    </dl>
  );
}

function Profile({ of }: { of: NonNullable<Parameters["profile_schema"]> }) {
  return (
    <Table label="Facts about the visitor">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Type</th>
          <th scope="col">Meaning</th>
        </tr>
      </thead>
      <tbody>
        {Object.entries(of).map(([name, { type, description }]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{type}</td>
            <td>{description ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Content({ of }: { of: CharacterView }) {
  const { greetings = [], documents = [], profile_schema: profile } = of.parameters;
  const others = otherParameters(of.parameters);
  return (
    <>
      <Basics of={of} />
      <h2>Personality</h2>
      <Text>{of.personality}</Text>
      <Section title="Greetings" isShown={greetings.length > 0}>
        <ul>
          {greetings.map((greeting, place) => (
            <li key={place} class="text" dir="auto">
              {greeting}
            </li>
          ))}
        </ul>
      </Section>
      <Section title="Documents" isShown={documents.length > 0}>
        {documents.map(({ title, text }, place) => (
          <details key={place}>
            <summary>{title}</summary>
            <Text>{text}</Text>
          </details>
        ))}
      </Section>
      <Section title="Facts about the visitor" isShown={Boolean(profile) && Object.keys(profile ?? {}).length > 0}>
        <Profile of={profile ?? {}} />
      </Section>
      <Section title="Other parameters" isShown={Object.keys(others).length > 0}>
        <Values of={others} />
      </Section>
    </>
  );
}

function Versions({ partner, name, shown }: Props & { shown: number }) {
  const versions = usePages(
    (call, cursor) => {
      const params = { path: { partner, name }, query: { ...(cursor !== undefined && { cursor }) } };
      return askPage(api.GET("/api/characters/{partner}/{name}/versions", { ...call, params }));
    },
    [partner, name],
    { partner, kinds: ["character"], id: name },
  );
  return (
    <Shown of={versions}>
      {({ entries, next }) => (
        <>
          <Table label="Versions">
            <thead>
              <tr>
                <th scope="col">Version</th>
                <th scope="col">Created</th>
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
                </tr>
              ))}
            </tbody>
          </Table>
          <More next={next} isLoading={versions.isLoading.value} more={versions.more} />
        </>
      )}
    </Shown>
  );
}

export function Character({ partner, name }: Props) {
  const version = versionOf(query.value.get("version"));
  const character = useResource(
    (call) => {
      const path = { partner, name };
      if (version === null) return ask(api.GET("/api/characters/{partner}/{name}", { ...call, params: { path } }));
      return ask(api.GET("/api/characters/{partner}/{name}/versions/{version}", { ...call, params: { path: { ...path, version } } }));
    },
    [partner, name, version],
    { partner, kinds: ["character"], id: name },
  );
  return (
    <>
      <Back to={address(CHARACTERS, { partner })}>All characters</Back>
      {may("calls") && (
        <p>
          <Link to={address(CALLS, { partner }, { character: name })}>Calls with this character</Link>
        </p>
      )}
      <Shown of={character}>{(found) => <Content of={found} />}</Shown>
      <h2>Versions</h2>
      <Versions partner={partner} name={name} shown={version ?? character.data.value?.version ?? 0} />
    </>
  );
}
