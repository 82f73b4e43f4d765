// Drag and drop of files onto an element.

import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { type Found, dropped, leftOutWords } from "../documents/dropped";
import { notifyFailure } from "../ui/toasts";

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

/** Gives the files of a drop to `add`, and says what of it was not taken. Must be called while the drop is handled. */
export function takeDrop(data: DataTransfer, add: (found: Found[]) => void): void {
  dropped(data).then((collected) => {
    const leftOut = leftOutWords(collected);
    if (leftOut) notifyFailure(leftOut);
    if (collected.found.length > 0) add(collected.found);
  }, notifyFailure);
}

/** Calls back for drops of files. Returns a signal that is true while files are dragged over the element. */
export function useDrop(element: RefObject<HTMLElement | null>, onDrop: (data: DataTransfer) => void) {
  const isOver = useSignal(false);
  const latest = useRef(onDrop);
  latest.current = onDrop;
  useEffect(() => {
    const target = element.current;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      // The browser would open a file that is dropped beside the element.
      event.preventDefault();
      isOver.value = event.target instanceof Node && Boolean(target?.contains(event.target));
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) isOver.value = false;
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      isOver.value = false;
      const isInside = event.target instanceof Node && Boolean(target?.contains(event.target));
      if (isInside && event.dataTransfer) latest.current(event.dataTransfer);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  return isOver;
}
