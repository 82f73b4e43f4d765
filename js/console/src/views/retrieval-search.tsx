// A search in a knowledge base: the question, what was found and how, and the documents that it should find.

import { useSignal } from "@preact/signals";

import { RETRIEVAL, address } from "../addresses";
import { type Schemas, api } from "../api";
import { type DraftAt, fieldsOfAsked } from "../knowledge/question-drafts";
import { questionEdits } from "../knowledge/question-edits";
import { type Expected, expectedOf, questionAt } from "../knowledge/questions";
import { type Asked, askedOf, askedParameters, documentRanks, isShareable, readAsked, searchBody } from "../knowledge/retrieval";
import { typedQuestions } from "../knowledge/typed-questions";
import { ask } from "../problem";
import { Link, query, setQuery } from "../router";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Empty, Shown } from "../ui/states";
import { ExpectedDocuments } from "./retrieval-expected";
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
    { partner, kinds: ["question"], base, ...(id !== null && { id }) },
  );
}

const newQuestion = () => setQuery({ ...askedParameters(null), question: null });

type SavedNoticeProps = { isGone: boolean; isOutdated: boolean; onDiscard: (() => void) | null };

/** The state of the saved question that is open. */
function SavedNotice({ isGone, isOutdated, onDiscard }: SavedNoticeProps) {
  return (
    <div class={isGone || isOutdated ? "notice" : "notice plain"}>
      <span role={isGone || isOutdated ? "alert" : undefined}>
        {isGone
          ? "Somebody deleted this saved question. Save it again to keep it."
          : isOutdated
            ? "Somebody else changed this saved question meanwhile. Saving yours replaces it."
            : "This question is saved. Changes of it, or of its documents, count once they are saved, too."}
      </span>
      {onDiscard && !isGone && (
        <button type="button" onClick={onDiscard}>
          <Icon name="undo-2" /> Discard my changes
        </button>
      )}
      <button type="button" onClick={newQuestion}>
        <Icon name="plus" /> New question
      </button>
    </div>
  );
}

type OpenProps = Props & {
  saved: Saved | null;
  /** True if the saved question was deleted meanwhile. */
  isGone: boolean;
  /** Reads the saved question again. */
  reload: () => Promise<void>;
};

/** The search with the saved question that is open, if one is. Documents that are ticked stay until they are saved, or no longer ticked. */
function Open({ partner, base, saved, isGone, reload }: OpenProps) {
  const id = saved?.id ?? null;
  // A question that the address does not hold: the saved one, or one that is too long.
  const own = useSignal<Asked | null>(
    readAsked(query.peek()) === null ? (questionEdits.peek(questionAt(partner, base, id, null))?.asked ?? (saved && askedOf(saved, {}))) : null,
  );
  /** Counts how often changes were discarded: the form begins again with each. */
  const round = useSignal(0);
  const asked = own.value ?? readAsked(query.value);
  const search = useSearch(partner, base, asked);
  const typedAt = (): DraftAt => ({ partner, base, id, asked: readAsked(query.peek()) });
  const at = questionAt(partner, base, id, asked);
  const stored = questionEdits.of(at);
  // One that changes nothing gives way to a newer version.
  const edit = stored && questionEdits.isChanged(stored) ? stored : undefined;
  const expected = edit?.expected ?? expectedOf(saved);

  const expect = (next: Expected) => {
    if (!asked) return;
    if (!saved && next.size === 0) questionEdits.end(at);
    else questionEdits.set({ at, before: edit?.before ?? saved, asked, expected: next });
  };
  const run = async (next: Asked) => {
    const isSame = JSON.stringify(next) === JSON.stringify(asked);
    const fits = isShareable(next);
    own.value = fits ? null : next;
    // Documents that answer another question are for the user to tick.
    if (saved) questionEdits.set({ at, before: edit?.before ?? saved, asked: next, expected });
    // What the address cannot hold stays typed.
    typedQuestions.end(typedAt());
    setQuery(askedParameters(fits ? next : null));
    if (!fits) typedQuestions.set(typedAt(), fieldsOfAsked(next));
    if (isSame) await search.reload();
  };
  const discard = () => {
    questionEdits.end(at);
    typedQuestions.end(typedAt());
    own.value = saved && askedOf(saved, {});
    round.value += 1;
    setQuery(askedParameters(null));
  };
  return (
    <>
      {saved && <SavedNotice isGone={isGone} isOutdated={Boolean(edit?.before) && edit?.before?.updated_at !== saved.updated_at} onDiscard={edit ? discard : null} />}
      <QuestionForm key={round.value} of={asked} draft={typedQuestions.of(typedAt())} onType={(fields) => typedQuestions.set(typedAt(), fields)} onAsk={run} />
      {own.value && !isShareable(own.value) && (
        <p class="hint">The question is too long for the address of this page, so a link to the page does not have it.</p>
      )}
      {asked === null ? (
        <Empty icon="search" title="Ask a question">
          <p>See what each stream finds, what is made of it, and what a character would be told.</p>
        </Empty>
      ) : (
        <Shown of={search}>
          {(view) =>
            view && (
              <div aria-busy={search.isLoading.value}>
                <Results partner={partner} base={base} of={view} expected={expected} onExpect={expect}>
                  <ExpectedDocuments
                    at={at}
                    asked={asked}
                    saved={isGone ? null : saved}
                    isChanged={edit !== undefined}
                    expected={expected}
                    onExpect={expect}
                    onSaved={reload}
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

/** A link to a saved question that is no longer there. */
function Gone({ partner, base }: Props) {
  return (
    <Empty icon="search" title="This saved question was deleted">
      <p>
        Ask a new one, or choose one of the <Link to={address(RETRIEVAL, { partner, name: base }, { view: "questions" })}>saved questions</Link>.
      </p>
      <button type="button" class="primary" onClick={() => setQuery({ question: null })}>
        <Icon name="plus" /> New question
      </button>
    </Empty>
  );
}

export function Search({ partner, base }: Props) {
  const id = query.value.get("question");
  const saved = useSaved(partner, base, id);
  const isGone = saved.problem.value?.status === 404;
  const read = saved.data.value?.id === id ? saved.data.value : null;
  // An edit of a question that was deleted is not lost with it.
  const known = read ?? (isGone ? (questionEdits.of(questionAt(partner, base, id, null))?.before ?? null) : null);
  if (id !== null && !known) return isGone ? <Gone partner={partner} base={base} /> : <Shown of={saved}>{() => <></>}</Shown>;
  return <Open key={id ?? "new"} partner={partner} base={base} saved={id === null ? null : known} isGone={id !== null && isGone} reload={saved.reload} />;
}
