// The session of this tab, kept in step with the other tabs.

import { batch, signal } from "@preact/signals";

import { Problem } from "./problem";

/** The fields of a session that this module needs. */
type AnySession = { key_id: string; partner?: string | null; isAdmin: boolean };
export type Credentials = { api_key: string } | { link: string };
/** A message between tabs. */
export type SessionMessage = "signed-in" | "signed-out";

export type SessionPorts<S> = {
  signIn: (credentials: Credentials) => Promise<S>;
  read: () => Promise<S>;
  signOut: (isEverywhere: boolean) => Promise<void>;
  notifyTabs: (message: SessionMessage) => void;
  /** Loads the page again, without any state of the previous user. */
  reset: () => void;
  isHttps: () => boolean;
};

const isNobody = (error: unknown) => error instanceof Problem && [401, 404].includes(error.status);

const isSameUser = (a: AnySession, b: AnySession) =>
  a.key_id === b.key_id && a.isAdmin === b.isAdmin && (a.partner ?? null) === (b.partner ?? null);

export class Sessions<S extends AnySession> {
  /** The session; null if signed out, undefined until known. */
  readonly current = signal<S | null | undefined>(undefined);
  /** True if the session of {@link current} expired or was ended elsewhere: the page stays, and a dialog asks to sign in again. */
  readonly isEnded = signal(false);
  /** Counts sign-ins and sign-outs. A request belongs to the sign-in that it was sent after. */
  readonly signInCount = signal(0);
  /** The last session, which tells whether the next one is of the same user. */
  #last: S | null = null;

  constructor(private readonly ports: SessionPorts<S>) {}

  /** Reads the session. Throws if the server cannot be reached or fails. */
  async read(): Promise<void> {
    const count = this.signInCount.peek();
    try {
      const found = await this.ports.read();
      if (count === this.signInCount.peek()) this.#accept(found);
    } catch (error) {
      if (!isNobody(error)) throw error;
      if (count !== this.signInCount.peek()) return;
      if (this.current.peek()) this.isEnded.value = true;
      else this.current.value = null;
    }
  }

  /** Signs in. Throws a {@link Problem}, also if the browser does not keep the cookie. */
  async signIn(credentials: Credentials): Promise<void> {
    const begun = await this.ports.signIn(credentials);
    let kept: S | null;
    try {
      kept = await this.ports.read();
    } catch (error) {
      // The session has begun, and only 401 and 404 mean that the cookie was not kept.
      kept = isNobody(error) ? null : begun;
    }
    if (kept?.key_id !== begun.key_id) throw this.#cookieProblem();
    this.ports.notifyTabs("signed-in");
    this.#accept(kept);
  }

  async signOut(isEverywhere: boolean): Promise<void> {
    await this.ports.signOut(isEverywhere);
    this.ports.notifyTabs("signed-out");
    this.#leave();
  }

  /** Handles a 401. That of a request from before the last sign-in is ignored. */
  unauthorized(signInCount: number): void {
    if (signInCount === this.signInCount.peek() && this.current.peek()) this.isEnded.value = true;
  }

  /** Handles the message of another tab. */
  async receive(message: SessionMessage): Promise<void> {
    if (message === "signed-out") this.#leave();
    else await this.read();
  }

  #accept(session: S): void {
    if (this.#last && !isSameUser(this.#last, session)) {
      batch(() => {
        this.current.value = undefined;
        this.isEnded.value = false;
      });
      this.ports.reset();
      return;
    }
    this.#last = session;
    batch(() => {
      this.current.value = session;
      this.isEnded.value = false;
      this.signInCount.value += 1;
    });
  }

  #leave(): void {
    batch(() => {
      this.current.value = null;
      this.isEnded.value = false;
      this.signInCount.value += 1;
    });
  }

  #cookieProblem(): Problem {
    const cause = this.ports.isHttps()
      ? "Allow cookies for this site"
      : "Allow cookies for this site, or open this page with https if the server is reached with https";
    return new Problem(0, "cookie_not_kept", `The browser did not keep the cookie of the session. ${cause}, then sign in again.`);
  }
}
