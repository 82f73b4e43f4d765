// Prepares a running backend for the demo: the partner `demo`, its character and its keys. What is there stays.
//
//   BACKEND_URL=.. COLLOQUY_ADMIN_KEY=.. DEMO_ORIGINS=http://localhost:3000 node prepare.mjs FOLDER
//
// FOLDER gets the keys, readable by their owner alone: `customer-server.key` and `publishable-PORT.key`.

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const READY_PATIENCE_MS = 60_000;

/** A client of the backend's administration. It takes the statuses in `also` for answers too. */
export function administration(backendUrl, key) {
  return async (method, route, body, also = []) => {
    const answer = await fetch(new URL(route, backendUrl), {
      method,
      headers: { "x-api-key": key, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
    const content = await answer.json().catch(() => null);
    if (!answer.ok && !also.includes(answer.status)) {
      throw new Error(`${method} ${route}: ${answer.status} ${JSON.stringify(content)}`);
    }
    return { status: answer.status, content };
  };
}

/** Waits until the backend answers, as long as it runs. */
export async function ready(backendUrl, running = () => true) {
  const until = Date.now() + READY_PATIENCE_MS;
  for (;;) {
    const answer = await fetch(new URL("/health", backendUrl)).catch(() => null);
    if (answer?.ok) return;
    if (!running() || Date.now() > until) throw new Error(`the backend at ${backendUrl} does not answer`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function createPartner(admin, partner) {
  await admin("POST", `/api/partners/${partner}`, {}, [409]);
}

export async function createCharacter(admin, partner, character) {
  await admin("POST", `/api/characters/${partner}`, character, [409]);
}

/** A key for the customer's server: it makes and reads calls, and can do nothing else. */
export async function createServerKey(admin, partner) {
  const { content } = await admin("POST", `/api/keys/${partner}`, { name: "customer server", scopes: ["calls"] });
  return content.api_key;
}

/** A key that pages of these origins may hold. */
export async function createPublishableKey(admin, partner, origins) {
  const body = { name: "demo page", kind: "publishable", allowed_origins: origins };
  const { content } = await admin("POST", `/api/keys/${partner}`, body);
  return content.api_key;
}

/** The key in a file, or a new one when there is none or it is not valid any more. */
async function keep(file, backendUrl, create) {
  const kept = (await readFile(file, "utf8").catch(() => "")).trim();
  if (kept) {
    const { status } = await administration(backendUrl, kept)("GET", "/api/auth/me", undefined, [401, 403]);
    // 403 is for a publishable key, which is good for calls only.
    if (status !== 401) return;
  }
  await writeFile(file, `${await create()}\n`, { mode: 0o600 });
}

async function main(folder, { BACKEND_URL, COLLOQUY_ADMIN_KEY, DEMO_ORIGINS }) {
  await ready(BACKEND_URL);
  const admin = administration(BACKEND_URL, COLLOQUY_ADMIN_KEY);
  const origins = DEMO_ORIGINS.split(",");
  await createPartner(admin, "demo");
  await createCharacter(admin, "demo", JSON.parse(await readFile(new URL("character.json", import.meta.url), "utf8")));
  await keep(path.join(folder, "customer-server.key"), BACKEND_URL, () => createServerKey(admin, "demo"));
  // Named after the port, since a key for another origin would be refused.
  const name = `publishable-${new URL(origins[0]).port}.key`;
  await keep(path.join(folder, name), BACKEND_URL, () => createPublishableKey(admin, "demo", origins));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(process.argv[2], process.env);
