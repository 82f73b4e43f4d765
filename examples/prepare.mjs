// Prepares a running backend for the demo: the partner `demo`, its knowledge base, its character and its keys. What is there stays.
//
//   BACKEND_URL=.. COLLOQUY_ADMIN_KEY=.. DEMO_ORIGINS=http://localhost:3000 node prepare.mjs FOLDER
//
// FOLDER gets the keys, readable by their owner alone: `customer-server.key`, `text.key` and `publishable-PORT.key`.

import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const READY_PATIENCE_MS = 60_000;
/** How long the documents may take until they can be found. */
const KNOWLEDGE_PATIENCE_MS = 120_000;

/** A client of the backend's administration: bodies are JSON, or forms. It takes the statuses in `also` for answers too. */
export function administration(backendUrl, key) {
  return async (method, route, body, also = []) => {
    const json = body && !(body instanceof FormData);
    const answer = await fetch(new URL(route, backendUrl), {
      method,
      headers: { "x-api-key": key, ...(json && { "content-type": "application/json" }) },
      body: json ? JSON.stringify(body) : body,
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

function form(fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

/**
 * A knowledge base with the files of a folder, and waits until they can be found. Documents that are there stay as they are.
 *
 * @param {ReturnType<typeof administration>} admin
 */
export async function createKnowledgeBase(admin, partner, name, files) {
  const base = `${partner}/${name}`;
  await admin("POST", `/api/knowledgebases/${partner}`, form({ name }), [409]);
  await admin("POST", `/api/folders/${base}`, form({ name: "handbook" }), [409]);
  const { content } = await admin("GET", `/api/documents/${base}`);
  const there = new Set(content.documents.map((document) => document.name));
  for (const file of (await readdir(files)).sort()) {
    if (there.has(file)) continue;
    await admin("POST", `/api/documents/${base}`, form({
      type: "file",
      folder: "handbook",
      file: new File([await readFile(new URL(file, files))], file),
      // Its text is found as it is; no model rewrites it.
      use_original_as_rewritten: "true",
    }));
  }
  await found(admin, base);
}

/** Waits until every document of a knowledge base was read, and can be found. */
async function found(admin, base) {
  const until = Date.now() + KNOWLEDGE_PATIENCE_MS;
  for (;;) {
    const { content } = await admin("GET", `/api/documents/${base}`);
    const failed = content.documents.find(({ status }) => status === "failed");
    if (failed) throw new Error(`${failed.name} cannot be read: ${failed.processing_error}`);
    if (content.documents.every(({ status }) => status === "ready")) return;
    if (Date.now() > until) throw new Error(`the documents of ${base} are not ready in time`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** A key for text generation with the characters of the partner. */
async function createTextKey(admin, partner) {
  const { content } = await admin("POST", `/api/quotas/${partner}`, {
    name: "demo",
    kinds: ["text"],
    allowed_characters: [`repo:${partner}/*`],
  });
  return content.api_key;
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

/** The key in a file, or a new one when there is none or it is not valid any more, which `route` tells. */
async function keep(file, backendUrl, create, route = "/api/auth/me") {
  const kept = (await readFile(file, "utf8").catch(() => "")).trim();
  if (kept) {
    const { status } = await administration(backendUrl, kept)("GET", route, undefined, [401, 403]);
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
  await createKnowledgeBase(admin, "demo", "guide", new URL("knowledge/", import.meta.url));
  await createCharacter(admin, "demo", JSON.parse(await readFile(new URL("character.json", import.meta.url), "utf8")));
  await keep(path.join(folder, "customer-server.key"), BACKEND_URL, () => createServerKey(admin, "demo"));
  await keep(path.join(folder, "text.key"), BACKEND_URL, () => createTextKey(admin, "demo"), "/v3/usage");
  // Named after the port, since a key for another origin would be refused.
  const name = `publishable-${new URL(origins[0]).port}.key`;
  await keep(path.join(folder, name), BACKEND_URL, () => createPublishableKey(admin, "demo", origins));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(process.argv[2], process.env);
