// Formatting of numbers and tokens. tests/test_scripts.py tests that Python formats numbers the same way.

import assert from "node:assert/strict";
import { test } from "node:test";

import { bytes, change, partsOf, small, visible } from "../../components/widgets/labels.js";
import { fill } from "../../components/widgets/i18n.js";
import "./catalogue.js";

test("a number that would be all zeros is a power of ten", () => {
  assert.deepEqual([small(0.005), small(0.0049), small(-1.46e-4), small(0)], ["0.01", "4.9 × 10⁻³", "−1.5 × 10⁻⁴", "0.00"]);
});

test("a change names both percentages if they differ", () => {
  assert.deepEqual([change(0.914, 0.09), change(0.999, 0.001), change(0.001, 0.002)], ["91% → 9%", ">99% → <1%", "under 1%"]);
});

test("white space is visible, and values take the places of their names", () => {
  assert.equal(visible(" a\n\t\r\0"), "·a⏎⇥[CR][NUL]");
  assert.deepEqual(partsOf("a \u200b\xadb\n"), ["a ", "\u200b\xad", "b\n"]);
  assert.deepEqual(partsOf("\u0301e\u0301"), ["", "\u0301", "e\u0301"]);
  assert.equal(fill("{a} of {b}, {c}", { a: 0, b: "{a}" }), "0 of {a}, ");
});

test("base64 becomes its bytes", () => {
  const given = Uint8Array.from({ length: 256 }, (_, i) => i);
  assert.deepEqual(bytes(Buffer.from(given).toString("base64")), given);
});
