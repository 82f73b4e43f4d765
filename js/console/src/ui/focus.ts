// Keyboard focus after an element that had it is removed.

import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** Focuses the heading of the view, which screen readers then read. */
export function focusHeading(): void {
  document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
}

/** Moves the focus to the heading when an element that has it is removed. */
export function useFocusHandover(element: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const held = element.current;
    return () => {
      if (held && held === document.activeElement) focusHeading();
    };
  }, []);
}
