import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeClock, settle } from "./fakes.mjs";

const { Reloader } = await load("ui/reloader.ts");

function begin() {
  const clock = new FakeClock();
  const reads = [];
  const reloader = new Reloader((reason) => {
    const read = { at: clock.time, isBackground: reason.isBackground, isFromEvent: reason.isFromEvent };
    reads.push(read);
    return new Promise((resolve) => (read.end = resolve));
  }, clock);
  return { clock, reads, reloader };
}

test("many events are one read now and one after it, at most one a second, and fewer while they keep coming", async () => {
  const { clock, reads, reloader } = begin();
  for (let event = 0; event < 50; event += 1) reloader.reloadSoon();
  await clock.advance(100);
  assert.deepEqual(reads.map(({ at }) => at), [100]);
  for (let event = 0; event < 50; event += 1) reloader.reloadSoon();
  await clock.advance(10_000);
  assert.equal(reads.length, 1);
  reads[0].end();
  await clock.advance(1_000);
  assert.equal(reads.length, 2);
  reads[1].end();
  await settle();
  const flood = async () => {
    for (let ms = 0; ms < 60_000; ms += 50) {
      reloader.reloadSoon();
      reads.at(-1).end();
      await clock.advance(50);
    }
    return reads.map(({ at }, place) => at - (reads[place - 1]?.at ?? 0)).slice(2);
  };
  const gaps = await flood();
  assert.ok(gaps[0] >= 1_000 && gaps[0] < 2_000, `${gaps}`);
  assert.ok(gaps.slice(-5).every((gap) => gap >= 5_000 && gap < 5_500), `${gaps}`);
  assert.ok(reads.length <= 20, `${reads.length}`);
  // After a pause an event is shown at once.
  reads.at(-1).end();
  await clock.advance(20_000);
  reads.at(-1).end();
  await clock.advance(20_000);
  const before = reads.length;
  reloader.reloadSoon();
  await clock.advance(250);
  assert.equal(reads.length, before + 1);
  assert.ok(reads.every(({ isBackground, isFromEvent }) => isBackground && isFromEvent));
});

test("somebody who asks does not wait for the second, and is answered by a read that began after", async () => {
  const { reads, reloader } = begin();
  let done = 0;
  void reloader.reload().then(() => (done += 1));
  assert.equal(reads.length, 1);
  void reloader.reload().then(() => (done += 10));
  void reloader.reload().then(() => (done += 100));
  reads[0].end();
  await settle();
  assert.equal(done, 1);
  assert.equal(reads.length, 2);
  reads[1].end();
  await settle();
  assert.equal(done, 111);
  reloader.reloadSoon();
  await settle();
  assert.equal(reads.length, 2);
  void reloader.reload();
  await settle();
  assert.equal(reads.length, 3);
  assert.deepEqual([reads[2].isBackground, reads[2].isFromEvent], [false, true]);
});

test("nothing is read after the end, and nobody waits for ever", async () => {
  const { clock, reads, reloader } = begin();
  void reloader.reload();
  const pending = reloader.reload();
  reloader.stop();
  await pending;
  reads[0].end();
  reloader.reloadSoon();
  await reloader.reload();
  await clock.advance(10_000);
  assert.equal(reads.length, 1);
});
