// Tabs: one panel at a time.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

type TabsProps<T extends string> = {
  /** Name of the set of tabs. */
  label: string;
  tabs: readonly T[];
  titles: Record<T, string>;
  current: T;
  onSet: (tab: T) => void;
  /** The panel of the current tab. */
  children: ComponentChildren;
};

/** Tabs with their panel, of which a page has one set. Arrow keys, Home and End go from tab to tab. */
export function Tabs<T extends string>({ label, tabs, titles, current, onSet, children }: TabsProps<T>) {
  const list = useRef<HTMLDivElement>(null);
  const press = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const place = { Home: 0, End: tabs.length - 1 }[event.key] ?? (step && (tabs.indexOf(current) + step + tabs.length) % tabs.length);
    const next = place === undefined ? undefined : tabs[place];
    if (next === undefined) return;
    event.preventDefault();
    onSet(next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <>
      <div ref={list} class="tabs" role="tablist" aria-label={label} onKeyDown={press}>
        {tabs.map((tab) => (
          <button
            key={tab}
            type="button"
            id={`tab-${tab}`}
            role="tab"
            aria-selected={tab === current}
            aria-controls="tab-panel"
            tabIndex={tab === current ? 0 : -1}
            onClick={() => onSet(tab)}
          >
            {titles[tab]}
          </button>
        ))}
      </div>
      <div id="tab-panel" class="tab-panel" role="tabpanel" aria-labelledby={`tab-${current}`} tabIndex={0}>
        {children}
      </div>
    </>
  );
}
