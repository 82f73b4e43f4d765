// A search in a knowledge base: the question, what was found and how, and the documents that it should find.

import { useSignal } from "@preact/signals";

import { type Schemas, api } from "../api";
import { type Asked, askedOf, askedParameters, documentRanks, isShareable, readAsked, searchBody } from "../knowledge/retrieval";
import { ask } from "../problem";
import { query, setQuery } from "../router";
import { Icon } from "../ui/icon";
import { useKept } from "../ui/kept";
import { useResource } from "../ui/resource";
import { Empty, Shown } from "../ui/states";
import { type Expected, ExpectedDocuments } from "./retrieval-expected";
import { QuestionForm } from "./retrieval-form";
import { Results } from "./retrieval-results";

type Props = { partner: string; base: string };
type Saved = Schemas["QuestionView"];

/** Searches for a question; null without one. */
function useSearch(partner: string, base: string, asked: Asked | null) {
  return useResource<Schemas["SearchView"] | null>(
    async (call) => asked && (await ask(api.POST("/api/rag-test/search", { ...call, body: searchBody(partner, base, asked) }))),
    [partner, base, JSON.stringify(asked)],
  );
}

/** Reads the saved question that the address names; null if it names none. */
function useSaved(partner: string, base: string, id: string | null) {
  return useResource<Saved | null>(
    async (call) => {
      if (id === null) return null;
      const params = { path: { partner, kb: base, question_id: id } };
      return ask(api.GET("/api/rag-questions/{partner}/{kb}/{question_id}", { ...call, params }));
    },
    [partner, base, id],
  );
}

const expectedOf = (saved: Saved | null): Expected => new Map(saved?.expected_documents.map((it) => [it.document_id, it.document_name]));

type OpenProps = Props & { saved: Saved | null };

/** The search with the saved question that is open, if one is. */
function Open({ partner, base, saved }: OpenProps) {
  // A question that the address does not hold: the saved one as it is, or one that is too long.
  const own = useSignal<Asked | null>(saved && readAsked(query.peek()) === null ? askedOf(saved, {}) : null);
  const asked = own.value ?? readAsked(query.value);
  const search = useSearch(partner, base, asked);
  const shown = useKept(search);
  const expected = useSignal<Expected>(expectedOf(saved));

  const run = async (next: Asked) => {
    const isSame = JSON.stringify(next) === JSON.stringify(asked);
    const fits = isShareable(next);
    own.value = fits ? null : next;
    // What answers another question is for the user to say.
    if (!saved && next.message !== asked?.message) expected.value = new Map();
    setQuery(askedParameters(fits ? next : null));
    if (isSame) await search.reload();
  };
  const close = () => setQuery({ ...askedParameters(null), question: null });
  return (
    <>
      {saved && (
        <p class="notice plain">
          <span>This question is saved. Changes of it, or of its documents, count once they are saved, too.</span>
          <button type="button" onClick={close}>
            <Icon name="plus" /> New question
          </button>
        </p>
      )}
      <QuestionForm of={asked} onAsk={run} />
      {own.value && !isShareable(own.value) && (
        <p class="hint">The question is too long for the address of this page, so a link to the page does not have it.</p>
      )}
      {asked === null ? (
        <Empty icon="search" title="Ask a question">
          <p>See what each stream finds, what is made of it, and what a character would be told.</p>
        </Empty>
      ) : (
        <Shown of={shown}>
          {(view) =>
            view && (
              <div aria-busy={search.isLoading.value}>
                <Results partner={partner} base={base} of={view} expected={expected}>
                  <ExpectedDocuments
                    partner={partner}
                    base={base}
                    asked={asked}
                    saved={saved}
                    expected={expected}
                    ranks={documentRanks(view.combined_results)}
                  />
                </Results>
              </div>
            )
          }
        </Shown>
      )}
    </>
  );
}

export function Search({ partner, base }: Props) {
  const id = query.value.get("question");
  const saved = useSaved(partner, base, id);
  if (id === null) return <Open key="new" partner={partner} base={base} saved={null} />;
  return <Shown of={saved}>{(question) => <Open key={id} partner={partner} base={base} saved={question} />}</Shown>;
}
