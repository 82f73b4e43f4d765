// The command palette: finds a view or a command by a few letters.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { Dialog } from "./dialog";
import { fit } from "./fit";
import { Icon, type IconName } from "./icon";

export type Command = { title: string; icon: IconName; run: () => void };

const MOST_SHOWN = 12;

/** The palette, open for as long as it is rendered. */
export function Palette({ commands, onClose }: { commands: Command[]; onClose: () => void }) {
  const typed = useSignal("");
  const chosen = useSignal(0);
  const list = useRef<HTMLUListElement>(null);
  const found = commands
    .map((command) => ({ command, cost: fit(typed.value, command.title) }))
    .filter((row): row is { command: Command; cost: number } => row.cost !== null)
    .sort((a, b) => a.cost - b.cost)
    .slice(0, MOST_SHOWN);

  useEffect(() => {
    list.current?.children[chosen.value]?.scrollIntoView({ block: "nearest" });
  }, [chosen.value]);

  const run = (command: Command) => {
    onClose();
    command.run();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen.value = (chosen.value + step + found.length) % Math.max(1, found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const row = found[chosen.value];
      if (row) run(row.command);
    }
  };

  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        role="combobox"
        autocomplete="off"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length > 0 ? `palette-${chosen.value}` : undefined}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          chosen.value = 0;
        }}
        onKeyDown={press}
      />
      {found.length === 0 && <p role="status">No command matches.</p>}
      <ul id="palette-list" role="listbox" aria-label="Commands" class="palette" ref={list}>
        {found.map(({ command }, place) => (
          <li
            key={command.title}
            id={`palette-${place}`}
            role="option"
            aria-selected={place === chosen.value}
            onClick={() => run(command)}
          >
            <Icon name={command.icon} />
            {command.title}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
