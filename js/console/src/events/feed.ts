// The events of one partner for all tabs of a browser: one tab reads the stream and shares it, and another takes over when that tab closes.

import type { Clock } from "../clock";
import { type StreamEvent, follow } from "./stream";

/** A message between tabs. */
type Message =
  | { type: "event"; event: StreamEvent }
  /** Everything up to this id was shared. */
  | { type: "id"; id: string }
  /** A tab reads the stream, or waits to connect again, and has shared everything up to this id; null while it knows none. */
  | { type: "alive"; id: string | null; isLive: boolean }
  /** A tab has opened and does not know the last id. */
  | { type: "hello" }
  /** The server refused for good. */
  | { type: "refused" };

export type Channel = { post: (message: unknown) => void; close: () => void };
export type FeedListener = {
  onEvent: (event: StreamEvent) => void;
  /** Gets false when the stream of all tabs is lost, and true when it is there again. */
  onLive: (isLive: boolean) => void;
};
type LockOptions = { signal: AbortSignal } | { steal: true };

export type FeedPorts = {
  open: (lastId: string | null, signal: AbortSignal) => Promise<Response>;
  /** Joins the channel of the tabs; null if the browser has none. */
  join: (name: string, receive: (message: unknown) => void) => Channel | null;
  /** The locks of the browser, which all tabs see; undefined on pages without TLS. */
  locks: { request: (name: string, options: LockOptions, hold: () => Promise<void>) => Promise<void> } | undefined;
  isVisible: () => boolean;
  /** Calls back when the tab is shown or hidden. Returns a function that unsubscribes. */
  onVisibility: (changed: () => void) => () => void;
  clock: Clock;
};

/** Interval of `alive` messages. Browsers may throttle timers of hidden tabs to one a minute. */
const ALIVE_EVERY_MS = 20_000;
/** Silence after which the reading tab counts as suspended, and a visible tab takes over. */
const SUSPENDED_MS = 150_000;
/** Silence after which a tab that has just opened takes over. A tab that reads answers at once, also in the background. */
const UNANSWERED_MS = 15_000;

/** A subscription of this tab to the events of a partner. */
export class Feed {
  /** True if the server refused the stream for good. */
  isRefused = false;
  #lastId: string | null;
  /** False if the stream was lost, or refused. */
  #isLive = true;
  #heard: number;
  #closed = new AbortController();
  /** Ends the turn of this tab: its wait for the lock, and its reading. */
  #turn: AbortController | null = null;
  #isReading = false;
  #channel: Channel | null;

  constructor(
    private readonly name: string,
    private readonly listener: FeedListener,
    private readonly ports: FeedPorts,
    lastId: string | null = null,
  ) {
    this.#lastId = lastId;
    this.#heard = ports.clock.now() - SUSPENDED_MS + UNANSWERED_MS;
    this.#channel = ports.locks ? ports.join(name, (message) => this.#receive(message as Message)) : null;
    if (this.#channel) {
      this.#post({ type: "hello" });
      void this.#takeTurn(false);
      void this.#watchReader();
    } else {
      const unsubscribe = ports.onVisibility(() => this.#readWhileVisible());
      this.#closed.signal.addEventListener("abort", unsubscribe);
      this.#readWhileVisible();
    }
  }

  get lastId(): string | null {
    return this.#lastId;
  }

  close(): void {
    this.#closed.abort();
    this.#turn?.abort();
    this.#channel?.close();
    this.#channel = null;
  }

  #post(message: Message): void {
    this.#channel?.post(message);
  }

  #receive(message: Message): void {
    if (this.#closed.signal.aborted) return;
    if (message.type !== "hello") this.#heard = this.ports.clock.now();
    switch (message.type) {
      case "event":
        this.listener.onEvent(message.event);
        break;
      case "id":
        this.#lastId = message.id;
        break;
      case "alive":
        if (!this.#isReading && typeof message.isLive === "boolean") this.#setLive(message.isLive);
        this.#catchUp(message.id);
        break;
      case "hello":
        if (this.#isReading) this.#postAlive();
        break;
      case "refused":
        this.isRefused = true;
        this.#setLive(false);
        this.#turn?.abort();
        break;
    }
  }

  #postAlive(): void {
    this.#post({ type: "alive", id: this.#lastId, isLive: this.#isLive });
  }

  #setLive(isLive: boolean): void {
    if (isLive === this.#isLive) return;
    this.#isLive = isLive;
    this.listener.onLive(isLive);
  }

  /** Compares the id of the reading tab with that of this one, which missed what was shared while the browser kept it from listening. */
  #catchUp(id: string | null): void {
    // A tab of an older console does not tell the id.
    if (this.#isReading || typeof id !== "string") return;
    const isBehind = this.#lastId !== null && this.#lastId !== id;
    this.#lastId = id;
    if (isBehind) this.listener.onEvent({ kind: "reset" });
  }

  /** Waits for the lock and reads while it is held. `steal` takes it from a tab that is suspended. */
  async #takeTurn(steal: boolean): Promise<void> {
    const { locks } = this.ports;
    if (!locks) return;
    this.#turn?.abort();
    const turn = new AbortController();
    this.#turn = turn;
    try {
      await locks.request(this.name, steal ? { steal } : { signal: turn.signal }, () => this.#read(turn.signal));
    } catch (error) {
      // The wait was aborted, or another tab stole the lock. Anything else will be so at the next try, too.
      if (!(error instanceof DOMException && error.name === "AbortError")) await this.ports.clock.sleep(ALIVE_EVERY_MS, turn.signal);
    }
    const isOver = turn.signal.aborted || this.isRefused;
    turn.abort();
    if (this.#turn === turn) this.#isReading = false;
    if (!isOver) void this.#takeTurn(false);
  }

  /** Reads the stream and shares it until the signal aborts or the server refuses. */
  async #read(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#isReading = true;
    void this.#sayAlive(signal);
    const status = await follow({
      open: this.ports.open,
      lastId: this.#lastId,
      onEvent: (event) => {
        if (signal.aborted) return;
        this.#post({ type: "event", event });
        this.listener.onEvent(event);
      },
      onId: (id) => {
        if (signal.aborted) return;
        this.#lastId = id;
        this.#post({ type: "id", id });
      },
      onLive: (isLive) => {
        if (signal.aborted || isLive === this.#isLive) return;
        this.#setLive(isLive);
        this.#postAlive();
      },
      signal,
      clock: this.ports.clock,
    });
    if (status === null) return;
    this.isRefused = true;
    this.#post({ type: "refused" });
  }

  async #sayAlive(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.isRefused) {
      this.#postAlive();
      await this.ports.clock.sleep(ALIVE_EVERY_MS, signal);
    }
  }

  /** Takes over from a reading tab that the browser suspended. */
  async #watchReader(): Promise<void> {
    const { clock } = this.ports;
    const { signal } = this.#closed;
    while (!signal.aborted && !this.isRefused) {
      await clock.sleep(ALIVE_EVERY_MS, signal);
      if (this.#isReading) this.#heard = clock.now();
      const isSilent = clock.now() - this.#heard > SUSPENDED_MS;
      if (signal.aborted || this.isRefused || !isSilent || !this.ports.isVisible()) continue;
      this.#heard = clock.now();
      void this.#takeTurn(true);
    }
  }

  /** Without locks, each tab reads the stream itself while it is visible. */
  #readWhileVisible(): void {
    if (!this.ports.isVisible()) {
      this.#turn?.abort();
      this.#turn = null;
    } else if (!this.#turn && !this.isRefused) {
      this.#turn = new AbortController();
      void this.#read(this.#turn.signal);
    }
  }
}
