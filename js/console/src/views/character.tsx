// One character: its newest version or an older one, a conversation with it, and the list of its versions.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { CALLS, CHARACTERS, CHARACTER_EDITOR, address } from "../addresses";
import { type Schemas, api, may } from "../api";
import { otherParameters, versionOf } from "../characters/parameters";
import { ask } from "../problem";
import { Link, navigate, query } from "../router";
import { Back } from "../ui/back";
import { formatMs, formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { lazy } from "../ui/lazy";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { Time } from "../ui/time";
import { Text, Value, Values } from "../ui/value";
import { DeleteCharacter, Restore } from "./character-dialogs";
import { Versions } from "./character-versions";
import { CallSaved } from "./talk-button";

const SavedPlayground = lazy(async () => (await import("./character-playground")).SavedPlayground);

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
      <Entry name="A reply is late after" of={typeof parameters.patience_ms === "number" ? formatMs(parameters.patience_ms) : null} />
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

/** Actions on the newest version, or on an older one. */
function Actions({ partner, name, of, version }: Props & { of: CharacterView; version: number | null }) {
  const opened = useSignal<"delete" | "restore" | null>(null);
  const close = () => (opened.value = null);
  return (
    <>
      <div class="actions">
        {may("calls") && (
          <>
            <Link to={address(CALLS, { partner }, { character: name })}>Calls with this character</Link>
            <CallSaved key={version} partner={partner} name={name} version={version} />
          </>
        )}
        {version === null ? (
          <>
            <button type="button" class="primary" onClick={() => navigate(address(CHARACTER_EDITOR, { partner, name }))}>
              <Icon name="pencil" /> Edit
            </button>
            <button type="button" onClick={() => (opened.value = "delete")}>
              <Icon name="trash-2" /> Delete…
            </button>
          </>
        ) : (
          <button type="button" onClick={() => (opened.value = "restore")}>
            <Icon name="undo-2" /> Restore this version…
          </button>
        )}
      </div>
      {opened.value === "delete" && <DeleteCharacter partner={partner} name={name} versions={of.version} onClose={close} />}
      {opened.value === "restore" && <Restore partner={partner} name={name} of={of} onClose={close} />}
    </>
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
  const isTalking = useSignal(false);
  return (
    <>
      <Back to={address(CHARACTERS, { partner })}>All characters</Back>
      <Shown of={character}>
        {(found) => (
          <>
            <Actions partner={partner} name={name} of={found} version={version} />
            <Content of={found} />
            {may("calls") && (
              <>
                <h2>Playground</h2>
                {isTalking.value ? (
                  <SavedPlayground partner={partner} of={found} isNewest={version === null} />
                ) : (
                  <button type="button" onClick={() => (isTalking.value = true)}>
                    <Icon name="play" /> Talk with {version === null ? "it" : "this version"}
                  </button>
                )}
              </>
            )}
          </>
        )}
      </Shown>
      <Versions partner={partner} name={name} shown={version ?? character.data.value?.version ?? 0} />
    </>
  );
}
