// Values with an explanation.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

type ExplainedProps = {
  /** The explanation. */
  as: string;
  children: ComponentChildren;
};

/** A value whose explanation is shown on hover and on focus, until Escape is pressed or something scrolls. */
export function Explained({ as, children }: ExplainedProps) {
  const id = useId();
  const value = useRef<HTMLSpanElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  const isShown = useSignal(false);
  const show = () => (isShown.value = true);
  const hide = () => (isShown.value = false);
  useEffect(() => {
    const [popover, source] = [tip.current, value.current];
    if (!isShown.value || !popover || !source) return;
    // In the top layer, where no container cuts it off. The source anchors it.
    popover.showPopover({ source });
    addEventListener("scroll", hide, { capture: true, once: true });
    return () => {
      removeEventListener("scroll", hide, { capture: true });
      if (popover.isConnected) popover.hidePopover();
    };
  }, [isShown.value]);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isShown.value) return;
    event.stopPropagation();
    hide();
  };
  return (
    <span
      ref={value}
      class="explained"
      tabIndex={0}
      aria-describedby={id}
      onMouseEnter={show}
      onMouseLeave={hide}
      onFocus={show}
      onBlur={hide}
      onKeyDown={press}
    >
      {children}
      <span ref={tip} id={id} role="tooltip" popover="manual" class="tip">
        {as}
      </span>
    </span>
  );
}
