// The documents that a question should find, and how it is saved with them.

import { useSignal } from "@preact/signals";

import { type Schemas, api } from "../api";
import { DOCUMENT, address } from "../addresses";
import { FilterField } from "../knowledge/controls";
import { questionEdits } from "../knowledge/question-edits";
import type { Expected, QuestionAt } from "../knowledge/questions";
import { type Asked, questionBody } from "../knowledge/retrieval";
import { ask, toProblem } from "../problem";
import { Link, setQuery, useStays } from "../router";
import { formatNumber } from "../ui/format";
import { Form } from "../ui/form";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { notify } from "../ui/toasts";

/** The most documents that the API takes. */
const MAX_EXPECTED = 20;
/** Number of documents that are offered. */
const MAX_OFFERED = 8;

/** The expected documents, and the function that replaces them. */
export type Expecting = { expected: Expected; onExpect: (expected: Expected) => void };

const withDocument = (expected: Expected, id: string, name: string) => (expected.size < MAX_EXPECTED ? new Map([...expected, [id, name]]) : expected);

const withoutDocument = (expected: Expected, id: string) => new Map([...expected].filter(([known]) => known !== id));

type CheckProps = Expecting & { id: string; name: string; label: string };

/** Ticks a document of the results as expected. */
export function ExpectedCheck({ id, name, label, expected, onExpect }: CheckProps) {
  const isExpected = expected.has(id);
  const isFull = !isExpected && expected.size >= MAX_EXPECTED;
  return (
    <label class="inline expect" title={isFull ? `A question has at most ${MAX_EXPECTED} expected documents` : undefined}>
      <input
        type="checkbox"
        checked={isExpected}
        disabled={isFull}
        aria-label={label}
        onChange={() => onExpect(isExpected ? withoutDocument(expected, id) : withDocument(expected, id, name))}
      />
      Expected
    </label>
  );
}

type PickProps = Expecting & { partner: string; base: string };

/** Offers documents by their names, for those that a search does not find. */
function Pick({ partner, base, expected, onExpect }: PickProps) {
  const name = useSignal<string | null>(null);
  const found = useResource(
    async (call) => {
      if (name.peek() === null) return [];
      const params = { path: { partner, kb: base }, query: { q: name.peek() ?? "", limit: MAX_OFFERED } };
      return (await ask(api.GET("/api/document-list/{partner}/{kb}", { ...call, params }))).documents;
    },
    [partner, base, name.value],
  );
  if (expected.size >= MAX_EXPECTED) return <p class="hint">A question has at most {MAX_EXPECTED} expected documents.</p>;
  return (
    <div class="pick" role="search" aria-label="Find documents">
      <FilterField name="expected-name" label="Find another document by its name" value={name.value} onSet={(text) => (name.value = text)} />
      {name.value !== null && (
        <Shown of={found}>
          {(documents) =>
            documents.length === 0 ? (
              <p class="none">No document matches.</p>
            ) : (
              <ul class="chips">
                {documents
                  .filter(({ id }) => !expected.has(id))
                  .map(({ id, name, folder }) => (
                    <li key={id}>
                      <button type="button" onClick={() => onExpect(withDocument(expected, id, name))}>
                        <Icon name="plus" />
                        <span>
                          <bdi>{name}</bdi> <bdi class="hint">{folder}</bdi>
                        </span>
                      </button>
                    </li>
                  ))}
              </ul>
            )
          }
        </Shown>
      )}
    </div>
  );
}

type ChipsProps = Expecting & {
  partner: string;
  base: string;
  /** Ranks of the documents that were found. */
  ranks: ReadonlyMap<string, number>;
};

function Chips({ partner, base, expected, onExpect, ranks }: ChipsProps) {
  if (expected.size === 0) return <p class="none">Tick the documents above that answer the question, or find others here.</p>;
  return (
    <ul class="chips">
      {[...expected].map(([id, name]) => {
        const rank = ranks.get(id);
        return (
          <li key={id} class="chip">
            <Link to={address(DOCUMENT, { partner, name: base, id })}>
              <bdi>{name}</bdi>
            </Link>
            <span class={`state ${rank === undefined ? "down" : "ok"}`}>{rank === undefined ? "not found" : `document ${formatNumber(rank)}`}</span>
            <button type="button" class="bare" aria-label={`Do not expect ${name}`} onClick={() => onExpect(withoutDocument(expected, id))}>
              <Icon name="x" />
            </button>
          </li>
        );
      })}
    </ul>
  );
}

type Props = Expecting & {
  at: QuestionAt;
  asked: Asked;
  /** The saved question; null if there is none, or none any more. */
  saved: Schemas["QuestionView"] | null;
  /** True if saving would change something. */
  isChanged: boolean;
  /** Reads the saved question again. */
  onSaved: () => Promise<void>;
  ranks: ReadonlyMap<string, number>;
};

/** The expected documents of a question, and the button that saves it. */
export function ExpectedDocuments({ at, asked, saved, isChanged, expected, onExpect, onSaved, ranks }: Props) {
  const { partner, base } = at;
  const path = { partner, kb: base };
  const stays = useStays();
  const body = questionBody(asked, [...expected.keys()]);
  /** Ends the edit that was saved. Documents that were ticked meanwhile stay unsaved ones. */
  const settle = (sent: ReturnType<typeof questionEdits.peek>, made: Schemas["QuestionView"]) => {
    const now = questionEdits.peek(at);
    questionEdits.end(at);
    if (now && now !== sent) questionEdits.set({ ...now, at: { ...at, id: made.id, message: "" }, before: made });
  };
  const create = async () => {
    const sent = questionEdits.peek(at);
    const made = await ask(api.POST("/api/rag-questions/{partner}/{kb}", { params: { path }, body }));
    notify("The question is saved");
    settle(sent, made);
    if (stays.isOpen()) setQuery({ question: made.id });
  };
  const change = async (id: string) => {
    const sent = questionEdits.peek(at);
    const params = { path: { ...path, question_id: id } };
    try {
      const made = await ask(api.PUT("/api/rag-questions/{partner}/{kb}/{question_id}", { params, body }));
      notify("The question is changed");
      await onSaved();
      settle(sent, made);
    } catch (error) {
      // The page says that it was deleted, and offers to save it again.
      if (toProblem(error).status === 404) await onSaved();
      throw error;
    }
  };
  return (
    <section class="panel expected" aria-labelledby="expected">
      <h2 id="expected">Expected documents</h2>
      <Chips partner={partner} base={base} expected={expected} onExpect={onExpect} ranks={ranks} />
      <Pick partner={partner} base={base} expected={expected} onExpect={onExpect} />
      {saved && expected.size === 0 && <p class="hint">A saved question needs a document. Tick one, or delete the question.</p>}
      {expected.size > 0 && (!saved || isChanged) && (
        <Form action={saved ? "Save the changes" : "Save the question"} busy="Saving…" onSend={() => (saved ? change(saved.id) : create())} />
      )}
    </section>
  );
}
