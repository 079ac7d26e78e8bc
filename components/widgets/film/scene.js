// The picture of the film: every part has a place, and what appears in a beat moves there from where it comes from.

import { makeShape } from "../dom.js";
import { decimal, percent } from "../numbers.js";
import { ending } from "./ending.js";
import { cell, chip, cut, LETTER, letters, NAME, ROW, shade, strip, together } from "./shapes.js";

/**
 * @typedef {object} Next  one of the most probable tokens
 * @property {string} token @property {string} logit
 * @property {number} raw  probability before the settings @property {number} final  after them
 * @property {number} end  of its interval on the line from 0 to 1
 *
 * @typedef {object} Film
 * @property {{name: string, lit: string[], close: string[], seconds: number, names: "all" | "followed" | "none"}[]} beats
 * @property {number} [beat]  the open one, from 1
 * @property {[string, number][]} tokens  text and id; the last is the one that is followed
 * @property {number} earlier  number of tokens before these
 * @property {number} layer @property {number} head
 * @property {number | null} window  tokens that the layer sees, null for all
 * @property {number[][]} scores @property {number[][]} weights  [query][key] of the tokens shown
 * @property {Record<string, number[][]>} vectors  cells from -1 to 1, a row for each token, or for the followed; a row
 *   for each of its heads
 * @property {Record<"q" | "k", [before: number, after: number][]> | null} turns  rotary positions: the angle of the
 *   first pair of numbers of each row, in radians
 * @property {{layer: number, cells: number[], token: string, p: string}[]} layers
 * @property {Next[]} next @property {number} chosen  which of them is drawn @property {[number, number]} bounds
 * @property {number | null} number  of the draw @property {number} temperature
 *
 * @typedef {[x: number, y: number]} Point
 * @typedef {object} Item  something that appears
 * @property {SVGElement} node @property {string} part
 * @property {Point} at @property {Point} [from]  where it comes from
 * @property {number} begins  share of its beat at which it starts @property {number} beat
 * @property {number} [ends]  the beat in which it goes @property {number} fades  share of that beat after which it is gone
 * @property {[number, number]} [grows]  its width, as shares, at the beginning and at the end of its move
 * @property {[number, number]} [turns]  its angle in degrees, at the beginning and at the end of its move
 * @property {boolean} [isName]  of a row: it stays at the left edge of the view @property {boolean} [isFollowed]
 *
 * @typedef {{x: number, y: number, w: number, h: number}} Box
 *
 * @typedef {object} Picture  what is being built
 * @property {Film} film @property {(key: string, values?: Record<string, any>) => string} t @property {boolean} isNarrow
 * @property {Record<string, [x: number, width: number]>} columns @property {Record<string, Box>} boxes
 * @property {number} last  row of the followed token @property {(row: number) => number} rowY
 * @property {(part: string, node: SVGElement, at: Point, beat: string, how?: How) => Item} add
 * @property {(part: string, top: number, bottom: number, width?: number) => void} frame
 * @property {(part: string, beat: string, y?: number, name?: string, ends?: string) => void} title
 * @property {(part: string, beat: string, from: Point, begins?: number) => void} one  a vector of the followed token
 * @property {(part: string) => Point} endOf  place of a vector of the followed token
 *
 * @typedef {object} How
 * @property {Point} [from] @property {number} [begins] @property {string} [ends] @property {number} [fades]
 * @property {[number, number]} [grows] @property {[number, number]} [turns]
 */

export const MOVE = 0.32; // share of a beat that a move takes
const LATEST = 1 - MOVE - 0.02; // share of a beat at which the last one starts
const OPTIONAL = ["pos", "x", "mid", "gate", "up", "added", "again"]; // not in every model
const DIAL = 36; // the place of a dial
const [WIDE, NARROW] = [{ vector: 168, small: 96 }, { vector: 104, small: 64 }];

