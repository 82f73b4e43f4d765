// An editor for characters. What is typed is checked as saving would check it; what others saved meanwhile is not overwritten unasked.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { CHARACTER, CHARACTERS, CHARACTER_EDITOR, address } from "../addresses";
import { api, may } from "../api";
import { useCheck } from "../characters/check";
import { type Draft, EMPTY, contentOf, draftOf, repeatedFacts, textOf } from "../characters/draft";
import { type CharacterEdit, characterEdits } from "../characters/edits";
import { otherParameters } from "../characters/parameters";
import { type CharacterView, create, update } from "../characters/save";
import { counted } from "../knowledge/words";
import { type Problem, ask, toProblem } from "../problem";
import { navigate } from "../router";
import { Back } from "../ui/back";
import { Field } from "../ui/field";
import { formatNumber } from "../ui/format";
import { lazy } from "../ui/lazy";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Tabs } from "../ui/tabs";
import { notify } from "../ui/toasts";
import { Values } from "../ui/value";
import { Conflict } from "./character-conflict";
import { Basics, Conversation, type DraftForm, Facts, Greetings, Personality, Section, errorsOf } from "./character-form";
import { Knowledge } from "./character-knowledge";
import { Preview } from "./character-preview";
import { Voice } from "./character-voice";
import { Discard } from "./discard";

const Playground = lazy(async () => (await import("./playground")).Playground);

const TABS = ["preview", "playground"] as const;
type Tab = (typeof TABS)[number];
const TITLES: Record<Tab, string> = { preview: "Preview", playground: "Playground" };

function Name({ form }: { form: DraftForm }) {
  return (
    <Field label="Name" hint="1 to 64 letters, digits, -, _ and .; it cannot be changed later." errors={errorsOf(form, "name")}>
      {(control) => (
        <input {...control} name="id" autocomplete="off" spellcheck={false} value={form.draft.name} onInput={(event) => form.set({ ...form.draft, name: event.currentTarget.value })} />
      )}
    </Field>
  );
}

function Others({ draft }: { draft: Draft }) {
  const others = otherParameters(draft.parameters);
  if (Object.keys(others).length === 0) return null;
  return (
    <Section title="Other parameters" hint="Templates can print these. They are saved as they are; the API changes them.">
      <Values of={others} />
    </Section>
  );
}

type EditorProps = {
  edit: CharacterEdit;
  /** The newest version; null if there is none. */
  newest: CharacterView | null;
  /** Reads the newest version again and returns it; null if there is none. Throws if it cannot be read. */
  reload: () => Promise<CharacterView | null>;
};

