// The film: the beat at a given time, the view of the camera, and the times at which the query visits the keys.

import assert from "node:assert/strict";
import { test } from "node:test";

import { boxOf, fitted } from "../../components/widgets/film/camera.js";
import { beatAt, visits } from "../../components/widgets/film/time.js";

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

test("the camera shows all parts of a beat that the model has, in the middle of the area", () => {
  const place = { q: { x: 100, w: 30 }, k: { x: 150, w: 30 } };
  const scene = /** @type {any} */ ({ place, tops: [84, 128], heights: [44, 44], width: 1180, barsTop: 84 });
  for (const area of [{ x: 8, y: 8, w: 360, h: 300 }, { x: 100, y: 8, w: 900, h: 500 }]) {
    const box = boxOf(scene, ["q", "gate", "k"], area);
    assert.deepEqual([box.x, box.x + box.w], [100, 180]);
    const { x, y, scale } = fitted(box, area);
    const left = (box.x - x) * scale;
    const right = (box.x + box.w - x) * scale;
    assert.ok(left >= area.x && right <= area.x + area.w);
    assert.ok(Math.abs((left + right) / 2 - (area.x + area.w / 2)) < 1e-9);
    assert.ok((box.y - y) * scale >= area.y && (box.y + box.h - y) * scale <= area.y + area.h);
  }
});
