// The film: which beat a time belongs to, and where the camera looks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { around, fitted } from "../../components/widgets/film/camera.js";
import { beatAt } from "../../components/widgets/film/time.js";

test("a time belongs to the beat that has begun last, the end to the last beat", () => {
  const starts = [0, 4, 10];
  assert.deepEqual(beatAt(starts, 0), { beat: 0, share: 0 });
  assert.deepEqual(beatAt(starts, 3), { beat: 0, share: 0.75 });
  assert.deepEqual(beatAt(starts, 4), { beat: 1, share: 0 });
  assert.deepEqual(beatAt(starts, 10), { beat: 1, share: 1 });
});

test("the camera shows all lit parts, in the shape of the stage", () => {
  const boxes = { a: { x: 0, y: 0, w: 100, h: 50 }, b: { x: 200, y: -20, w: 10, h: 10 } };
  const box = around(boxes, ["a", "b"]);
  assert.deepEqual(box, { x: 0, y: -20, w: 210, h: 70 });
  for (const aspect of [0.5, 1, 3, 6]) {
    const seen = fitted(box, aspect, 10);
    assert.ok(Math.abs(seen.w / seen.h - aspect) < 1e-9);
    assert.ok(fitted(box, aspect, 10, 500).h >= 500); // letters do not become huge
    assert.ok(seen.x <= -10 && seen.y <= -30 && seen.x + seen.w >= 220 && seen.y + seen.h >= 60);
  }
});
