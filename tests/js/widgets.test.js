// Data that widgets read and write: tokens, figures, beam searches, switches, requests to the server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { explained, finder } from "../../components/widgets/glossary.js";
import { fit } from "../../components/widgets/composer/composer.js";
import { changed, toggled, wordAt } from "../../components/widgets/composer/copy.js";
import { Search } from "../../components/widgets/beams/beams.js";
import { recoloured } from "../../components/widgets/chart/chart.js";
import { fits } from "../../components/widgets/course.js";
import { createRequests } from "../../components/widgets/picks.js";
import { hasSwitch, partsOf, readFactors, writeFactors } from "../../components/widgets/switches/switches.js";
import { inUnit, readToken, surprisal, tintEnds, tintLevel } from "../../components/widgets/tokens/chips.js";
import "./catalogue.js";

test("a token is read from its line", () => {
  const token = readToken('[7," a",0.25,3,"g","",1.5]');
  assert.deepEqual(token, { id: 7, text: " a", probability: 0.25, rank: 3, kind: "g", bytes: "", entropy: 1.5, unseen: [] });
  assert.deepEqual(readToken('[7,"\\u00ad",null,null,"p","",null,[["U+00AD","SOFT HYPHEN"]]]').unseen, [["U+00AD", "SOFT HYPHEN"]]);
  assert.equal(readToken('[7,"a",null,null,"p"]').entropy, null);
});

test("tints go from nothing to full along each scale", () => {
  const token = (more) => ({ ...readToken('[1,"a",0.5,1,"g","",2]'), ...more });
  assert.equal(tintLevel("probability", token({})), 0.5);
  assert.equal(tintLevel("probability", token({ kind: "p" })), null);
  assert.deepEqual([1, 1000, 5000].map((rank) => tintLevel("rank", token({ rank }))), [1, 0, 0]);
  assert.deepEqual([0, 4, 20].map((entropy) => tintLevel("entropy", token({ entropy }))), [0, 0.5, 1]);
  assert.equal(tintLevel("surprisal", token({ probability: 2 ** -4 })), 0.5);
  assert.equal(tintLevel("surprisal", token({ entropy: null })), null);
  assert.deepEqual(tintEnds("surprisal"), ["surprisal 0", "≥ 8 bits"]);
});

test("surprisal is -log2, infinite for what was impossible", () => {
  const impossible = readToken('[1,"a",0,9,"g","",2]');
  assert.equal(surprisal(readToken('[1,"a",0.125,9,"g"]')), 3);
  assert.equal(inUnit(surprisal(impossible)), "∞ bits");
});

test("colours have other ones on the dark theme, labels and the figure that was given have not", () => {
  const figure = { data: [{ marker: { color: ["#fff", "#000"], colorscale: [[0, "#fff"]] }, text: ["#fff"] }], layout: { title: "#fff" } };
  const before = structuredClone(figure);
  const made = recoloured(figure, { "#fff": "#111" });
  assert.deepEqual(made.data[0], { marker: { color: ["#111", "#000"], colorscale: [[0, "#111"]] }, text: ["#fff"] });
  assert.equal(made.layout.title, "#fff");
  made.layout.width = 3;
  assert.deepEqual(figure, before);
});

const LINES = [
  '[-1,"a",1,-0.5,-0.5,-0.5,"kept"]', '[-1,"b",1,-1,-1,-1,"pruned"]',
  '[0,"c",2,-1,-1.5,-0.75,"kept"]', '[0,"d",2,-2,-2.5,-1.25,"finished"]',
];
const search = (lines, best, done) => new Search({ lines, best, done });

test("a candidate is alive while a text that goes on, or a whole one, comes after it", () => {
  assert.deepEqual([...search(LINES.slice(0, 2), 0, false).alive()], [0]);
  assert.deepEqual([...search(LINES, 3, true).alive()].sort(), [0, 3]);
  const { best, done, depth, height, candidates } = search(LINES, 3, true);
  assert.deepEqual([best, done, depth, height, candidates.length], [3, true, 2, 2, 4]);
  assert.deepEqual(search(LINES, 3, true).path(3), [0, 3]);
});

test("arrow keys go to the parent, the first child and the neighbours of a candidate", () => {
  const made = search(LINES, 3, true);
  const keys = ["ArrowLeft", "ArrowRight", "ArrowDown", "ArrowUp", "Home", "End", "a"];
  assert.deepEqual(keys.map((key) => made.next(key, 0)), [-1, 2, 1, -1, 0, 3, -1]);
  assert.equal(made.next("ArrowLeft", 3), 0);
});

