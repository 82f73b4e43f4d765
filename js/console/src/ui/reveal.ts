// Controls that may be folded away: behind disclosures whose content is rendered only while they are open.

/** The longest wait for the content of a disclosure, which may have to be loaded. */
const PATIENCE_MS = 5_000;

/** Returns true if a disclosure has a control; its `data-holds` lists beginnings of their names. */
export const holds = (beginnings: string | undefined, name: string) => (beginnings ?? "").split(" ").some((beginning) => beginning !== "" && name.startsWith(beginning));

function find(root: ParentNode, names: readonly string[]): HTMLElement | null {
  for (const name of names) {
    const control = root.querySelector<HTMLElement>(`[name="${CSS.escape(name)}"]`);
    if (control) return control;
  }
  return null;
}

function open(root: ParentNode, names: readonly string[]): void {
  for (const details of root.querySelectorAll<HTMLDetailsElement>("details[data-holds]:not([open])")) {
    if (names.some((name) => holds(details.dataset["holds"], name))) details.open = true;
  }
}

/** Opens what holds the first of these controls that there is, and returns the control; null if it does not appear. */
export async function reveal(root: HTMLElement, names: readonly string[]): Promise<HTMLElement | null> {
  const unfolded = () => {
    const control = find(root, names);
    if (!control) open(root, names);
    for (let at = control?.closest("details"); at; at = at.parentElement?.closest("details")) at.open = true;
    return control;
  };
  const found = unfolded();
  if (found || ![...root.querySelectorAll<HTMLElement>("details[data-holds]")].some(({ dataset }) => names.some((name) => holds(dataset["holds"], name)))) return found;
  return new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      const control = unfolded();
      if (control) end(control);
    });
    const end = (control: HTMLElement | null) => {
      observer.disconnect();
      clearTimeout(timer);
      resolve(control);
    };
    const timer = setTimeout(() => end(null), PATIENCE_MS);
    observer.observe(root, { childList: true, subtree: true });
  });
}
