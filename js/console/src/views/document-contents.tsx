// The contents of a document, its chunks and its history, in tabs.

import { useRef } from "preact/hooks";

import type { Schemas } from "../api";
import type { DocumentAt } from "../documents/contents";
import { query, setQuery } from "../router";
import { lazy } from "../ui/lazy";
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
  const list = useRef<HTMLDivElement>(null);
  const press = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const place = { Home: 0, End: tabs.length - 1 }[event.key] ?? (step && (tabs.indexOf(current) + step + tabs.length) % tabs.length);
    const next = place === undefined ? undefined : tabs[place];
    if (!next) return;
    event.preventDefault();
    setQuery({ tab: next });
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <>
      <div ref={list} class="tabs" role="tablist" aria-label="Contents and history" onKeyDown={press}>
        {tabs.map((tab) => (
          <button
            key={tab}
            type="button"
            id={`tab-${tab}`}
            role="tab"
            aria-selected={tab === current}
            aria-controls="tab-panel"
            tabIndex={tab === current ? 0 : -1}
            onClick={() => setQuery({ tab })}
          >
            {TITLES[tab]}
          </button>
        ))}
      </div>
      <div id="tab-panel" class="tab-panel" role="tabpanel" aria-labelledby={`tab-${current}`} tabIndex={0}>
        <Panel tab={current} at={at} of={of} />
      </div>
    </>
  );
}
