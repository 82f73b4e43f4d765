// The documents that a question should find, and how it is saved with them.

import { type Signal, useSignal } from "@preact/signals";

import { type Schemas, api } from "../api";
import { DOCUMENT, address } from "../addresses";
import { FilterField } from "../knowledge/controls";
import { type Asked, questionBody } from "../knowledge/retrieval";
import { ask } from "../problem";
import { Link, setQuery } from "../router";
import { formatNumber } from "../ui/format";
import { Form } from "../ui/form";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { notify } from "../ui/toasts";

/** Names of documents by their ids. */
export type Expected = ReadonlyMap<string, string>;

/** The most documents that the API takes. */
const MAX_EXPECTED = 20;
/** How many documents are offered. */
const MAX_OFFERED = 8;

function add(expected: Signal<Expected>, id: string, name: string): void {
  if (expected.value.size < MAX_EXPECTED) expected.value = new Map([...expected.value, [id, name]]);
}

function remove(expected: Signal<Expected>, id: string): void {
  expected.value = new Map([...expected.value].filter(([known]) => known !== id));
}

type CheckProps = { id: string; name: string; label: string; expected: Signal<Expected> };

/** Ticks a document of the results as expected. */
export function ExpectedCheck({ id, name, label, expected }: CheckProps) {
  const isExpected = expected.value.has(id);
  return (
    <label class="inline expect">
      <input
        type="checkbox"
        checked={isExpected}
        disabled={!isExpected && expected.value.size >= MAX_EXPECTED}
        aria-label={label}
        onChange={() => (isExpected ? remove(expected, id) : add(expected, id, name))}
      />
      Expected
    </label>
  );
}

type PickProps = { partner: string; base: string; expected: Signal<Expected> };

/** Offers documents by their names, for those that a search does not find. */
function Pick({ partner, base, expected }: PickProps) {
  const name = useSignal<string | null>(null);
  const found = useResource(
    async (call) => {
      if (name.peek() === null) return [];
      const params = { path: { partner, kb: base }, query: { q: name.peek() ?? "", limit: MAX_OFFERED } };
      return (await ask(api.GET("/api/document-list/{partner}/{kb}", { ...call, params }))).documents;
    },
    [partner, base, name.value],
  );
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
                  .filter(({ id }) => !expected.value.has(id))
                  .map(({ id, name, folder }) => (
                    <li key={id}>
                      <button type="button" onClick={() => add(expected, id, name)}>
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

type Props = {
  partner: string;
  base: string;
  asked: Asked;
  saved: Schemas["QuestionView"] | null;
  expected: Signal<Expected>;
  /** Ranks of the documents that were found. */
  ranks: ReadonlyMap<string, number>;
};

function Chips({ partner, base, expected, ranks }: Omit<Props, "asked" | "saved">) {
  if (expected.value.size === 0) return <p class="none">Tick the documents above that answer the question, or find others here.</p>;
  return (
    <ul class="chips">
      {[...expected.value].map(([id, name]) => {
        const rank = ranks.get(id);
        return (
          <li key={id} class="chip">
            <Link to={address(DOCUMENT, { partner, name: base, id })}>
              <bdi>{name}</bdi>
            </Link>
            <span class={`state ${rank === undefined ? "down" : "ok"}`}>{rank === undefined ? "not found" : `document ${formatNumber(rank)}`}</span>
            <button type="button" class="bare" aria-label={`Do not expect ${name}`} onClick={() => remove(expected, id)}>
              <Icon name="x" />
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** The expected documents of a question, and the buttons that save it. */
export function ExpectedDocuments({ partner, base, asked, saved, expected, ranks }: Props) {
  const path = { partner, kb: base };
  const count = expected.value.size;
  const create = async () => {
    const body = questionBody(asked, [...expected.value.keys()]);
    const made = await ask(api.POST("/api/rag-questions/{partner}/{kb}", { params: { path }, body }));
    notify("The question is saved");
    setQuery({ question: made.id });
  };
  const change = async (id: string) => {
    const body = questionBody(asked, [...expected.value.keys()]);
    const params = { path: { ...path, question_id: id } };
    await ask(api.PUT("/api/rag-questions/{partner}/{kb}/{question_id}", { params, body }));
    notify("The question is changed");
  };
  return (
    <section class="panel expected" aria-labelledby="expected">
      <h2 id="expected">Expected documents</h2>
      <Chips partner={partner} base={base} expected={expected} ranks={ranks} />
      <Pick partner={partner} base={base} expected={expected} />
      {count > 0 && (
        <Form action={saved ? "Save the changes" : "Save the question"} busy="Saving…" onSend={() => (saved ? change(saved.id) : create())} />
      )}
    </section>
  );
}
