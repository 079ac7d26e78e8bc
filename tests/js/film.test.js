// The film: the beat at a given time, and the times at which the query visits the keys.

import assert from "node:assert/strict";
import { test } from "node:test";

import { beatAt, visits } from "../../components/widgets/film/paint.js";

test("a time belongs to the beat that has begun last, the end to the last beat", () => {
  const starts = [0, 4, 10];
  assert.deepEqual(beatAt(starts, 0), { beat: 0, share: 0 });
  assert.deepEqual(beatAt(starts, 3), { beat: 0, share: 0.75 });
  assert.deepEqual(beatAt(starts, 4), { beat: 1, share: 0 });
  assert.deepEqual(beatAt(starts, 10), { beat: 1, share: 1 });
});

test("the query arrives at a key before a score leaves it, and visits one key after the other", () => {
  for (const n of [1, 2, 4]) {
    const times = visits(n).flatMap(({ leaves, arrives, answers, lands }) => [leaves, arrives, answers, lands]);
    assert.deepEqual(times, [...times].sort((a, b) => a - b));
    assert.equal(new Set(times.map((time) => time.toFixed(6))).size, 3 * n + 1); // scores arrive with the next visit
    assert.ok(times[0] > 0 && times[times.length - 1] < 0.74); // after that, scores become shares
  }
});
