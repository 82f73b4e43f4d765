// Keyboard focus after the element that had it is gone: browsers would begin again at the top of the page.

/** Focuses the heading of the view, which screen readers then read. */
export function focusHeading(): void {
  document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
}

const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";
const ROWS = "tbody, tr, li";

function isControl(element: Element): boolean {
  return element instanceof HTMLElement && element.tabIndex >= 0 && element.matches(CONTROLS) && element.checkVisibility();
}

const controlsOf = (row: Element) => [...row.querySelectorAll(CONTROLS)].filter(isControl);

/** Position of a control in its row: from the end for buttons, which follow each other there, or else from the start; 0 outside of rows. */
function placeOf(control: Element): number {
  const row = control.closest("tr, li");
  const place = row ? controlsOf(row).indexOf(control) : 0;
  return row && control.matches("button") ? place - controlsOf(row).length : place;
}

type Siblings = { before: Element | null; after: Element | null };

/** Returns the next element that passes a test, or else the nearest before. Those that are gone as well are passed over. */
function nearest({ before, after }: Siblings, test: (element: Element) => boolean): Element | undefined {
  for (let at = after; at; at = at.nextElementSibling) if (at.isConnected && test(at)) return at;
  for (let at = before; at; at = at.previousElementSibling) if (at.isConnected && test(at)) return at;
  return undefined;
}

/** Returns the control in this place of the nearest row. */
function ofRow(siblings: Siblings, place: number): Element | undefined {
  const row = nearest(siblings, (element) => element.matches(ROWS) && controlsOf(element).length > 0);
  const controls = row ? controlsOf(row) : [];
  return controls.at(place) ?? controls.at(-1);
}

/** Returns what takes the focus after an element of `parent` that had siblings: a control in the next row, beside the element, or around it. */
function successor(element: Element, parent: Element, siblings: Siblings, place: number): Element | undefined {
  const found = element.matches(ROWS) ? ofRow(siblings, place) : nearest(siblings, isControl);
  if (found) return found;
  if (!parent.isConnected || !parent.closest("main, dialog") || parent.matches("main, dialog")) return undefined;
  if (isControl(parent)) return parent;
  const around = parent.parentElement;
  return around ? successor(parent, around, { before: parent.previousElementSibling, after: parent.nextElementSibling }, place) : undefined;
}

function asElement(node: Node | null, step: "previousSibling" | "nextSibling"): Element | null {
  let at = node;
  while (at && !(at instanceof Element)) at = at[step];
  return at;
}

/** Moves the focus when the element that has it is removed: to the same control of the next row, or to what is beside it or around it. */
export function keepFocus(): void {
  let held: { control: HTMLElement; place: number } | null = null;
  document.addEventListener("focusin", ({ target }) => {
    held = target instanceof HTMLElement ? { control: target, place: placeOf(target) } : null;
  });
  document.addEventListener("focusout", ({ target }) => {
    // Some browsers send it for an element that is being removed, too.
    setTimeout(() => {
      const control = held?.control;
      if (control === target && control?.isConnected && document.activeElement !== control) held = null;
    });
  });
  const observer = new MutationObserver((records) => {
    if (!held || document.activeElement !== document.body) return;
    const { control, place } = held;
    for (const { removedNodes, target: parent, previousSibling, nextSibling } of records) {
      const removed = [...removedNodes].find((node) => node.contains(control));
      if (!(removed instanceof Element) || !(parent instanceof Element)) continue;
      // The control was moved.
      if (control.isConnected) return control.focus({ preventScroll: true });
      held = null;
      const siblings = { before: asElement(previousSibling, "previousSibling"), after: asElement(nextSibling, "nextSibling") };
      const next = successor(removed, parent, siblings, place);
      const dialog = [...document.querySelectorAll("dialog[open]")].at(-1);
      const target = dialog && !(next && dialog.contains(next)) ? controlsOf(dialog)[0] : next;
      if (target instanceof HTMLElement) target.focus({ preventScroll: true });
      else focusHeading();
      return;
    }
  });
  observer.observe(document.body, { childList: true, subtree: true });
}
