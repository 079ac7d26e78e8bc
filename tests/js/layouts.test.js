// Layouts: the flow, the matrix of cells, the grid of heads, the tree of branches.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CHOSEN, FOLDED, ROW, TALL, columns, firstSeen, rowHeights } from "../../components/widgets/flow/scene.js";
import { gridLayout, levelAt } from "../../components/widgets/heads/heads.js";
import { band } from "../../components/widgets/canvas.js";
import { matrixLayout, shownLabels } from "../../components/widgets/matrix.js";
import { arrange } from "../../components/widgets/ribbons/ribbons.js";
import { lanePaths, ROW as LANE } from "../../components/widgets/tree/tree.js";

/** Returns the flow of a text with this many tokens. */
function flow(count, more = {}) {
  const tokens = Array(count).fill("a");
  return { tokens, start: 0, selected: count - 1, row: tokens.map(() => 0), n_layer: 6, layer: 2, strips: { pos: {}, mid: {} }, ...more };
}

const GATED = { has_post_norm: true, strips: { mid: {}, gate: {}, up: {} } };
const PARALLEL = { is_parallel: true, strips: {} };

test("the columns of the flow fill its width, one after the other", () => {
  for (const data of [flow(3), flow(3, { layer: 0 }), flow(3, { strips: { mid: {} }, n_layer: 48, layer: 47 }), flow(3, GATED), flow(3, PARALLEL)]) {
    const placed = Object.values(columns(data, 1300));
    placed.slice(1).forEach(({ x }, i) => assert.ok(x >= placed[i].x + placed[i].w - 1e-9));
    const last = placed.at(-1);
    assert.ok(Math.abs(last.x + last.w - 1300) < 1e-9);
  }
});

test("gated neurons are a product of two vectors, parallel branches are added once, and norms after the branches are there", () => {
  const [usual, gated, parallel] = [{}, GATED, PARALLEL].map((more) => Object.keys(columns(flow(3, more), 1300)).filter((name) => !name.startsWith("layer")));
  const added = (names) => names.filter((name) => !usual.includes(name));
  assert.deepEqual(added(gated), ["after1", "gate", "up", "after2"]);
  assert.deepEqual(added(parallel), []);
  assert.deepEqual(usual.filter((name) => !parallel.includes(name)), ["pos", "plus1", "mid"]);
});

test("a layer with a window sees the newest tokens", () => {
  assert.deepEqual([0, 1, 2, 3].map((row) => firstSeen({ window: 2 }, row)), [0, 0, 1, 2]);
  assert.equal(firstSeen({ window: null }, 3), 0);
});

test("in a short text every row can be read, in a long one those around the selected one and those it attends to", () => {
  assert.deepEqual(rowHeights(flow(4)), [TALL, TALL, TALL, CHOSEN]);
  assert.deepEqual(rowHeights(flow(20)), [...Array(19).fill(ROW), CHOSEN]);
  const row = Array(64).fill(0.001);
  row[5] = 0.5;
  const heights = rowHeights(flow(64, { row, selected: 40 }));
  assert.equal(heights[40], CHOSEN);
  assert.deepEqual([heights[5], heights[38], heights[42]], [ROW, ROW, ROW]);
  assert.equal(heights[0], FOLDED);
  assert.ok(heights.reduce((sum, height) => sum + height) <= 540 + CHOSEN - FOLDED);
});

test("cells are square where the columns are tokens, and all of them fit", () => {
  for (const [rows, room] of [[5, 640], [64, 640], [64, 300]]) {
    const tokens = matrixLayout(rows, rows, true, room);
    assert.equal(tokens.wide, tokens.cell);
    assert.ok(tokens.width <= room + 2);
    assert.ok(tokens.cell <= 26);
  }
  assert.ok(matrixLayout(8, 64, false, 640).width <= 642);
});

test("labels never overlap, and that of the selected row is always there", () => {
  for (const selected of [-1, 0, 7, 63]) {
    const shown = shownLabels(64, 4, selected);
    assert.ok(shown.slice(1).every((label, i) => (label - shown[i]) * 4 >= 11), String(shown));
    assert.ok(selected < 0 || shown.includes(selected));
  }
  assert.equal(shownLabels(10, 20, 3).length, 10);
});

test("rows of pixels become the lower triangles of the heads' pictures", () => {
  const [count, side] = [3, 4];
  const parts = Array.from({ length: side }, (_, row) =>
    Uint8Array.from({ length: count * (row + 1) }, (_, i) => 100 * Math.floor(i / (row + 1)) + 10 * row + (i % (row + 1))),
  );
  for (let head = 0; head < count; head += 1) {
    for (let i = 0; i < side; i += 1) {
      for (let j = 0; j < side; j += 1) assert.equal(levelAt(parts, head, i, j), j > i ? 0 : 100 * head + 10 * i + j);
    }
  }
});

test("the grid of heads fits its room while its cells can be hit", () => {
  for (const [room, layers, heads] of [[1200, 6, 6], [1200, 12, 12], [340, 12, 12], [340, 4, 4]]) {
    const { width, cell, inner } = gridLayout(room, layers, heads);
    assert.ok(width <= room || cell === 8, `${width} of ${room}`);
    assert.ok(inner < cell);
  }
});

test("a branch begins on its parent's line, where it parts, and ends where it ends", () => {
  const lane = { parent: null, start: 0, end: 10, reached: 10, here: false, label: "", sent: {} };
  const branch = { ...lane, parent: 0, start: 5, end: 8, reached: -1, here: true };
  const [trunk, second] = lanePaths([lane, branch], 220);
  assert.equal(trunk.whole, `M10 ${LANE / 2}H210`); // 20 px per token after a margin of 10
  assert.ok(second.whole.startsWith(`M110 ${LANE / 2}V`));
  assert.ok(second.whole.endsWith("H170"));
  assert.deepEqual([trunk.tip, second.reached, second.tip], ["", "", `M110 ${1.5 * LANE}h0`]);
});

test("all ribbons that a node reads are as wide as what it writes, and nodes are within the height", () => {
  const edges = [[0, 0, 0, 30], [0, 2, 0, 70], [0, 1, 1, 45], [0, 2, 1, 5]];
  const { places, ribbons, writes, height } = arrange([[30, 45, 75], [100, 50]], edges);
  writes.forEach(({ width, from }, head) => {
    const read = ribbons.filter((_, e) => edges[e][2] === head);
    assert.equal(read.reduce((sum, each) => sum + each.width, 0), width);
    assert.ok(read.every(({ to, width: part }) => Math.abs(to - from) + part / 2 <= width / 2));
  });
  for (const { y, height: tall } of places.flat()) assert.ok(y - tall / 2 >= 0 && y + tall / 2 <= height);
  assert.equal(band([0, 10, 4], [100, 20, 4]), "M0 8C50 8 50 18 100 18V22C50 22 50 12 0 12Z");
});
