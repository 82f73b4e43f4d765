// The contents of a document, its chunks and its history, in tabs.

import type { Schemas } from "../api";
import type { DocumentAt } from "../documents/contents";
import { query, setQuery } from "../router";
import { lazy } from "../ui/lazy";
import { Tabs } from "../ui/tabs";
import { Original } from "./document-original";
import { TextContent } from "./document-text";

const Changes = lazy(async () => (await import("./document-diff")).Changes);

const Chunks = lazy(async () => (await import("./document-chunks")).Chunks);
const History = lazy(async () => (await import("./document-history")).History);

const TABS = ["original", "digitized", "rewritten", "draft", "changes", "chunks", "history"] as const;
type Tab = (typeof TABS)[number];
const TITLES: Record<Tab, string> = {
  original: "Original",
  digitized: "Digitized",
  rewritten: "Rewritten",
  draft: "Draft",
  changes: "Changes",
  chunks: "Chunks",
  history: "History",
};

function tabsOf(of: Schemas["DocumentView"]): Tab[] {
  const has: Record<Tab, boolean> = {
    original: Boolean(of.file_original),
    // Without a text, they say how to get one.
    digitized: true,
    rewritten: true,
    draft: Boolean(of.file_draft),
    changes: Boolean(of.file_digitized && of.file_rewritten),
    chunks: true,
    history: true,
  };
  return TABS.filter((tab) => has[tab]);
}

function firstTab(of: Schemas["DocumentView"]): Tab {
  if (of.file_rewritten) return "rewritten";
  return of.file_digitized || !of.file_original ? "digitized" : "original";
}

function Panel({ tab, at, of }: { tab: Tab; at: DocumentAt; of: Schemas["DocumentView"] }) {
  if (tab === "original") return <Original at={at} of={of} />;
  if (tab === "changes") return <Changes at={at} of={of} />;
  if (tab === "chunks") return <Chunks at={at} of={of} />;
  if (tab === "history") return <History at={at} />;
  return <TextContent key={tab} at={at} of={of} variant={tab} onEdit={(variant) => setQuery({ tab: variant })} />;
}

export function Contents({ at, of }: { at: DocumentAt; of: Schemas["DocumentView"] }) {
  const tabs = tabsOf(of);
  const current = tabs.find((tab) => tab === query.value.get("tab")) ?? firstTab(of);
  return (
    <Tabs label="Contents and history" tabs={tabs} titles={TITLES} current={current} onSet={(tab) => setQuery({ tab })}>
      <Panel tab={current} at={at} of={of} />
    </Tabs>
  );
}
