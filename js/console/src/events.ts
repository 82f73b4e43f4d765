// Events of a partner: which resources changed. One tab of the browser reads the stream for all.

import { signal } from "@preact/signals";

import { BACKGROUND, sessions } from "./api";
import { systemClock } from "./clock";
import { Feed, type FeedPorts } from "./events/feed";
import type { StreamEvent } from "./events/stream";
import { joinTabs } from "./tabs";

export type { StreamEvent } from "./events/stream";

/** Time that a stream without listeners stays open. The next view often needs it again. */
const LINGER_MS = 10_000;

type Listener = (event: StreamEvent) => void;
type Shared = { feed: Feed | null; lastId: string | null; listeners: Set<Listener>; linger: ReturnType<typeof setTimeout> | undefined };

const shared = new Map<string, Shared>();

/** Partners whose stream is lost or was refused. */
const lost = signal<ReadonlySet<string>>(new Set());

function setLost(partner: string, isLost: boolean): void {
  if (lost.peek().has(partner) === isLost) return;
  const next = new Set(lost.peek());
  if (isLost) next.add(partner);
  else next.delete(partner);
  lost.value = next;
}

/** Returns true if changes of a partner are not heard of, while a view listens for them. */
export const isStreamLost = (partner: string) => lost.value.has(partner);

const ports: Omit<FeedPorts, "open"> = {
  join: joinTabs,
  locks: navigator.locks && {
    request: async (name, options, hold) => {
      await navigator.locks.request(name, options, hold);
    },
  },
  isVisible: () => !document.hidden,
  onVisibility: (changed) => {
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  },
  clock: systemClock,
};

async function open(partner: string, lastId: string | null, signal: AbortSignal): Promise<Response> {
  const count = sessions.signInCount.peek();
  const headers = { ...BACKGROUND, Accept: "text/event-stream", ...(lastId !== null && { "Last-Event-ID": lastId }) };
  const response = await fetch(`/api/events/${encodeURIComponent(partner)}`, { headers, signal, cache: "no-store" });
  if (response.status === 401) sessions.unauthorized(count);
  return response;
}

function start(partner: string, entry: Shared): void {
  const listener = {
    onEvent: (event: StreamEvent) => {
      for (const hear of [...entry.listeners]) hear(event);
    },
    onLive: (isLive: boolean) => setLost(partner, !isLive),
  };
  const opener = (lastId: string | null, signal: AbortSignal) => open(partner, lastId, signal);
  entry.feed = new Feed(`colloquy-events:${partner}`, listener, { ...ports, open: opener }, entry.lastId);
}

function stop(partner: string, entry: Shared): void {
  setLost(partner, false);
  entry.lastId = entry.feed?.lastId ?? entry.lastId;
  entry.feed?.close();
  entry.feed = null;
}

/** Calls back for each event of a partner. Returns a function that unsubscribes. */
export function watch(partner: string, listener: Listener): () => void {
  const entry = shared.get(partner) ?? { feed: null, lastId: null, listeners: new Set(), linger: undefined };
  shared.set(partner, entry);
  clearTimeout(entry.linger);
  entry.listeners.add(listener);
  if (!entry.feed) start(partner, entry);
  return () => {
    entry.listeners.delete(listener);
    if (entry.listeners.size > 0) return;
    entry.linger = setTimeout(() => {
      stop(partner, entry);
      shared.delete(partner);
    }, LINGER_MS);
  };
}

/** Closes all streams, and with `isOpen` opens those with listeners again. */
function restart(isOpen: boolean): void {
  for (const [partner, entry] of shared) {
    stop(partner, entry);
    if (isOpen && entry.listeners.size > 0) start(partner, entry);
  }
}

let count = sessions.signInCount.peek();
sessions.signInCount.subscribe((now) => {
  if (now === count) return;
  count = now;
  restart(Boolean(sessions.current.peek()));
});
addEventListener("pagehide", () => restart(false));
addEventListener("pageshow", (event) => {
  if (event.persisted) restart(true);
});
