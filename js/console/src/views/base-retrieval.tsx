// The retrieval of a knowledge base: searches, saved questions, and evaluations of these.

import { BASE, address } from "../addresses";
import { query, setQuery } from "../router";
import { Back } from "../ui/back";
import { Tabs } from "../ui/tabs";
import { Evaluations } from "./retrieval-evaluations";
import { SavedQuestions } from "./retrieval-questions";
import { Search } from "./retrieval-search";

const TABS = ["search", "questions", "evaluations"] as const;
type Tab = (typeof TABS)[number];
const TITLES: Record<Tab, string> = { search: "Try a question", questions: "Saved questions", evaluations: "Evaluations" };

function Panel({ tab, partner, base }: { tab: Tab; partner: string; base: string }) {
  if (tab === "questions") return <SavedQuestions partner={partner} base={base} />;
  if (tab === "evaluations") return <Evaluations partner={partner} base={base} />;
  return <Search partner={partner} base={base} />;
}

export function Retrieval({ partner, name: base }: { partner: string; name: string }) {
  const tab = TABS.find((tab) => tab === query.value.get("view")) ?? "search";
  return (
    <div class="retrieval">
      <Back to={address(BASE, { partner, name: base })}>{`Knowledge base ${base}`}</Back>
      <Tabs label="Retrieval" tabs={TABS} titles={TITLES} current={tab} onSet={(view) => setQuery({ view: view === "search" ? null : view })}>
        <Panel tab={tab} partner={partner} base={base} />
      </Tabs>
    </div>
  );
}
