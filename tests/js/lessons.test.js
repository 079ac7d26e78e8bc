// Search in the list of lessons.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fits } from "../../components/widgets/lesson/head.js";

test("a lesson is found by all words of a search, by its number, and by that of its topic", () => {
  const lesson = { title: "Causal self-attention", says: "Each token has a query.", part: "Attention", words: "QKV 交叉熵" };
  const found = ["", "attention QUERY", "attention key", "4", "8", "#8", "#4", "48", "qkv", "交叉熵"].map((query) => fits(query, lesson, 4, 8));
  assert.deepEqual(found, [true, true, false, true, true, true, false, false, true, true]);
});