/** Left edge and width of each part. @param {Film} film @param {boolean} isNarrow @returns {Record<string, Point>} */
function placed({ tokens, vectors }, isNarrow) {
  const n = tokens.length;
  const { vector, small } = isNarrow ? NARROW : WIDE;
  /** @type {[string, number, number][]} name, width, distance to the next */
  const mixing = [["matrix", n * ROW, 40], ["z", small, 130]];
  if (isNarrow) mixing.reverse(); // the values and their mix beside each other
  /** @type {[string, number, number][]} */
  const parts = [
    ["ids", 44, 56], ["tok", vector, 32], ["pos", vector, 32], ["x", vector, 130], ["pre", vector, 40], ["norm", vector, 140],
    ["q", small, DIAL + 28], ["k", small, 28], ["v", small, 80], ...mixing, ["heads", small, 60],
    ["att", vector, vectors.mid ? 36 : 60], ["base", vector, vectors.mid ? 36 : 60], ["mid", vector, 60],
    ["gate", vector, 44], ["up", vector, 44], ["ff", vector, 60], ["out", vector, vectors.again ? 36 : 60],
    ["added", vector, 36], ["again", vector, 60], ["post", vector, 160], ["layers", 0, 0],
  ];
  let x = NAME + 12;
  const there = parts.filter(([name]) => !OPTIONAL.includes(name) || vectors[name]);
  return Object.fromEntries(
    there.map(([name, width, distance]) => {
      const place = /** @type {Point} */ ([x, width]);
      x += width + distance;
      return [name, place];
    }),
  );
}

/**
 * Builds the picture.
 * @param {SVGElement} svg @param {Film} film @param {(key: string, values?: Record<string, any>) => string} t @param {boolean} isNarrow
 * @returns {{items: Item[], boxes: Record<string, Box>}}
 */
