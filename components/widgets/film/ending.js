// The second half of the film's picture: from the output of the heads to the next token.

import { makeShape } from "../dom.js";
import { decimal, percent } from "../numbers.js";
import { cut, LETTER, letters, strip, together } from "./shapes.js";

/** @typedef {import("./scene.js").Picture} Picture @typedef {import("./scene.js").Point} Point */

const LAYER_WIDTH = [82, 62]; // wide, narrow
const NARROW_LAYERS = 6; // shown on a narrow screen
const BETWEEN_NEXT = 36; // from one of the next tokens to the one below it
const HEADS_HEIGHT = 240; // of all heads together

/** @param {Picture} picture */
export function ending(picture) {
  residual(picture);
  const right = layers(picture);
  next(picture, right);
}

/** What all heads found is added to the vector, then what the neurons output. @param {Picture} picture */
function residual(picture) {
  const { film, columns, last, rowY, add, frame, title, one, endOf } = picture;
  const y = rowY(last);
  const { heads } = film.vectors;
  const height = Math.min(26, HEADS_HEIGHT / heads.length);
  const top = y - (height * heads.length) / 2;
  heads.forEach((values, head) => {
    const node = together(head === film.head ? "gb-film-followed" : "", strip(values, columns.heads[1], values.length, height - 3));
    const at = /** @type {Point} */ ([columns.heads[0], top + height * (head + 0.5)]);
    add("heads", node, at, "residual", { from: head === film.head ? endOf("z") : undefined, begins: head === film.head ? 0 : 0.1 });
  });
  title("heads", "residual", top - 12);
  frame("heads", top - 32, y + HEADS_HEIGHT / 2);
  one("att", "residual", endOf("heads"), 0.2);
  const isParallel = Boolean(film.vectors.added);
  if (!isParallel) {
    one("base", "residual", endOf("pre"), 0);
    one("mid", "residual", endOf("base"), 0.6);
    sign("mid", "+", "base", "residual", 0.4);
    sign("mid", "=", "mid", "residual", 0.6);
  }
  neurons(picture, isParallel ? "base" : "mid");
  if (!isParallel) {
    one("post", "neurons", endOf("out"), 0.6);
    sign("post", "+", "post", "neurons", 0.6);
    return;
  }
  one("added", "sum", endOf("att"), 0.1);
  one("again", "sum", endOf("base"), 0.25);
  one("post", "sum", endOf("again"), 0.6);
  for (const [text, part, begins] of /** @type {[string, string, number][]} */ ([["+", "added", 0.1], ["+", "again", 0.25], ["=", "post", 0.6]])) {
    sign("post", text, part, "sum", begins);
  }

  /** A sign before a part. @param {string} of @param {string} text @param {string} part @param {string} beat @param {number} begins */
  function sign(of, text, part, beat, begins) {
    add(of, letters(text, text === "+" && part === "post" ? -34 : -22, 5), endOf(part), beat, { begins });
  }
}

/** From a vector to the neurons and their output; gated ones are a product. @param {Picture} picture @param {string} input */
function neurons({ film, columns, boxes, last, rowY, add, frame, title, one, endOf }, input) {
  const y = rowY(last);
  const isGated = Boolean(film.vectors.gate);
  const first = isGated ? "gate" : "neurons";
  const arrow = (/** @type {string} */ part, /** @type {string} */ beat, /** @type {string} */ text, begins = 0) =>
    add(part, letters(text, -36 + (text === "→" ? 0 : 8), 5), endOf(part), beat, { begins });
  if (!boxes[input]) one(input, first, endOf("pre"), 0);
  for (const [i, part] of (isGated ? ["gate", "up", "ff"] : ["ff"]).entries()) {
    const from = part === "ff" && isGated ? "up" : input;
    const begins = isGated ? 0.22 * i : 0;
    add(part, strip(film.vectors[part][0], columns[part][1], 16, 108), endOf(part), first, { from: endOf(from), begins });
    title(part, first, y - 66);
    frame(part, y - 84, y + 70);
    arrow(part, first, part === "ff" && isGated ? "=" : part === "up" ? "×" : "→", begins);
  }
  one("out", "neurons", endOf("ff"), 0.35);
  arrow("out", "neurons", "→", 0.35);
}

/** The vector after each layer, with what it would predict. @param {Picture} picture @returns {number} where they end */
function layers({ film, t, isNarrow, columns, boxes, last, rowY, add }) {
  const middle = rowY(last);
  const n = isNarrow ? Math.min(NARROW_LAYERS, film.layers.length) : film.layers.length;
  const shown = Array.from({ length: n }, (_, i) => film.layers[Math.round((i * (film.layers.length - 1)) / Math.max(1, n - 1))]);
  const step = LAYER_WIDTH[Number(isNarrow)];
  shown.forEach(({ layer, cells, token, p }, i) => {
    const x = columns.layers[0] + i * step;
    const bars = strip(cells, 44, 1, 128);
    bars.setAttribute("transform", `translate(${step / 2 - 22} 0)`);
    const label = { "text-anchor": "middle" };
    const group = together(
      layer === film.layer ? "gb-film-followed" : "",
      bars,
      letters(t("part.layer", { n: layer }), step / 2, -76, { ...label, class: "gb-film-name" }),
      letters(cut(token, isNarrow ? 6 : 8), step / 2, 88, { ...label, class: "gb-film-mono" }),
      letters(p.replace(/\s/g, ""), step / 2, 108, { ...label, class: "gb-film-number" }),
    );
    const from = /** @type {Point} */ ([i ? x - step : columns.post[0], middle]);
    add("layers", group, [x, middle], "layers", { from, begins: (0.75 * i) / n });
  });
  const width = n * step;
  boxes.layers = { x: columns.layers[0], y: middle - 100, w: width, h: 220 };
  return columns.layers[0] + width;
}

