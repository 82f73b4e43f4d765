// The client of the public API, with the session of the console.

import createClient, { type Client } from "openapi-fetch";

import { systemClock } from "./clock";
import type { components, paths } from "./generated/api";
import { ask } from "./problem";
import { type SessionMessage, Sessions } from "./session";
import { joinTabs } from "./tabs";
import { createTransport } from "./transport";

export type Schemas = components["schemas"];

const HEADER = "X-Colloquy-Console";
const SCHEME = location.protocol.slice(0, -1);

/** Header of requests that the user caused. */
export const FOREGROUND = { [HEADER]: SCHEME } as const;
/** Header of requests that events caused. They do not prolong the session. */
export const BACKGROUND = { [HEADER]: `${SCHEME}, background` } as const;

export const api: Client<paths> = createClient<paths>({
  baseUrl: location.origin,
  headers: FOREGROUND,
  credentials: "same-origin",
  fetch: createTransport({
    fetch: (request) => fetch(request),
    clock: systemClock,
    signIn: () => sessions.signInCount.peek(),
    onUnauthorized: (count) => sessions.unauthorized(count),
  }),
});

const params = { header: FOREGROUND };
let reset = () => location.replace("/console/");

export const sessions: Sessions<Schemas["ConsoleSession"]> = new Sessions<Schemas["ConsoleSession"]>({
  signIn: (body) => ask(api.POST("/api/console/session", { params, body })),
  read: () => ask(api.GET("/api/console/session", { cache: "no-store" })),
  signOut: (isEverywhere) =>
    ask<unknown>(isEverywhere ? api.DELETE("/api/console/sessions", { params }) : api.DELETE("/api/console/session", { params })).then(() => {}),
  notifyTabs: (message) => tabs?.post(message),
  reset: () => reset(),
  isHttps: () => location.protocol === "https:",
});

/** Forgets the user and loads the page again. */
export function leavePage(): void {
  reset();
}

/** Sets what runs before the page is loaded again for another user. */
export function beforeReset(forget: () => void): void {
  reset = () => {
    forget();
    location.replace("/console/");
  };
}

/** Reads the session until that succeeds: requests go out as whoever is signed in now. */
async function refresh(read: () => Promise<void>): Promise<void> {
  for (let waitMs = 1_000; ; waitMs = Math.min(2 * waitMs, 30_000)) {
    try {
      return await read();
    } catch {
      await systemClock.sleep(waitMs);
    }
  }
}

const tabs = joinTabs("colloquy-session", (message) => void refresh(() => sessions.receive(message as SessionMessage)));

// A page in the back-forward cache receives no messages.
addEventListener("pageshow", (event) => {
  if (event.persisted) void refresh(() => sessions.read());
});

/** Returns true if the session has this scope. */
export function may(scope: Schemas["Scope"]): boolean {
  const session = sessions.current.value;
  return Boolean(session) && (!session?.scopes || session.scopes.includes(scope));
}
