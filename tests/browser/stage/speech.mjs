// A recording of a human voice, as WAV files with the silence that a test wants around it.

import { readFileSync, writeFileSync } from "node:fs";

/** From Debian's `pocketsphinx-testdata`: 16 kHz, 16 bits, one channel. */
const RECORDING = "/usr/share/pocketsphinx/test/data/goforward.raw";
const RATE = 16_000;
const BYTES_PER_SECOND = RATE * 2;

/** What is said in it. */
const WORDS = "go forward ten meters";

/** Whether every word of the recording is there, in its order. */
export function understood(text) {
  const heard = text.toLowerCase().replace(/\b10\b/, "ten").replace(/[^a-z ]/g, "").split(" ");
  let next = 0;
  return WORDS.split(" ").every((word) => {
    const found = heard.indexOf(word, next);
    next = found + 1;
    return found >= 0;
  });
}

/** Whether more than one word of the recording is there. */
export function understoodInPart(text) {
  const heard = text.toLowerCase().split(/[^a-z]+/);
  return WORDS.split(" ").filter((word) => heard.includes(word)).length > 1;
}

/** Writes the recording as a WAV file. */
export function writeSpeech(file, { silenceBefore = 0, silenceAfter = 0.5 } = {}) {
  const samples = Buffer.concat([silence(silenceBefore), readFileSync(RECORDING), silence(silenceAfter)]);
  writeFileSync(file, Buffer.concat([wavHeader(samples.length), samples]));
  return file;
}

/** Returns a WAV file in which the recording is said so often, with pauses between. */
export function repeatedSpeech(times, pause = 0.8) {
  const samples = Buffer.concat(Array.from({ length: times }, () => [readFileSync(RECORDING), silence(pause)]).flat());
  return Buffer.concat([wavHeader(samples.length), samples]);
}

/** Writes white noise of the recording's length as a WAV file, much louder than the recording. */
export function writeNoise(file) {
  const samples = Buffer.alloc(readFileSync(RECORDING).length);
  for (let at = 0; at < samples.length; at += 2) samples.writeInt16LE(Math.round((Math.random() - 0.5) * 30_000), at);
  writeFileSync(file, Buffer.concat([wavHeader(samples.length), samples]));
  return file;
}

function silence(seconds) {
  return Buffer.alloc(Math.round(seconds * RATE) * 2);
}

function wavHeader(dataBytes) {
  const header = Buffer.alloc(44);
  header.write("RIFF", 0);
  header.writeUInt32LE(36 + dataBytes, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(RATE, 24);
  header.writeUInt32LE(BYTES_PER_SECOND, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36);
  header.writeUInt32LE(dataBytes, 40);
  return header;
}
