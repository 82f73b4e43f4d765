// The customer's server of the demo. It serves the page and the SDK, keeps the API key, and hands out signed URLs: the
// browser gets a URL for one call and never sees the key. Plain Node.js, no dependencies.
//
//   DEMO_BACKEND_URL=http://localhost:8080 DEMO_API_KEY_FILE=key DEMO_CHARACTER=demo/guide node server.mjs

import { createReadStream, readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));

const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/**
 * A customer's server, not yet listening.
 *
 * @param {object} settings
 * @param {string} settings.backendUrl - Where the backend is, as browsers reach it.
 * @param {string} settings.apiKey - The secret key. It goes to the backend and nowhere else.
 * @param {string} settings.character - `<partner>/<character>`.
 * @param {string} [settings.publishableKey] - A key that pages may hold, for the mode without a server.
 * @param {number} [settings.timeLimitSeconds] - The longest a call may last.
 * @param {string} [settings.webhookUrl] - Told when a call has completed; HTTPS.
 * @param {string} [settings.sdkDir] - The built SDK.
 * @param {number} [settings.callsPerMinute] - How many calls one address may start in a minute.
 * @param {(settings: object) => Promise<{id: string, signedUrl: string}>} [settings.createCall] - Another way to create
 *   a call.
 */
export function customerServer(settings) {
  const roots = {
    site: path.join(HERE, "site"),
    sdk: path.resolve(settings.sdkDir ?? path.join(HERE, "..", "js", "dist")),
  };
  const headers = securityHeaders(settings.backendUrl);
  const limit = rateLimit(settings.callsPerMinute ?? 20);
  const createCall = settings.createCall ?? createCallAtBackend;

  return http.createServer(async (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    try {
      const [pathname] = request.url.split("?", 1);
      if (pathname === "/api/call") {
        await startCall(request, response, limit, () => createCall(settings));
      } else if (request.method !== "GET" && request.method !== "HEAD") {
        response.setHeader("allow", "GET, HEAD");
        throw new Refusal(405, "METHOD_NOT_ALLOWED", "This address only answers GET.");
      } else if (pathname === "/config.json") {
        json(response, 200, publicSettings(settings));
      } else if (pathname === "/health") {
        json(response, 200, { status: "ok" });
      } else if (pathname.startsWith("/sdk/")) {
        await file(request, response, roots.sdk, pathname.slice("/sdk/".length));
      } else {
        await file(request, response, roots.site, pathname === "/" ? "index.html" : pathname.slice(1));
      }
    } catch (error) {
      refuse(response, error);
    }
  });
}

/** What the page may know. */
function publicSettings({ backendUrl, character, publishableKey }) {
  const [partner, name] = character.split("/");
  return { backendUrl, partner, character: name, publishableKey: publishableKey ?? null };
}