export function build(svg, film, t, isNarrow) {
  svg.replaceChildren();
  /** @type {Item[]} */ const items = [];
  /** @type {Record<string, Box>} */ const boxes = {};
  const n = film.tokens.length;
  const last = n - 1;
  const columns = placed(film, isNarrow);
  const rowY = (/** @type {number} */ row) => row * ROW;
  const beatOf = (/** @type {string} */ name) => film.beats.findIndex((beat) => beat.name === name);
  const endOf = (/** @type {string} */ part) => /** @type {Point} */ ([columns[part][0], rowY(last)]);

  /** @type {Picture["add"]} */
  function add(part, node, at, beat, { from, begins = 0, ends, fades = 1, grows, turns } = {}) {
    svg.append(node);
    const end = ends === undefined ? undefined : beatOf(ends);
    const item = { part, node, at, from, begins: Math.min(begins, LATEST), beat: beatOf(beat), ends: end, fades, grows, turns };
    items.push(item);
    return item;
  }
  /** @type {Picture["frame"]} */
  function frame(part, top, bottom, width = columns[part][1]) {
    boxes[part] = { x: columns[part][0], y: top, w: width, h: bottom - top };
  }
  /** @type {Picture["title"]} */
  function title(part, beat, y = rowY(0) - 34, name = part, ends) {
    const text = letters(t(`part.${name}`), columns[part][1] / 2, 0, { "text-anchor": "middle", class: "gb-film-name" });
    add(part, text, [columns[part][0], y], beat, { ends, fades: 0 });
  }
  /** @param {string} part @param {string} beat @param {string} from @param {number} [begins] */
  function column(part, beat, from, begins = 0) {
    film.vectors[part].forEach((values, row) => {
      const at = /** @type {Point} */ ([columns[part][0], rowY(row)]);
      const start = /** @type {Point} */ ([columns[from][0], rowY(row)]);
      add(part, strip(values, columns[part][1]), at, beat, { from: start, begins: begins + 0.05 * row });
    });
    title(part, beat);
    frame(part, rowY(0) - 48, rowY(last) + 22);
  }
  /** @type {Picture["one"]} */
  function one(part, beat, from, begins = 0) {
    add(part, strip(film.vectors[part][0], columns[part][1]), endOf(part), beat, { from, begins });
    title(part, beat, rowY(last) - 24);
    frame(part, rowY(last) - 60, rowY(last) + 60);
  }
  /** @type {Picture} */ const picture = { film, t, isNarrow, columns, boxes, last, rowY, add, frame, title, one, endOf };

  // a line of text, then a row for each of its tokens
  let written = film.earlier ? 2 * LETTER : 0;
  if (film.earlier) add("sentence", letters("…", 0, 5, { class: "gb-film-mono" }), [0, rowY(last) / 2], "text", { ends: "text" });
  film.tokens.forEach(([text, id], row) => {
    const line = /** @type {Point} */ ([written, rowY(last) / 2]);
    written += LETTER * text.length;
    const [plain, indent] = text.startsWith("·") ? [text.slice(1), LETTER] : [text, 0];
    const css = row === last ? "gb-film-mono gb-film-named" : "gb-film-mono";
    add("sentence", letters(plain, indent, 5, { class: css }), line, "text", { ends: "tokens", fades: 0.03 * row });
    const name = add("names", chip(text, row === last), [0, rowY(row)], "tokens", { from: line, begins: 0.03 * row });
    Object.assign(name, { isName: true, isFollowed: row === last });
    add("ids", letters(String(id), 0, 5, { class: "gb-film-number" }), [columns.ids[0], rowY(row)], "tokens", { begins: 0.4 });
  });
  boxes.sentence = { x: 0, y: rowY(last) / 2 - 30, w: written, h: 60 };
  frame("ids", rowY(0) - 48, rowY(last) + 22);
  if (film.earlier) {
    const more = letters(t("earlier", { n: film.earlier }), 0, 0, { class: "gb-film-name", "text-anchor": "start" });
    add("ids", more, [0, rowY(0) - 34], "tokens", { begins: 0.4, ends: "embedding" });
  }

  column("tok", "embedding", "ids");
  if (film.vectors.pos) {
    film.vectors.pos.forEach((values, row) => {
      const from = /** @type {Point} */ ([columns.pos[0], rowY(0) - 120]);
      add("pos", strip(values, columns.pos[1]), [columns.pos[0], rowY(row)], "position", { from, begins: 0.04 * row });
      add("x", letters("+", -20, 5), [columns.pos[0], rowY(row)], "position", { begins: 0.3 });
      add("x", letters("=", -20, 5), [columns.x[0], rowY(row)], "position", { begins: 0.5 });
    });
    title("pos", "position");
    frame("pos", rowY(0) - 48, rowY(last) + 22);
    column("x", "position", "pos", 0.4);
  }
  column("pre", "norm", film.vectors.pos ? "x" : "tok");
  column("norm", "norm", "pre", 0.4);
  for (const [i, part] of ["q", "k", "v"].entries()) {
    if (film.turns && part !== "v") rotated(picture, /** @type {"q" | "k"} */ (part), film.turns, 0.25 * i);
    else column(part, "qkv", "norm", 0.25 * i);
  }
  attention(picture);
  ending(picture);
  for (const { isName, node } of items) if (isName) svg.append(node); // above all else
  return { items, boxes };
}

/** Queries or keys as they are computed, then rotated by the position: a dial shows the first pair of numbers. @param {Picture} picture @param {"q" | "k"} part @param {NonNullable<Film["turns"]>} turns @param {number} begins */
function rotated({ film, columns, boxes, last, rowY, add, frame, title }, part, turns, begins) {
  const [x, width] = columns[part];
  film.vectors[`${part}0`].forEach((values, row) => {
    const from = /** @type {Point} */ ([columns.norm[0], rowY(row)]);
    add(part, strip(values, width), [x, rowY(row)], "qkv", { from, begins: begins + 0.05 * row, ends: "position", fades: 0.55 });
    add(part, strip(film.vectors[part][row], width), [x, rowY(row)], "position", { begins: 0.45 });
    const [before, after] = turns[part][row].map((angle) => (-180 * angle) / Math.PI); // y points down
    const at = /** @type {Point} */ ([x - DIAL / 2 - 4, rowY(row)]);
    const hand = () => makeShape("path", { d: "M0 0 H11 M7 -4 L11 0 L7 4" });
    const face = together("gb-film-dial", makeShape("circle", { r: 14 }), together("gb-film-was", hand()));
    face.lastElementChild?.setAttribute("transform", `rotate(${before})`);
    add(part, face, at, "position", { ends: "scores", fades: 0 });
    add(part, together("gb-film-hand", hand()), at, "position", { turns: [before, after], begins: 0.1 + 0.05 * row, ends: "scores", fades: 0 });
  });
  title(part, "qkv");
  frame(part, rowY(0) - 48, rowY(last) + 22);
  boxes[part] = { ...boxes[part], x: x - DIAL, w: width + DIAL };
}

