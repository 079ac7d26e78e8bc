// Progress codes restore progress; mistyped codes and codes of other versions are rejected.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeProgress, encodeProgress, readCodes } from "../../components/classroom/progress_code.js";

const KEYS = Array.from({ length: 51 }, (_, i) => `item${i}`);
const LEVELS = KEYS.map((_, i) => (i * 7) % 3);
const CODE = encodeProgress(LEVELS, KEYS);

test("a code is short and brings every level back, however it is typed", () => {
  assert.match(CODE, /^([0-9A-Z]{5}-){3}[0-9A-Z]{1,5}$/);
  for (const levels of [LEVELS, KEYS.map(() => 0), KEYS.map(() => 2)]) {
    assert.deepEqual(decodeProgress(encodeProgress(levels, KEYS), KEYS), levels);
  }
  const typed = CODE.toLowerCase().replaceAll("0", "o").replaceAll("1", "l").replaceAll("-", "");
  assert.deepEqual(decodeProgress(typed, KEYS), LEVELS);
});

test("another character, two that changed places, and a code about other items are none", () => {
  const places = [...CODE].flatMap((character, i) => (character === "-" ? [] : [i]));
  for (const place of places) {
    const other = CODE[place] === "7" ? "8" : "7";
    assert.equal(decodeProgress(CODE.slice(0, place) + other + CODE.slice(place + 1), KEYS), null);
    const [a, b] = CODE.slice(place, place + 2);
    if (b && b !== "-" && a !== b) assert.equal(decodeProgress(CODE.slice(0, place) + b + a + CODE.slice(place + 2), KEYS), null);
  }
  assert.equal(decodeProgress(CODE, [...KEYS.slice(1), KEYS[0]]), null);
  for (const text of ["", "hello", `${CODE}0`]) assert.equal(decodeProgress(text, KEYS), null);
});

test("codes are read with the names before them", () => {
  const read = readCodes(`Anna  ${CODE}\n\n王 小明, ${CODE}\n${CODE}\nTom nothing`, KEYS);
  assert.deepEqual(read.map(({ name }) => name), ["Anna", "王 小明", "", "Tom"]);
  assert.deepEqual(read.map(({ levels }) => levels !== null), [true, true, true, false]);
});
