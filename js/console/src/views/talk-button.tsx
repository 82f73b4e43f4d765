// Buttons that open the page for calls, in a window of its own.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { joinTabs } from "../tabs";
import { type Target, talkAddress } from "../talk/address";
import { type Called, newId, offer } from "../talk/handover";
import { Icon } from "../ui/icon";

const WINDOW = "popup,width=480,height=760";

/** Opens the page for calls. A window that is open already is shown, so that its call goes on. */
function TalkButton({ target }: { target: Target }) {
  const opened = useRef<Window | null>(null);
  const isBlocked = useSignal(false);
  const to = talkAddress(target);
  const open = () => {
    if (opened.current && !opened.current.closed) return opened.current.focus();
    opened.current = window.open(to, "_blank", WINDOW);
    isBlocked.value = opened.current === null;
  };
  return (
    <>
      <button type="button" onClick={open}>
        <Icon name="phone" /> Call
      </button>
      {isBlocked.value && (
        <span role="alert">
          The browser blocked the window.{" "}
          <a href={to} target="_blank" rel="noreferrer noopener">
            Open it in a tab
          </a>
        </span>
      )}
    </>
  );
}

/** Calls a saved character. Nothing where the server has no page for calls: the playground says why. */
export function CallSaved({ partner, name, version }: { partner: string; name: string; version: number | null }) {
  if (!HAS_TALK) return null;
  return <TalkButton target={{ partner, name, version }} />;
}

/** Calls what is written in a playground, as it is when the call begins. */
export function CallDraft({ partner, called }: { partner: string; called: Called }) {
  const newest = useRef(called);
  newest.current = called;
  const draft = useMemo(newId, []);
  useEffect(() => (HAS_TALK ? offer(joinTabs, draft, () => newest.current) : undefined), []);
  if (HAS_TALK) return <TalkButton target={{ partner, draft }} />;
  return (
    <span class="hint">
      There are no voice calls here: the console was built without the SDK. Build it with <code>npm --prefix js run build</code>, then the console and the server
      again.
    </span>
  );
}
