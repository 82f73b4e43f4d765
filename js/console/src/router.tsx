// The address of the page, which holds the view and its filters, sorting and selection.

import { computed, signal } from "@preact/signals";
import type { AnchorHTMLAttributes, ComponentChildren } from "preact";
import { useCallback, useEffect, useRef } from "preact/hooks";

import { below } from "./path";

const BASE = "/console";

const read = () => ({
  path: below(BASE, location.pathname),
  query: new URLSearchParams(location.search),
});

const current = signal(read());

/** The path below `/console`, encoded, with a slash at its beginning. */
export const path = computed(() => current.value.path);

/** The parameters of the address. */
export const query = computed(() => current.value.query);

addEventListener("popstate", () => {
  current.value = read();
});

/** Goes to a path below `/console`, which may have a query. */
export function navigate(to: string, { replace = false } = {}): void {
  const url = BASE + to;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  current.value = read();
  if (!replace) scrollTo(0, 0);
}

/** Changes parameters of the address; `null` removes one. */
export function setQuery(changes: Record<string, string | null>): void {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  navigate(path.peek() + (text && `?${text}`), { replace: true });
}

/** The way of a component that does something which ends late: `isOpen` while it is shown, `isHere` while the page is that where it appeared. */
export type Stays = { isOpen: () => boolean; isHere: () => boolean };

/** Tells what ends late, such as a request of a dialog, not to take somebody away who has gone on to other work. */
export function useStays(): Stays {
  const here = useRef(path.peek());
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  const isHere = useCallback(() => path.peek() === here.current, []);
  return { isHere, isOpen: useCallback(() => isShown.current && isHere(), []) };
}

type LinkProps = {
  to: string;
  children: ComponentChildren;
  class?: string;
  "aria-current"?: AnchorHTMLAttributes["aria-current"];
  onFollow?: () => void;
};

/** A link to a path below `/console`. */
export function Link({ to, children, onFollow, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onFollow?.();
    navigate(to);
  };
  return (
    <a href={BASE + to} onClick={follow} {...rest}>
      {children}
    </a>
  );
}
