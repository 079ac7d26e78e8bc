// The picture of the film: every part has a place, and what appears in a beat moves there from where it comes from.

import { makeShape, setAll, setText } from "../dom.js";
import { decimal, percent } from "../numbers.js";

/**
 * @typedef {object} Next  one of the most probable tokens
 * @property {string} token @property {string} logit
 * @property {number} raw  probability before the settings @property {number} final  after them
 * @property {number} end  of its interval on the line from 0 to 1
 *
 * @typedef {object} Film
 * @property {{name: string, lit: string[], close: string[], seconds: number}[]} beats
 * @property {number} [beat]  the open one, from 1
 * @property {[string, number][]} tokens  text and id; the last is the one that is followed
 * @property {number} earlier  number of tokens before these
 * @property {number} layer @property {number} head
 * @property {number[][]} scores @property {number[][]} weights  [query][key] of the tokens shown
 * @property {Record<string, number[][]>} vectors  cells from -1 to 1, a row for each token or one for the followed
 * @property {{layer: number, cells: number[], token: string, p: string}[]} layers
 * @property {Next[]} next @property {number} chosen  which of them is drawn @property {[number, number]} bounds
 * @property {number | null} number  of the draw @property {number} temperature
 *
 * @typedef {[x: number, y: number]} Point
 * @typedef {object} Item  something that appears
 * @property {SVGElement} node @property {string} part
 * @property {Point} at @property {Point} [from]  where it comes from
 * @property {number} begins  share of its beat at which it starts @property {number} beat
 * @property {number} [ends]  the beat after which it is gone
 *
 * @typedef {{x: number, y: number, w: number, h: number}} Box
 */

export const ROW = 44;
const CELL_HEIGHT = 24;
const SIZES = { small: 11, normal: 14 };
/** Left edge and width of each part. @type {Record<string, [number, number]>} */
const COLUMNS = {
  text: [0, 104], ids: [110, 44], tok: [190, 112], pos: [330, 112], x: [470, 112], pre: [640, 112], norm: [780, 112],
  q: [950, 64], k: [1040, 64], v: [1130, 64], matrix: [1250, 8 * 44], z: [1660, 64], att: [1770, 112], mid: [1920, 112],
  ff: [2090, 120], out: [2260, 112], post: [2410, 112], layers: [2600, 0], logits: [0, 150], bars: [0, 220], line: [0, 360],
};
const LAYER_WIDTH = 82;
export const MOVE = 0.32; // share of a beat that a move takes
const LATEST = 1 - MOVE - 0.02; // share of a beat at which the last one starts

/** @param {number} value in -1..1 */
const colour = (value) => `var(--gb-div-${Math.round(4 + 4 * value)})`;
/** @param {number} share */
const shade = (share) => `color-mix(in oklab, var(--gb-primary) ${Math.round(100 * share)}%, var(--gb-card))`;

/** @param {string} text @param {number} x @param {number} y @param {Record<string, string | number>} [attributes] */
function letters(text, x, y, attributes = {}) {
  const node = makeShape("text", { x, y, "font-size": SIZES.normal, ...attributes });
  setText(node, text);
  return node;
}

/** A vector as cells. @param {number[]} values @param {number} width @param {number} perRow cells in a row of the picture */
function strip(values, width, perRow = values.length, height = CELL_HEIGHT) {
  const group = makeShape("g", {});
  const [w, h] = [width / perRow, height / Math.ceil(values.length / perRow)];
  values.forEach((value, i) => {
    const place = { x: (i % perRow) * w, y: Math.floor(i / perRow) * h - height / 2, width: w + 0.3, height: h + 0.3 };
    group.append(makeShape("rect", { ...place, style: `fill: ${colour(value)}` }));
  });
  group.append(makeShape("rect", { y: -height / 2, width, height, rx: 3, class: "gb-film-edge" }));
  return group;
}

/** The token in a box. @param {string} text @param {boolean} isFollowed */
function chip(text, isFollowed) {
  const group = makeShape("g", { class: isFollowed ? "gb-film-followed" : "" });
  const shown = text.length > 11 ? `${text.slice(0, 10)}…` : text;
  group.append(makeShape("rect", { x: 0, y: -14, width: 104, height: 28, rx: 6, class: "gb-film-chip" }));
  group.append(letters(shown, 10, 5, { class: "gb-film-mono" }));
  return group;
}

/**
 * Builds the picture.
 * @param {SVGElement} svg @param {Film} film @param {(key: string, values?: Record<string, any>) => string} t
 * @returns {{items: Item[], boxes: Record<string, Box>}}
 */