function Editor({ edit, newest, reload }: EditorProps) {
  const { at, before, draft, values } = edit;
  const { partner, name } = at;
  const isBusy = useSignal(false);
  const error = useSignal("");
  const isDiscarding = useSignal(false);
  const tab = useSignal<Tab>("preview");
  // The playground keeps its conversation once it was opened.
  const hasPlayground = useSignal(false);
  const checking = useCheck(partner, { draft, values });
  const content = useMemo(() => contentOf(draft), [draft]);
  const hasChanges = characterEdits.isChanged(edit);
  const isConflict = before !== null && newest?.version !== before.version;
  const extra = [
    ...(name === null && draft.name === "" ? ["The name is missing."] : []),
    ...repeatedFacts(draft).map((fact) => `Facts about the visitor: the name “${fact}” is used twice.`),
  ];
  const rendered = checking.result.value?.rendered;
  const greeting = rendered?.greetings[0] ?? "";
  const problemCount = extra.length + (checking.result.value?.problems.length ?? 0);

  const set = (changed: Partial<CharacterEdit>) => {
    error.value = "";
    const now = characterEdits.peek(at);
    characterEdits.set({ ...(now?.before?.version === before?.version ? (now ?? edit) : edit), ...changed });
  };
  const form: DraftForm = { partner, draft, problems: checking.result.value?.problems ?? [], set: (changed) => set({ draft: changed }) };
  const isShown = useRef(true);
  useEffect(
    () => () => {
      isShown.current = false;
    },
    [],
  );
  const leave = (to: string) => {
    characterEdits.end(at);
    if (isShown.current) navigate(to);
  };
  /** Leaves the editor, unless something was typed while the character was saved: that stays, as a change of the saved version. */
  const settle = async (sent: Draft, { name: savedAs, version }: CharacterView) => {
    const now = characterEdits.peek(at);
    if (!now || now.draft === sent) return leave(pageOf(savedAs));
    characterEdits.end(at);
    characterEdits.set({ ...now, at: { partner, name: savedAs }, before: { version, draft: sent } });
    // A version that cannot be read shows itself as a notice.
    if (name !== null) await reload().catch(() => {});
    else if (isShown.current) navigate(address(CHARACTER_EDITOR, { partner, name: savedAs }));
  };
  const pageOf = (saved: string) => address(CHARACTER, { partner, name: saved });
  /** Returns the words for an error. None are needed once another version is shown than the edit began with: it says what to do. */
  const explain = async ({ status, field, message }: Problem) => {
    const words = field ? `${field}: ${message}` : message;
    if (name === null || ![404, 409].includes(status)) return words;
    try {
      return (await reload())?.version === before?.version ? words : "";
    } catch (unread) {
      return `${words} The newest version could not be read: ${toProblem(unread).message}`;
    }
  };
  const save = async (write: () => Promise<CharacterView>) => {
    if (isBusy.value) return;
    if (extra.length > 0) {
      error.value = extra.join(" ");
      return;
    }
    [isBusy.value, error.value] = [true, ""];
    try {
      const saved = await write();
      notify(`${saved.name} is saved as version ${formatNumber(saved.version)}`);
      await settle(draft, saved);
    } catch (thrown) {
      error.value = await explain(toProblem(thrown));
    }
    isBusy.value = false;
  };
  const canSave = (hasChanges || name === null) && !isConflict && extra.length === 0 && !isBusy.value;
  const submit = () => {
    if (isConflict) error.value = "Somebody else changed the character: choose above which one stays.";
    else if (hasChanges || name === null) void save(() => (name === null || !before ? create(partner, draft) : update(partner, name, draft, before.version)));
  };
  const overwrite = () => void save(() => (newest && name !== null ? update(partner, name, draft, newest.version) : create(partner, { ...draft, name: name ?? draft.name })));
  const press = (event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    submit();
  };
  const back = name === null ? address(CHARACTERS, { partner }) : newest ? pageOf(name) : address(CHARACTERS, { partner });
  return (
    <>
      {isConflict && before && (
        <Conflict before={before.version} newest={newest} draft={draft} isBusy={isBusy.value} onOverwrite={overwrite} onDiscard={() => leave(back)} />
      )}
      <div class="character-editor" onKeyDown={press}>
        <div class="character-fields">
          {name === null && <Name form={form} />}
          <Personality form={form} />
          <Basics form={form} />
          <Voice form={form} greeting={greeting} />
          <Greetings form={form} />
          <Conversation form={form} />
          <Knowledge form={form} />
          <Facts form={form} />
          <Others draft={draft} />
        </div>
        <section class="beside" aria-label="Preview and playground">
          {may("calls") ? (
            <Tabs
              label="Preview and playground"
              tabs={TABS}
              titles={TITLES}
              current={tab.value}
              onSet={(chosen) => {
                tab.value = chosen;
                if (chosen === "playground") hasPlayground.value = true;
              }}
            >
              <div hidden={tab.value !== "preview"}>
                <Preview checking={checking} extra={extra} values={values} onValues={(changed) => set({ values: changed })} />
              </div>
              {hasPlayground.value && (
                <div hidden={tab.value !== "playground"}>
                  <Playground partner={partner} name={textOf(draft, "name") || textOf(draft, "robot_name") || draft.name || "Character"} content={content} values={values} greeting={greeting} />
                </div>
              )}
            </Tabs>
          ) : (
            <div tabIndex={0} role="region" aria-label="Preview">
              <Preview checking={checking} extra={extra} values={values} onValues={(changed) => set({ values: changed })} />
            </div>
          )}
        </section>
      </div>
      <div class="save-bar">
        <p class="error" role="alert">
          {error.value}
        </p>
        {problemCount > 0 && <span class="hint">{counted(problemCount, "problem")}</span>}
        <button type="button" onClick={() => (hasChanges ? (isDiscarding.value = true) : leave(back))}>
          {hasChanges ? "Discard" : "Cancel"}
        </button>
        <button type="button" class="primary" aria-disabled={!canSave} onClick={submit}>
          {isBusy.value ? "Saving…" : name === null ? "Create" : "Save"}
        </button>
      </div>
      {isDiscarding.value && <Discard what="The character" isNew={name === null} onDiscard={() => leave(back)} onClose={() => (isDiscarding.value = false)} />}
    </>
  );
}

export function EditCharacter({ partner, name }: { partner: string; name: string }) {
  const at = { partner, name };
  const newest = useResource(
    (call) => ask(api.GET("/api/characters/{partner}/{name}", { ...call, params: { path: { partner, name } } })),
    [partner, name],
    { partner, kinds: ["character"], id: name },
  );
  const found = newest.data.value;
  const stored = characterEdits.of(at);
  // One that changes nothing gives way to a newer version.
  const kept = stored && (characterEdits.isChanged(stored) || !found || stored.before?.version === found.version) ? stored : undefined;
  // The version that the form began with, so that a newer one does not replace it before something is typed.
  const began = useRef<CharacterEdit | null>(null);
  if (found && !kept && began.current?.before?.version !== found.version) {
    const draft = draftOf(name, found);
    began.current = { at, before: { version: found.version, draft }, draft, values: {} };
  }
  const edit = kept ?? began.current;
  const isGone = newest.problem.value?.status === 404;
  const reload = async () => {
    await newest.reload();
    const problem = newest.problem.peek();
    if (problem && problem.status !== 404) throw problem;
    return problem ? null : (newest.data.peek() ?? null);
  };
  return (
    <>
      <Back to={address(CHARACTER, { partner, name })}>{`Character ${name}`}</Back>
      {edit && (found || isGone) ? (
        <Editor edit={edit} newest={isGone ? null : (found ?? null)} reload={reload} />
      ) : (
        <Shown of={newest}>{() => null}</Shown>
      )}
    </>
  );
}

export function NewCharacter({ partner }: { partner: string }) {
  const at = { partner, name: null };
  const fresh = useMemo<CharacterEdit>(() => ({ at, before: null, draft: EMPTY, values: {} }), [partner]);
  return (
    <>
      <Back to={address(CHARACTERS, { partner })}>All characters</Back>
      <Editor edit={characterEdits.of(at) ?? fresh} newest={null} reload={async () => null} />
    </>
  );
}