/** Logits, probabilities, and the line on which one token is drawn. @param {Picture} picture @param {number} left */
function next({ film, t, columns, boxes, last, rowY, add, title }, left) {
  const middle = rowY(last);
  columns.logits = [left + 110, 160];
  columns.bars = [columns.logits[0] + 172, 220];
  columns.line = [columns.bars[0] + 340, 360];
  const [barX, barWidth] = columns.bars;
  const y = (/** @type {number} */ i) => middle + (i - (film.next.length - 1) / 2) * BETWEEN_NEXT;
  film.next.forEach(({ token, logit, raw, final }, i) => {
    const name = together(
      "",
      letters(cut(token, 10), 94, 5, { "text-anchor": "end", class: "gb-film-mono" }),
      letters(logit, 158, 5, { "text-anchor": "end", class: "gb-film-number" }),
    );
    add("logits", name, [columns.logits[0], y(i)], "logits", { from: [left, middle], begins: 0.08 * i });
    const [track, before, after] = [["track", 18], ["raw", 18], ["final", 10]].map(([css, height]) =>
      makeShape("rect", { x: 0, y: -Number(height) / 2, width: barWidth, height, rx: 2, class: `gb-film-${css}` }),
    );
    const at = /** @type {Point} */ ([barX, y(i)]);
    const number = (/** @type {number} */ p) => letters(percent(p), barWidth + 8, 5, { class: "gb-film-number" });
    add("bars", track, at, "temperature", {});
    add("bars", before, at, "temperature", { grows: [0, raw], begins: 0.02 * i });
    add("bars", after, at, "temperature", { grows: [raw, final], begins: 0.5 });
    add("bars", number(raw), at, "temperature", { begins: 0.1, ends: "temperature", fades: 0.6 });
    add("bars", number(final), at, "temperature", { begins: 0.6 });
  });
  const [top, bottom] = [y(0) - 30, y(film.next.length - 1) + 30];
  title("logits", "logits", top);
  [["raw", t("part.raw")], ["final", t("part.final", { n: film.temperature })]].forEach(([css, text], i) => {
    const swatch = makeShape("rect", { x: 0, y: -10, width: 12, height: 12, rx: 2, class: `gb-film-${css}` });
    const name = letters(text, 18, 0, { class: "gb-film-name", "text-anchor": "start" });
    add("bars", together("", swatch, name), [barX + 120 * i, top], "temperature", { begins: i ? 0.5 : 0 });
  });
  boxes.logits = { x: columns.logits[0], y: top - 16, w: columns.logits[1], h: bottom - top + 16 };
  boxes.bars = { ...boxes.logits, x: barX, w: barWidth + 70 };
  draw({ film, columns, boxes, add }, middle, y);
}

/**
 * @param {Pick<Picture, "film" | "columns" | "boxes" | "add">} picture @param {number} middle
 * @param {(i: number) => number} barY of the bar of a token
 */
function draw({ film, columns, boxes, add }, middle, barY) {
  const [x, width] = columns.line;
  const y = middle - 30;
  const end = { "text-anchor": "middle", class: "gb-film-number" };
  if (film.number !== null) {
    add("line", makeShape("rect", { x: 0, y: -16, width, height: 32, class: "gb-film-track" }), [x, y], "draw");
    film.next.forEach(({ token, final, end: upper }, i) => {
      const start = i === film.chosen ? film.bounds[0] : upper - final;
      const size = width * final;
      const piece = together(
        i === film.chosen ? "gb-film-drawn" : "",
        makeShape("rect", { x: 0, y: -16, width: Math.max(1, size - 1), height: 32, class: "gb-film-piece" }),
      );
      const name = cut(token, 8);
      if (size > 14 + LETTER * name.length) piece.append(letters(name, size / 2, 5, { "text-anchor": "middle", class: "gb-film-mono" }));
      add("line", piece, [x + width * start, y], "draw", { from: [columns.bars[0], barY(i)], begins: 0.06 * i });
    });
    const needle = together(
      "gb-film-needle",
      makeShape("path", { d: "M0 -18 L-6 -30 L6 -30 Z" }),
      makeShape("path", { d: "M0 -18 V18" }),
      letters(decimal(film.number), 0, -36, { "text-anchor": "middle" }),
    );
    add("line", needle, [x + width * film.number, y], "draw", { from: [x + width * film.number, y - 90], begins: 0.4 });
    for (const share of [0, 1]) add("line", letters(String(share), share * width, 36, end), [x, y], "draw");
  }
  // the text goes on
  const text = (film.earlier ? "… " : "") + film.tokens.map(([token]) => token.replace(/^·/, " ")).join("").trimStart();
  const token = film.next[film.chosen].token;
  const [before, after] = [cut(text, 60), token.startsWith("·") ? token.slice(1) : token];
  const long = LETTER * (before.length + token.length);
  const start = x + Math.max(0, (width - long) / 2);
  add("line", letters(before, 0, 5, { class: "gb-film-mono" }), [start, middle + 70], "draw", { begins: 0.5 });
  const place = /** @type {Point} */ ([start + LETTER * (before.length + (token === after ? 0 : 1)), middle + 70]);
  const from = /** @type {Point} */ (film.number === null ? [columns.bars[0], barY(film.chosen)] : [x + width * film.bounds[0], y]);
  add("line", letters(after, 0, 5, { class: "gb-film-mono gb-film-named" }), place, "draw", { from, begins: 0.62 });
  boxes.line = { x: x - 10, y: middle - 110, w: Math.max(width, long) + 20, h: 210 };
}
