// Headings that a view knows only after it has read its data, such as the name of a document.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { path } from "../router";

const heading = signal({ at: "", text: "" });

/** Returns the heading that the view of a path has set. */
export const headingOf = (at: string) => (heading.value.at === at ? heading.value.text : undefined);

/** Replaces the heading of the view. */
export function useHeading(text: string | undefined): void {
  useEffect(() => {
    if (text) heading.value = { at: path.peek(), text };
  }, [text]);
}
