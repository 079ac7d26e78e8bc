// Attention weights: how they are transferred and computed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fullScale, STAGES, unpack, workedOut } from "../../components/widgets/stages/numbers.js";

const base64 = (array) => Buffer.from(array.buffer).toString("base64");

const [n, hs] = [3, 4];
const queries = [[1, 2, 3, 4], [-1, 0.5, 2, 1], [0.25, 1, -1, 2]];
const keys = [[2, 0, 1, -1], [1, 1, 1, 1], [0.5, -2, 1, 0]];
const dot = (a, b) => a.reduce((sum, x, d) => sum + x * b[d], 0);
const score = (i, j) => dot(queries[i], keys[j]) / Math.sqrt(hs);
const logSum = (i) => Math.log([0, 1, 2].slice(0, i + 1).reduce((sum, j) => sum + Math.exp(score(i, j)), 0));
const grid = (at) => base64(Float32Array.from({ length: n * n }, (_, at9) => at(Math.floor(at9 / n), at9 % n)));
const vectors = (rows) => {
  const scale = Math.max(...rows.flat().map(Math.abs));
  return { scale, data: base64(Int16Array.from(rows.flat(), (x) => Math.round((x / scale) * 32767))) };
};
const side = { start: 0, tokens: ["a", "b", "c"] };
const packed = {
  head_size: hs,
  scale: 1 / Math.sqrt(hs),
  cap: null,
  window: null,
  ahead: false,
  queries: side,
  keys: side,
  q: vectors(queries),
  k: vectors(keys),
  v: vectors(keys),
  z: vectors(queries),
  scaled: grid(score),
  weights: grid((i, j) => (j > i ? 0 : Math.exp(score(i, j) - logSum(i)))),
  sums: base64(Float32Array.from([0, 1, 2], logSum)),
};
const near = (a, b) => assert.ok(Math.abs(a - b) < 2e-3, `${a} is not ${b}`);

test("every stage follows from the one before", () => {
  const { stages, hidden, sums } = unpack(packed);
  assert.deepEqual(Object.keys(stages).sort(), [...STAGES].sort());
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < n; j += 1) {
      const [q, k] = [stages.q, stages.k].map((stage, s) => Array.from({ length: hs }, (_, d) => stage.at(s ? j : i, d)));
      near(stages.raw.at(i, j), dot(q, k));
      near(stages.scaled.at(i, j), stages.raw.at(i, j) / Math.sqrt(hs));
      assert.equal(hidden(i, j), j > i ? "later" : null);
      assert.equal(Number.isNaN(stages.masked.at(i, j)), j > i);
      if (j <= i) near(stages.weights.at(i, j), Math.exp(stages.masked.at(i, j) - sums[i]));
    }
    near([0, 1, 2].reduce((sum, j) => sum + (stages.weights.at(i, j) || 0), 0), 1);
  }
});

test("without a mask nothing is hidden", () => {
  const { stages, hidden } = unpack({ ...packed, ahead: true, weights: grid(() => 1 / 3) });
  assert.equal(hidden(0, 2), null);
  near(stages.masked.at(0, 2), score(0, 2));
  near(stages.weights.at(0, 2), 1 / 3);
});

test("a cap is in the score, not in the product before it", () => {
  const { stages } = unpack({ ...packed, cap: 0.5 });
  near(stages.raw.at(2, 1), dot(queries[2], keys[1]));
  near(stages.scaled.at(2, 1), 0.5 * Math.tanh(score(2, 1) / 0.5));
  assert.equal(stages.masked.at(2, 1), stages.scaled.at(2, 1));
});

test("the numbers of a pair are said stage by stage; one that is masked has no value to mix", () => {
  const said = (cell) => workedOut(packed, unpack(packed), cell, (key) => key).lines.map(([, text]) => text);
  assert.deepEqual(said([2, 1]), ["dot", "scale", "kept", "weight", "part", "output"]);
  assert.deepEqual(said([1, 2]), ["dot", "scale", "hidden", "none", "output"]);
  const narrow = { ...packed, window: 2 };
  assert.deepEqual(workedOut(narrow, unpack(narrow), [2, 0], (key) => key).lines.map(([, text]) => text), ["dot", "scale", "outside", "none", "output"]);
  assert.deepEqual([0, 1, 2].map((j) => unpack(narrow).hidden(1, j)), [null, null, "later"]);
  const { strips } = workedOut(packed, unpack(packed), [2, 1], (key) => key);
  strips[2].forEach((product, d) => near(product, strips[0][d] * strips[1][d]));
});

test("one outlier in a hundred does not pale the other numbers", () => {
  const at = (row, column) => (row === 0 && column === 0 ? 1000 : 1);
  assert.equal(fullScale(20, 20, at, false), 1);
  assert.equal(fullScale(1, 1, () => 0, false), 1e-6);
});