function securityHeaders(backendUrl) {
  const backend = new URL(backendUrl).origin;
  const policy = [
    "default-src 'none'",
    // The SDK is WebAssembly, which no 'unsafe-eval' is needed for.
    "script-src 'self' 'wasm-unsafe-eval'",
    "style-src 'self'",
    `connect-src 'self' ${backend} ${backend.replace(/^http/, "ws")}`,
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    "content-security-policy": policy.join("; "),
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "microphone=(self), camera=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}

/** Something that the page is told: a status, a stable code and words for a developer. */
class Refusal extends Error {
  constructor(status, code, message, retryAfter) {
    super(message);
    Object.assign(this, { status, code, retryAfter });
  }
}

async function startCall(request, response, limit, createCall) {
  if (request.method !== "POST") {
    response.setHeader("allow", "POST");
    throw new Refusal(405, "METHOD_NOT_ALLOWED", "Create a call with POST.");
  }
  // Other sites cannot send this type without asking first, and nobody answers them: they cannot start calls here.
  if (!request.headers["content-type"]?.startsWith("application/json")) {
    throw new Refusal(415, "UNSUPPORTED_MEDIA_TYPE", "Send JSON.");
  }
  const wait = limit(request.socket.remoteAddress);
  if (wait > 0) throw new Refusal(429, "RATE_LIMITED", `Too many calls, try again in ${wait} s.`, wait);
  // The body has nothing to say: what a visitor may call is decided here, not in the page.
  request.resume();
  const call = await createCall();
  json(response, 200, { id: call.id, signedUrl: call.signedUrl });
}

/** Creates a call with the secret key; what the backend answers in `data`. */
export async function createCallAtBackend(settings) {
  const answer = await fetch(new URL("/v2/calls", settings.backendUrl), {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": settings.apiKey },
    body: JSON.stringify({
      character: `repo:${settings.character}`,
      call_time_limit_seconds: String(settings.timeLimitSeconds ?? 600),
      ...(settings.webhookUrl && { on_completion_webhook: settings.webhookUrl }),
    }),
    signal: AbortSignal.timeout(15_000),
  }).catch((cause) => {
    throw new Refusal(502, "NETWORK", `The call backend cannot be reached (${cause.cause?.code ?? cause.name}).`);
  });
  const body = await answer.json().catch(() => null);
  if (answer.ok && body?.data) return body.data;

  const { code = "SERVER", field, message = `The call backend answered ${answer.status}.` } = body?.error ?? {};
  const subject = field ? `${field}: ` : "";
  console.error(`creating a call failed: ${answer.status} ${code}: ${subject}${message}`);
  // A full backend is told by the SDK's own name for it, so that the page has one list of codes.
  const told = answer.status === 503 ? "CAPACITY" : code;
  // A refused key is this server's trouble; a visitor can do nothing about it.
  if (answer.status === 401 || answer.status === 403) {
    throw new Refusal(502, "SERVER", "The call backend does not accept this server's key.");
  }
  throw new Refusal(answer.status, told, message, Number(answer.headers.get("retry-after")) || undefined);
}

/** Counts calls by address in windows of a minute; behind a proxy, count by what the proxy says instead. */
function rateLimit(callsPerMinute) {
  let windowEnds = 0;
  const counts = new Map();
  return (address) => {
    const now = Date.now();
    if (now >= windowEnds) {
      windowEnds = now + 60_000;
      counts.clear();
    }
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    return count > callsPerMinute ? Math.ceil((windowEnds - now) / 1000) : 0;
  };
}

async function file(request, response, root, name) {
  const found = await locate(root, name);
  if (!found) throw new Refusal(404, "NOT_FOUND", "There is nothing here.");
  response.setHeader("content-type", TYPES[path.extname(found.path)] ?? "application/octet-stream");
  response.setHeader("content-length", found.size);
  response.setHeader("cache-control", "no-cache");
  if (request.method === "HEAD") return response.end();
  await pipeline(createReadStream(found.path), response);
}

/** The file behind a name, or nothing when the name leads out of the folder or to a hidden file. */
async function locate(root, name) {
  let decoded;
  try {
    decoded = decodeURIComponent(name);
  } catch {
    return null;
  }
  if (decoded.includes("\0") || decoded.split(/[/\\]/).some((part) => part.startsWith("."))) return null;
  const target = path.join(root, decoded);
  if (!target.startsWith(root + path.sep)) return null;
  const info = await stat(target).catch(() => null);
  return info?.isFile() ? { path: target, size: info.size } : null;
}

function json(response, status, body) {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.setHeader("cache-control", "no-store");
  response.end(JSON.stringify(body));
}

function refuse(response, error) {
  // A visitor who left in the middle of a file is no failure.
  if (response.headersSent || response.destroyed) return response.destroy();
  if (!(error instanceof Refusal)) {
    console.error(error);
    error = new Refusal(500, "SERVER", "The server failed.");
  }
  if (error.retryAfter) response.setHeader("retry-after", error.retryAfter);
  json(response, error.status, { error: { code: error.code, message: error.message } });
}

function settingsFrom(env) {
  const need = (name) => {
    if (!env[name]) throw new Error(`${name} is not set`);
    return env[name];
  };
  return {
    backendUrl: need("DEMO_BACKEND_URL"),
    apiKey: readFileSync(need("DEMO_API_KEY_FILE"), "utf8").trim(),
    character: env.DEMO_CHARACTER ?? "demo/guide",
    publishableKey: env.DEMO_PUBLISHABLE_KEY,
    timeLimitSeconds: Number(env.DEMO_TIME_LIMIT_SECONDS ?? 600),
    webhookUrl: env.DEMO_WEBHOOK_URL,
    sdkDir: env.DEMO_SDK_DIR,
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [host, port] = (process.env.DEMO_LISTEN ?? "127.0.0.1:3000").split(":");
  const server = customerServer(settingsFrom(process.env));
  server.listen(Number(port), host, () => {
    console.log(`customer server: http://${host}:${server.address().port}`);
  });
  process.once("SIGTERM", () => process.exit(0));
}
