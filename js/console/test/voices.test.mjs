import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

test("a waveform has the loudest sample of each stretch", async () => {
  const { HEIGHT, WIDTH, barsPath, peaksOf, playedBars } = await load("voices/peaks.ts");
  const samples = Float32Array.from([0, 0.5, -1, 0.25, 0, 0, 2, 0]);
  assert.deepEqual(peaksOf(samples, 4), [0.5, 1, 0, 1]);
  // Fewer samples than bars, and none at all.
  assert.deepEqual(peaksOf(Float32Array.from([0.5, -0.25]), 4), [0.5, 0.5, 0.25, 0.25]);
  assert.deepEqual(peaksOf(new Float32Array(0), 3), [0, 0, 0]);

  const bars = (path) => [...path.matchAll(/M([\d.]+) ([\d.]+)V([\d.]+)/g)].map(([, ...numbers]) => numbers.map(Number));
  const drawn = bars(barsPath([0.25, 0.5, 0]));
  assert.deepEqual(drawn.map(([x]) => x), [WIDTH / 6, WIDTH / 2, (5 * WIDTH) / 6]);
  const heights = drawn.map(([, top, bottom]) => bottom - top);
  assert.deepEqual(heights, [(HEIGHT - 2) / 2, HEIGHT - 2, 1]);
  // What has been played and the rest are the whole, on the same scale.
  assert.deepEqual([...bars(barsPath([0.25, 0.5, 0], 0, 1)), ...bars(barsPath([0.25, 0.5, 0], 1))], drawn);
  assert.equal(barsPath([0.5], 0, 0), "");
  assert.deepEqual([playedBars(0, 10, 100), playedBars(5, 10, 100), playedBars(11, 10, 100), playedBars(1, 0, 100)], [0, 50, 100, 0]);
});

test("the state of a voice says what is next", async () => {
  const { isLocked, secondsOf, splitShare, stateOf } = await load("voices/words.ts");
  const state = (splitting_status, embedding_status, sample_count = 3) => stateOf({ splitting_status, embedding_status, sample_count }).text;
  assert.equal(state("in_progress", "idle", 0), "splitting");
  assert.equal(state("completed", "in_progress"), "embedding");
  assert.equal(state("failed", "idle", 0), "splitting failed");
  assert.equal(state("completed", "failed"), "embedding failed");
  assert.equal(state("completed", "completed"), "ready");
  assert.equal(state("completed", "idle"), "not embedded");
  assert.equal(state("idle", "idle", 0), "empty");

  assert.deepEqual([secondsOf("01:05"), secondsOf("125:00"), secondsOf("00:00")], [65, 7_500, 0]);
  const samples = [{ index: 0, source_timestamp: "00:00", duration: 10 }, { index: 1, source_timestamp: "00:20", duration: 10 }];
  assert.equal(splitShare({ samples, original_duration: 60 }), 0.5);
  assert.equal(splitShare({ samples: [], original_duration: 60 }), 0);
  assert.equal(splitShare({ samples, original_duration: 20 }), 1);
  assert.equal(splitShare({ samples, original_duration: null }), null);
  const status = (splitting, embedding) => ({ status: { splitting, embedding } });
  assert.deepEqual([isLocked(status("in_progress", "idle")), isLocked(status("completed", "in_progress")), isLocked(status("failed", "idle"))], [true, true, false]);
});

test("paths of voices have their names encoded", async () => {
  const { libraryPath, voicePath } = await load("voices/paths.ts");
  assert.equal(voicePath({ partner: "acme", name: "Ada & Bob?" }, "samples", 3), "/api/voices/acme/Ada%20%26%20Bob%3F/samples/3");
  assert.equal(libraryPath("acme", "empty"), "/api/voices/acme/empty");
});
