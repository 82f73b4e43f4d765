// A receiver of completion webhooks. It checks the Standard Webhooks signature when it has the secret, answers 200, and
// logs which call ended; never what was said in it. Plain Node.js, no dependencies.
//
//   WEBHOOK_CERT=cert.pem WEBHOOK_KEY=key.pem WEBHOOK_SECRET=whsec_... node webhook.mjs

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { pathToFileURL } from "node:url";

/** A signature older than this may be a replay. */
const TOLERANCE_SECONDS = 300;

const MAX_BODY_BYTES = 64 * 1024;

/** How many message ids are remembered, to tell a repeated delivery. */
const MAX_SEEN = 10_000;

/**
 * Checks a Standard Webhooks signature (https://www.standardwebhooks.com).
 *
 * @param {string} secret - `whsec_` and base64, or plain text.
 * @param {Record<string, string | undefined>} headers - The request's headers, in lower case.
 * @param {Buffer} body - The body as it came, before any parsing.
 */
export function verify(secret, headers, body, now = Date.now()) {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  const signatures = headers["webhook-signature"];
  if (!id || !timestamp || !signatures) return false;
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS)) return false;
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : secret;
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  // There may be several, while a secret is being changed.
  return signatures.split(" ").some((signature) => {
    const [version, value] = signature.split(",");
    const given = Buffer.from(value ?? "", "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/**
 * A receiver, not yet listening.
 *
 * @param {object} settings
 * @param {string} [settings.secret] - Without it, deliveries are not checked.
 * @param {{cert: Buffer | string, key: Buffer | string}} [settings.tls] - Without it, the receiver speaks plain HTTP,
 *   for use behind a proxy that has the certificate.
 * @param {(event: object, headers: object) => void} settings.onEvent - Called once for each message.
 */
export function webhookReceiver({ secret, tls, onEvent }) {
  const seen = new Set();
  const handler = async (request, response) => {
    const answer = (status) => response.writeHead(status).end();
    if (request.method !== "POST") return answer(405);
    const body = await read(request).catch(() => null);
    if (!body) return answer(413);
    if (secret && !verify(secret, request.headers, body)) {
      console.error("a delivery with a wrong signature was refused");
      return answer(401);
    }
    let event;
    try {
      event = JSON.parse(body);
    } catch {
      return answer(400);
    }
    // Deliveries may come twice. The id tells; answering 200 again stops the sender.
    const id = request.headers["webhook-id"];
    if (!id || !seen.has(id)) {
      if (id) seen.add(id);
      if (seen.size > MAX_SEEN) seen.delete(seen.values().next().value);
      onEvent(event, request.headers);
    }
    answer(200);
  };
  return tls ? https.createServer(tls, handler) : http.createServer(handler);
}

async function read(request) {
  const pieces = [];
  let size = 0;
  for await (const piece of request) {
    size += piece.length;
    if (size > MAX_BODY_BYTES) throw new Error("the body is too large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function log({ data }) {
  console.log(`webhook: ${data?.id} ${data?.state}, ${data?.duration?.call_seconds} s`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { WEBHOOK_LISTEN = "127.0.0.1:3443", WEBHOOK_CERT, WEBHOOK_KEY, WEBHOOK_SECRET } = process.env;
  const [host, port] = WEBHOOK_LISTEN.split(":");
  const tls = WEBHOOK_CERT && { cert: readFileSync(WEBHOOK_CERT), key: readFileSync(WEBHOOK_KEY) };
  const server = webhookReceiver({ secret: WEBHOOK_SECRET, tls, onEvent: log });
  server.listen(Number(port), host, () => {
    console.log(`webhook receiver: ${tls ? "https" : "http"}://${host}:${server.address().port}`);
  });
  process.once("SIGTERM", () => process.exit(0));
}