/** Scores, mask, weights and values: the cell of query i and key j comes from the key. @param {Picture} picture */
function attention({ film, columns, last, rowY, add, frame, title, one, endOf }) {
  const place = (/** @type {number} */ i, /** @type {number} */ j) => /** @type {Point} */ ([columns.matrix[0] + j * ROW, rowY(i)]);
  film.tokens.forEach(([text], j) => {
    const name = letters(cut(text, 6), 22, 0, { "text-anchor": "middle", class: "gb-film-tiny" });
    add("matrix", name, [place(0, j)[0], rowY(0) - 28], "scores", { begins: 0.05 * j });
    const visit = strip(film.vectors.q[last], columns.q[1]);
    visit.classList.add("gb-film-visit"); // the query of the followed token goes to each key
    add("q", visit, [columns.k[0] - 8, rowY(j)], "scores", { from: endOf("q"), begins: 0.02 + 0.06 * j, ends: "scores", fades: 0.9 });
  });
  film.scores.forEach((row, i) => {
    const [lowest, highest] = [Math.min(...row), Math.max(...row)];
    row.forEach((score, j) => {
      const share = (score - lowest) / (highest - lowest || 1);
      const begins = i === last ? 0.1 + 0.06 * j : 0.6 + 0.03 * i;
      const raw = cell(decimal(score, 1), shade(0.5 * share));
      const isHidden = j > i || (film.window !== null && i - j >= film.window);
      const [ends, fades] = isHidden ? ["mask", 0] : ["softmax", 0.1 + 0.05 * i];
      add("matrix", raw, place(i, j), "scores", { from: [columns.k[0], rowY(j)], begins, ends, fades });
      if (isHidden) {
        const box = makeShape("rect", { x: 1, y: -21, width: 42, height: 42, rx: 4 });
        const cross = makeShape("path", { d: "M10 -12 L34 12 M34 -12 L10 12" });
        add("matrix", together("gb-film-masked", box, cross), place(i, j), "mask", { begins: 0.05 * Math.abs(j - i) });
        return;
      }
      const weight = film.weights[i][j];
      const text = percent(weight).replace(/\s/g, "");
      add("matrix", cell(text, shade(0.55 * weight)), place(i, j), "softmax", { begins: 0.05 * i });
      if (i < last) return;
      const factor = cell(text, shade(0.55 * weight)); // beside the value that it multiplies
      add("v", factor, [columns.v[0] + columns.v[1] + 8, rowY(j)], "values", { from: place(last, j), begins: 0.02 * j });
    });
  });
  const edge = makeShape("rect", { x: -2, y: -24, width: columns.matrix[1] + 4, height: 48, rx: 6, class: "gb-film-row" });
  add("matrix", edge, place(last, 0), "scores", { begins: 0.6 });
  title("matrix", "scores", rowY(0) - 48, "matrix", "softmax");
  title("matrix", "softmax", rowY(0) - 48, "weights");
  frame("matrix", rowY(0) - 64, rowY(last) + 26);

  film.vectors.v.forEach((values, j) => {
    const moving = strip(values, columns.v[1]);
    moving.classList.add("gb-film-visit");
    moving.setAttribute("fill-opacity", (0.15 + 0.85 * film.weights[last][j]).toFixed(2)); // as strong as its weight
    add("z", moving, endOf("z"), "values", { from: [columns.v[0], rowY(j)], begins: 0.36 + 0.04 * j, ends: "values", fades: 0.97 });
  });
  one("z", "values", endOf("z"), 0.64);
}