test("a switch is for one part, a number of a layer for both its branches, a column's name for all layers", () => {
  const size = { n_layer: 2, n_head: 3 };
  const parts = (row, column) => partsOf(size, [row, column]).join();
  assert.deepEqual([parts(1, 1), parts(1, 2), parts(2, 4), parts(2, 5)], ["a0", "h0.0", "h1.2", "f1"]);
  assert.deepEqual([parts(2, 0), parts(0, 1), parts(0, 5)], ["a1,f1", "a0,a1", "f0,f1"]);
  assert.deepEqual([0, 1, 2, 5].map((column) => hasSwitch(size, [0, column])), [false, true, false, true]);
});

test("factors are read and written in the same notation", () => {
  for (const edits of ["", "h0.1=0", "a1=0.5,f0=2,h1.2=1.25"]) assert.equal(writeFactors(readFactors(edits)), edits);
});

test("what was selected is sent with all that is not shown yet", () => {
  const asked = [];
  const requests = createRequests((payload) => asked.push(payload));
  requests.want({ layer: 1 });
  requests.want({ layer: 2 });
  requests.want({ head: 0 });
  assert.deepEqual(asked, [{ layer: 1 }, { layer: 2 }, { layer: 2, head: 0 }]);
  requests.answered();
  assert.deepEqual(requests.wanted(), {});
});

test("the letters are the largest with which the text needs no scrolling", () => {
  const sizeOf = (text, width = 1000, isPhone = false) => fit(text, width, isPhone, (line) => line.length / 2);
  assert.deepEqual(sizeOf("short"), { name: "line", px: 44 });
  assert.deepEqual(sizeOf("x".repeat(50)), { name: "line", px: 40 });
  assert.equal(sizeOf("x".repeat(60)).name, "two");
  assert.equal(sizeOf("one\ntwo\nthree").name, "medium");
  assert.equal(sizeOf("x".repeat(300)).name, "small");
  assert.equal(sizeOf("x".repeat(50), 350, true).name, "two");
});

test("a click hides all tokens of a word and shows them again, and one word remains", () => {
  const words = [0, 1, 3];
  assert.deepEqual([-1, 0, 1, 2, 3, 9].map((token) => wordAt(words, token)), [-1, 0, 1, 1, 2, 2]);
  const once = toggled(words, 4, new Set(), 1);
  assert.deepEqual([...once], [1, 2]);
  assert.deepEqual([...toggled(words, 4, once, 1)], []);
  const twice = toggled(words, 4, once, 2);
  assert.deepEqual([...toggled(words, 4, twice, 0)], [...twice]);
});

test("what two texts share at their ends does not overlap", () => {
  const parts = [["", "abc"], ["abc", "abxc"], ["aa", "aaa"], ["abc", "xyz"]].map(([a, b]) => changed(a, b));
  assert.deepEqual(parts, [[0, 0], [2, 1], [2, 0], [0, 0]]);
});

test("a technical word is found as a whole, the longest first, once in a sentence, and not in a quotation", () => {
  const terms = [{ word: "logit", forms: ["logits", "logit"], says: "a score" }, { word: "lens", forms: ["logit lens"], says: "a view" }];
  const parts = (text) => explained(text, finder(terms)).map((part) => (typeof part === "string" ? part : `<${part[1].word}>`));
  assert.deepEqual(parts("Logits, then a logit; the logit lens."), ["<logit>", ", then a logit; the ", "<lens>", "."]);
  assert.deepEqual(parts("logitech “logit” none"), ["logitech “logit” none"]);
  const frequent = [{ word: "weights", forms: [], says: "numbers" }];
  assert.equal(explained("Weights", finder(frequent)).length, 1);
  assert.equal(explained("Weights", finder(frequent, true))[0][1], frequent[0], "a header explains it");
  assert.deepEqual(explained("它的熵是", finder([{ word: "熵", forms: ["熵"], says: "…" }])).length, 3);
});

test("a lesson is found by all words of a search, by its number, and by that of its topic", () => {
  const lesson = { title: "Causal self-attention", says: "Each token has a query.", part: "Attention", words: "QKV 交叉熵" };
  const found = ["", "attention QUERY", "attention key", "4", "8", "#8", "#4", "48", "qkv", "交叉熵"].map((query) => fits(query, lesson, 4, 8));
  assert.deepEqual(found, [true, true, false, true, true, true, false, false, true, true]);
});
