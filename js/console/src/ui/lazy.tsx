// Views that are loaded when they are shown for the first time.

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";

import { Problem } from "../problem";
import { Failed, Loading } from "./states";

// A browser may keep the failure, and a newer server has other files: only loading the page again helps.
const NOT_LOADED = new Problem(0, "not_loaded", "This view could not be loaded.");
const reloadPage = () => location.reload();

/** A component that renders itself from its properties. */
export type View<P> = (props: P) => VNode;

/** Returns a component that loads another one and renders it. */
export function lazy<P extends object>(load: () => Promise<View<P>>): View<P> {
  const loaded = signal<{ Found: View<P> } | undefined>(undefined);
  const hasFailed = signal(false);
  let isLoading = false;
  return function Lazy(props: P) {
    useEffect(() => {
      if (isLoading) return;
      isLoading = true;
      load().then(
        (Found) => (loaded.value = { Found }),
        () => (hasFailed.value = true),
      );
    }, []);
    if (hasFailed.value) return <Failed problem={NOT_LOADED} retry={reloadPage} />;
    if (!loaded.value) return <Loading />;
    const { Found } = loaded.value;
    return <Found {...props} />;
  };
}
