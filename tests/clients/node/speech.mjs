// Speech: whole, streamed to a file, and refused.

import assert from "node:assert/strict";
import { createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import OpenAI from "openai";

import { client, test, throws } from "./world.mjs";

const say = { model: "colloquy-tts", voice: "alloy", input: "Hello there. This is a test." };
const kinds = { mp3: "audio/mpeg", opus: "audio/ogg", wav: "audio/wav", pcm: "application/octet-stream" };

test("speech in every format", async () => {
  for (const [format, kind] of Object.entries(kinds)) {
    const answer = await client({ version: "v2" }).audio.speech.create({ ...say, response_format: format });
    assert.equal(answer.headers.get("content-type"), kind);
    assert.match(answer.headers.get("x-svc-tts-request-id"), /^\d+$/);
    assert.ok((await answer.arrayBuffer()).byteLength > 1_000, format);
  }
});

test("speech streamed to a file", async () => {
  const folder = await mkdtemp(join(tmpdir(), "speech-"));
  const file = join(folder, "speech.opus");
  const answer = await client({ version: "v2" }).audio.speech.create({ ...say, response_format: "opus" });
  await pipeline(Readable.fromWeb(answer.body), createWriteStream(file));
  assert.equal((await readFile(file)).subarray(0, 4).toString(), "OggS");
  await rm(folder, { recursive: true });
});

test("speech refused", async () => {
  const ask = (key, more) => client({ key, version: "v2" }).audio.speech.create({ ...say, ...more });
  await throws(OpenAI.BadRequestError, () => ask("all", { model: "tts-1" }));
  // The body is `{"error": TEXT}`, and the text is what this client shows.
  const error = await throws(OpenAI.AuthenticationError, () => ask("nobody"));
  assert.deepEqual([error.error, error.message], ["Invalid API key", '401 "Invalid API key"']);
  await throws(OpenAI.PermissionDeniedError, () => ask("text"));
  await throws(OpenAI.RateLimitError, () => ask("spent"));
});