export function build(svg, film, t) {
  svg.replaceChildren();
  /** @type {Item[]} */ const items = [];
  /** @type {Record<string, Box>} */ const boxes = {};
  const n = film.tokens.length;
  const last = n - 1;
  const columns = { ...COLUMNS };
  const layersWidth = film.layers.length * LAYER_WIDTH;
  columns.logits = [columns.layers[0] + layersWidth + 80, 150];
  columns.bars = [columns.logits[0] + 160, 220];
  columns.line = [columns.bars[0] + 320, 360];
  const rowY = (/** @type {number} */ row) => row * ROW;
  const middle = rowY(last) / 2;
  const beatOf = (/** @type {string} */ name) => film.beats.findIndex((beat) => beat.name === name);

  /** @param {string} part @param {SVGElement} node @param {Point} at @param {string} beat @param {{from?: Point, begins?: number, ends?: string}} [how] */
  function add(part, node, at, beat, { from, begins = 0, ends } = {}) {
    svg.append(node);
    items.push({ part, node, at, from, begins: Math.min(begins, LATEST), beat: beatOf(beat), ends: ends === undefined ? undefined : beatOf(ends) });
  }
  /** @param {string} part @param {number} top @param {number} bottom @param {number} [width] */
  function frame(part, top, bottom, width = columns[part][1]) {
    boxes[part] = { x: columns[part][0], y: top, w: width, h: bottom - top };
  }
  /** The name of a column. @param {string} part @param {string} beat @param {number} [y] @param {string} [name] @param {string} [ends] */
  function title(part, beat, y = rowY(0) - 34, name = part, ends) {
    const text = letters(t(`part.${name}`), columns[part][1] / 2, 0, { "text-anchor": "middle", class: "gb-film-name" });
    add(part, text, [columns[part][0], y], beat, { ends });
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
  /** Of the followed token alone. @param {string} part @param {string} beat @param {Point} from @param {number} [begins] */
  function one(part, beat, from, begins = 0) {
    add(part, strip(film.vectors[part][0], columns[part][1]), [columns[part][0], rowY(last)], beat, { from, begins });
    title(part, beat, rowY(last) - 24);
    frame(part, rowY(last) - 60, rowY(last) + 60);
  }
  const endOf = (/** @type {string} */ part) => /** @type {Point} */ ([columns[part][0], rowY(last)]);

  // tokens: a line of text, then a row for each
  let written = 0;
  film.tokens.forEach(([text, id], row) => {
    const line = /** @type {Point} */ ([written, middle]);
    written += 20 + 8.6 * Math.min(11, text.length);
    const plain = letters(text, 10, 5, { class: row === last ? "gb-film-mono gb-film-named" : "gb-film-mono" });
    add("sentence", plain, line, "text", { ends: "text" });
    add("text", chip(text, row === last), [0, rowY(row)], "tokens", { from: line, begins: 0.03 * row });
    add("ids", letters(String(id), 0, 5, { class: "gb-film-number" }), [columns.ids[0], rowY(row)], "tokens", { begins: 0.4 });
  });
  if (film.earlier) {
    const more = letters(t("earlier", { n: film.earlier }), 0, 0, { class: "gb-film-name", "text-anchor": "start" });
    add("text", more, [0, rowY(0) - 34], "tokens", { begins: 0.4 });
  }
  boxes.sentence = { x: 0, y: middle - 40, w: written, h: 80 };
  frame("text", rowY(0) - 48, rowY(last) + 22);
  frame("ids", rowY(0) - 48, rowY(last) + 22);

  column("tok", "embedding", "text");
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
  } else for (const part of ["pos", "x"]) frame(part, rowY(0) - 48, rowY(last) + 22);
  column("pre", "norm", film.vectors.pos ? "x" : "tok");
  column("norm", "norm", "pre", 0.4);
  for (const [i, part] of ["q", "k", "v"].entries()) column(part, "qkv", "norm", 0.25 * i);

  // attention: the cell of query i and key j comes from the key; the query of the followed token visits each key
  const cell = (/** @type {number} */ i, /** @type {number} */ j) => /** @type {Point} */ ([columns.matrix[0] + j * ROW, rowY(i)]);
  const highest = Math.max(...film.scores.flat().map(Math.abs), 1e-9);
  film.tokens.forEach(([text], j) => {
    const name = letters(text.length > 6 ? `${text.slice(0, 5)}…` : text, 22, 0, { "text-anchor": "middle", class: "gb-film-tiny" });
    add("matrix", name, [cell(0, j)[0], rowY(0) - 28], "scores", { begins: 0.05 * j });
    const visit = strip(film.vectors.q[last], columns.q[1]);
    visit.classList.add("gb-film-visit");
    add("q", visit, [columns.k[0] - 8, rowY(j)], "scores", { from: endOf("q"), begins: 0.02 + 0.06 * j, ends: "scores" });
  });
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < n; j += 1) {
      const [score, weight] = [film.scores[i][j], film.weights[i][j]];
      const begins = i === last ? 0.1 + 0.06 * j : 0.6 + 0.03 * i;
      const box = { x: 1, y: -21, width: 42, height: 42, rx: 4 };
      const label = { "text-anchor": "middle", class: "gb-film-tiny" };
      const raw = makeShape("g", { class: Math.abs(score) > 0.6 * highest ? "gb-film-strong" : "" });
      raw.append(makeShape("rect", { ...box, style: `fill: ${colour(score / highest)}` }), letters(decimal(score, 1), 22, 4, label));
      add("matrix", raw, cell(i, j), "scores", { from: [columns.k[0], rowY(j)], begins, ends: j > i ? "scores" : "mask" });
      if (j > i) {
        const crossed = makeShape("g", { class: "gb-film-masked" });
        crossed.append(makeShape("rect", box), makeShape("path", { d: "M10 -12 L34 12 M34 -12 L10 12" }));
        add("matrix", crossed, cell(i, j), "mask", { begins: 0.05 * (j - i) });
        continue;
      }
      const mixed = makeShape("g", { class: weight > 0.5 ? "gb-film-strong" : "" });
      mixed.append(makeShape("rect", { ...box, style: `fill: ${shade(weight)}` }), letters(percent(weight).replace(/\s/g, ""), 22, 4, label));
      add("matrix", mixed, cell(i, j), "softmax", { begins: 0.05 * i });
    }
  }
  title("matrix", "scores", rowY(0) - 46, "matrix", "mask");
  title("matrix", "softmax", rowY(0) - 46, "weights");
  frame("matrix", rowY(0) - 62, rowY(last) + 24, n * ROW);

  // the values, each as strong as its weight, meet in the mix
  for (let j = 0; j < n; j += 1) {
    const moving = strip(film.vectors.v[j], columns.v[1]);
    setAll(moving, { class: "gb-film-visit", "fill-opacity": (0.15 + 0.85 * film.weights[last][j]).toFixed(2) });
    add("z", moving, endOf("z"), "values", { from: [columns.v[0], rowY(j)], begins: 0.05 * j, ends: "values" });
  }
  one("z", "values", endOf("z"), 0.55);
  one("att", "residual", endOf("z"));
  const before = strip(film.vectors.pre[last], columns.mid[1]);
  add("mid", before, endOf("mid"), "residual", { from: endOf("att"), begins: 0.1, ends: "residual" });
  one("mid", "residual", endOf("att"), 0.4);
  const grid = strip(film.vectors.ff[0], columns.ff[1], 12, 96);
  add("ff", grid, endOf("ff"), "neurons", { from: endOf("mid") });
  title("ff", "neurons", rowY(last) - 60);
  frame("ff", rowY(last) - 76, rowY(last) + 60);
  one("out", "neurons", endOf("ff"), 0.35);
  one("post", "neurons", endOf("out"), 0.6);

  film.layers.forEach(({ layer, cells, token, p }, i) => {
    const x = columns.layers[0] + i * LAYER_WIDTH;
    const group = makeShape("g", { class: layer === film.layer ? "gb-film-followed" : "" });
    const bars = strip(cells, 40, 1, 128);
    bars.setAttribute("transform", "translate(16 0)");
    const label = { "text-anchor": "middle" };
    group.append(
      bars,
      letters(t("part.layer", { n: layer }), 36, -76, { ...label, class: "gb-film-name" }),
      letters(token.length > 8 ? `${token.slice(0, 7)}…` : token, 36, 88, { ...label, class: "gb-film-mono gb-film-small" }),
      letters(p.replace(/\s/g, ""), 36, 106, { ...label, class: "gb-film-tiny" }),
    );
    const from = /** @type {Point} */ ([i ? x - LAYER_WIDTH : columns.post[0], middle]);
    add("layers", group, [x, middle], "layers", { from, begins: (0.75 * i) / film.layers.length });
  });
  boxes.layers = { x: columns.layers[0], y: middle - 100, w: layersWidth, h: 220 };

  // the most probable tokens: score, probability, and the line on which one is drawn
  const nextY = (/** @type {number} */ i) => middle + (i - (film.next.length - 1) / 2) * 36;
  film.next.forEach(({ token, logit, raw, final }, i) => {
    const name = makeShape("g", { class: i === film.chosen ? "gb-film-drawn" : "" });
    name.append(letters(token.length > 9 ? `${token.slice(0, 8)}…` : token, 84, 5, { "text-anchor": "end", class: "gb-film-mono" }));
    name.append(letters(logit, 148, 5, { "text-anchor": "end", class: "gb-film-number" }));
    const from = /** @type {Point} */ ([columns.layers[0] + layersWidth, middle]);
    add("logits", name, [columns.logits[0], nextY(i)], "logits", { from, begins: 0.08 * i });
    const bar = makeShape("g", {});
    bar.append(
      makeShape("rect", { x: 0, y: -9, width: columns.bars[1], height: 18, rx: 3, class: "gb-film-track" }),
      makeShape("rect", { x: 0, y: -9, width: columns.bars[1] * raw, height: 18, rx: 3, class: "gb-film-raw" }),
      makeShape("rect", { x: 0, y: -5, width: columns.bars[1] * final, height: 10, rx: 2, class: "gb-film-final" }),
      letters(percent(final), columns.bars[1] + 8, 5, { class: "gb-film-number" }),
    );
    add("bars", bar, [columns.bars[0], nextY(i)], "temperature", { from: [columns.logits[0] + 100, nextY(i)], begins: 0.06 * i });
  });
  const bottom = nextY(film.next.length - 1) + 24;
  title("logits", "logits", nextY(0) - 30);
  title("bars", "temperature", nextY(0) - 30);
  boxes.logits = { x: columns.logits[0], y: nextY(0) - 46, w: columns.logits[1], h: bottom - nextY(0) + 46 };
  boxes.bars = { ...boxes.logits, x: columns.bars[0], w: columns.bars[1] + 64 };

  const [lineX, lineWidth] = columns.line;
  film.next.forEach(({ token, final, end }, i) => {
    if (film.number === null) return;
    const start = i === film.chosen ? film.bounds[0] : end - final;
    const piece = makeShape("g", { class: i === film.chosen ? "gb-film-drawn" : "" });
    const width = lineWidth * final;
    piece.append(makeShape("rect", { x: 0, y: -16, width: Math.max(1, width - 1), height: 32, class: "gb-film-piece" }));
    if (width > 14 + 8 * Math.min(7, token.length)) {
      piece.append(letters(token.slice(0, 7), width / 2, 4, { "text-anchor": "middle", class: "gb-film-mono gb-film-small" }));
    }
    const from = /** @type {Point} */ ([columns.bars[0], nextY(i)]);
    add("line", piece, [lineX + lineWidth * start, middle], "draw", { from, begins: 0.06 * i });
  });
  if (film.number !== null) {
    const rest = makeShape("rect", { x: 0, y: -16, width: lineWidth, height: 32, class: "gb-film-track" });
    add("line", rest, [lineX, middle], "draw");
    svg.insertBefore(rest, svg.firstChild);
    const needle = makeShape("g", { class: "gb-film-needle" });
    needle.append(makeShape("path", { d: "M0 -18 L-6 -30 L6 -30 Z" }), makeShape("path", { d: "M0 -18 V18" }));
    needle.append(letters(decimal(film.number), 0, -36, { "text-anchor": "middle" }));
    const at = /** @type {Point} */ ([lineX + lineWidth * film.number, middle]);
    add("line", needle, at, "draw", { from: [at[0], middle - 90], begins: 0.4 });
    for (const end of [0, 1]) add("line", letters(String(end), end * lineWidth, 36, { "text-anchor": "middle", class: "gb-film-number" }), [lineX, middle], "draw");
  }
  const result = chip(film.next[film.chosen].token, true);
  const landing = /** @type {Point} */ ([lineX + lineWidth / 2 - 52, middle + 80]);
  const origin = film.number === null ? /** @type {Point} */ ([columns.bars[0], nextY(film.chosen)]) : /** @type {Point} */ ([lineX + lineWidth * film.bounds[0], middle]);
  add("line", result, landing, "draw", { from: origin, begins: 0.6 });
  boxes.line = { x: lineX - 10, y: middle - 100, w: lineWidth + 20, h: 220 };
  return { items, boxes };
}
