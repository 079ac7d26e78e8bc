// The shapes of the film's picture: words, vectors and tokens.

import { makeShape, setText } from "../dom.js";

export const ROW = 44; // between two rows
export const NAME = 92; // width of a token's name
export const LETTER = 8.43; // width of a letter of the monospace at SIZE
const SIZE = 14;
const CELL_HEIGHT = 26;

/** @param {number} value in -1..1 */
export const colour = (value) => `var(--gb-div-${Math.round(4 + 4 * value)})`;
/** @param {number} share */
export const shade = (share) => `color-mix(in oklab, var(--gb-primary) ${Math.round(100 * share)}%, var(--gb-card))`;
/** @param {string} text @param {number} most letters */
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** @param {string} text @param {number} x @param {number} y @param {Record<string, string | number>} [attributes] */
export function letters(text, x, y, attributes = {}) {
  const node = makeShape("text", { x, y, "font-size": SIZE, ...attributes });
  setText(node, text);
  return node;
}

/** Shapes as one. @param {string} css @param {...SVGElement} nodes */
export function together(css, ...nodes) {
  const group = makeShape("g", css ? { class: css } : {});
  group.append(...nodes);
  return group;
}

/** A vector as cells. @param {number[]} values @param {number} width @param {number} perRow cells in a row of the picture */
export function strip(values, width, perRow = values.length, height = CELL_HEIGHT) {
  const group = makeShape("g", {});
  const [w, h] = [width / perRow, height / Math.ceil(values.length / perRow)];
  values.forEach((value, i) => {
    const place = { x: (i % perRow) * w, y: Math.floor(i / perRow) * h - height / 2, width: w + 0.3, height: h + 0.3 };
    group.append(makeShape("rect", { ...place, style: `fill: ${colour(value)}` }));
  });
  group.append(makeShape("rect", { y: -height / 2, width, height, class: "gb-film-edge" }));
  return group;
}

/** A token in a box. @param {string} text @param {boolean} isFollowed */
export function chip(text, isFollowed) {
  const box = makeShape("rect", { x: 0, y: -14, width: NAME, height: 28, rx: 6, class: "gb-film-chip" });
  return together(isFollowed ? "gb-film-followed" : "", box, letters(cut(text, 9), 8, 5, { class: "gb-film-mono" }));
}

/** A cell of the matrix. @param {string} text @param {string} fill */
export function cell(text, fill) {
  const box = makeShape("rect", { x: 1, y: -21, width: 42, height: 42, rx: 4, style: `fill: ${fill}` });
  return together("", box, letters(text, 22, 4.5, { "text-anchor": "middle", class: "gb-film-tiny" }));
}
