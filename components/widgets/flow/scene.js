// The flow's scene: its data with images, colours, fonts and layout.

import { divergingMap, picture, themed } from "../canvas.js";
import { bytes } from "../labels.js";

/**
 * @typedef {{bins: number, width: number, scale: string, data: string}} Strip  one vector per row. data: base64 of uint8;
 *   bins: number of pixels; width: number of values; scale: the value at the top of the colour scale
 *
 * @typedef {object} Flow  all fields or none
 * @property {string} doc  identifies the text
 * @property {string[]} tokens  tokens of the displayed rows
 * @property {number} start  the first row's position
 * @property {number} total  number of tokens in the text
 * @property {number} selected  the selected position
 * @property {number} layer
 * @property {number} head
 * @property {number} n_layer
 * @property {number} n_head
 * @property {boolean} ahead  whether a token attends to later ones
 * @property {number} kv_heads  number of key/value heads
 * @property {string} scores_are  how a score is computed
 * @property {boolean} is_rotary  whether queries and keys are rotated
 * @property {boolean} is_parallel  whether attention and the feed-forward network read the same vector
 * @property {boolean} has_pre_norm  whether the branches read a normalised vector
 * @property {boolean} has_post_norm  whether outputs are normalised before they are added
 * @property {number | null} window  number of tokens that the layer sees; null for all
 * @property {Record<string, Strip>} strips
 * @property {Strip[]} stack  the residual stream after each layer
 * @property {string[]} norms  the selected row's norm after each layer
 * @property {string} [weights]  base64 of uint8, rows x rows: the head's attention
 * @property {number[]} row  the selected row's weights
 * @property {number[]} scores
 * @property {Record<string, string>} words  each part's text: title, sentence and formula, one per line
 * @property {[string, number][]} next  the most probable next tokens and their probabilities
 * @property {number | null} [offered_rows]  an alternative number of tokens to show
 * @property {number} chosen  index of the token that follows in the text; -1 for none
 * @property {string} text  a sentence that describes the picture
 *
 * @typedef {{heights: number[], tops: number[]}} Rows  px
 *
 * @typedef {object} Painted
 * @property {Flow} data
 * @property {Record<string, HTMLCanvasElement>} images  one row of pixels per token
 * @property {Uint8Array} weights
 * @property {Record<string, string>} colours
 * @property {string[]} headColours
 * @property {Record<string, string>} fonts
 * @property {number} chosen  the selected row
 * @property {Rows} goal  the rows' final positions
 * @property {number} height  px
 * @property {number} width  px
 * @property {Record<string, Column>} place
 * @property {number} barsTop  px
 * @property {number} scrolled  px scrolled to the right; the tokens stay in view
 *
 * @typedef {Painted & Rows} Scene
 */

export const OF_HEAD = ["q", "k", "weights", "v", "z"]; // columns drawn in the head's colour

/** @param {HTMLElement} root */
function themeColours(root) {
  const names = ["surface", "card", "text", "muted", "line", "accent", "before", "after"];
  return { ...Object.fromEntries(names.map((name) => [name, themed(root, name)])), head: themed(root, "attention") };
}

/** @param {HTMLElement} root */
function themeFonts(root) {
  const [mono, sans] = ["mono", "sans"].map((name) => themed(root, name));
  return {
    token: `13px ${mono}`,
    strong: `600 13px ${mono}`,
    name: `500 12px ${sans}`,
    title: `600 13px ${sans}`,
    note: `11px ${sans}`,
    shape: `11px ${mono}`,
  };
}

/** @param {Flow} data @param {Uint32Array} map */
function stripImages({ strips, stack, tokens }, map) {
  const layers = stack.map((strip, layer) => /** @type {const} */ ([`layer${layer}`, strip]));
  const made = [...Object.entries(strips), ...layers].map(([name, strip]) => {
    const levels = bytes(strip.data);
    return [name, picture(strip.bins, tokens.length, (i) => map[levels[i]])];
  });
  return Object.fromEntries(made);
}

/** @param {Flow} data @param {HTMLElement} root @param {import("../runtime.js").Host} host @returns {Scene} */
export function makeScene(data, root, host) {
  const heights = rowHeights(data);
  const goal = { heights, tops: rowTops(heights) };
  return {
    ...goal,
    data,
    goal,
    images: stripImages(data, divergingMap(root)),
    weights: bytes(data.weights ?? ""),
    colours: themeColours(root),
    headColours: Array(data.n_head).fill(themed(root, "attention")),
    fonts: themeFonts(root),
    chosen: data.selected - data.start,
    height: heightOf(data, heights),
    width: 0,
    place: {},
    barsTop: 0,
    scrolled: 0,
  };
}

/** Returns the picture's height in px. @param {Flow} data @param {number[]} heights the rows' heights */
export const heightOf = (data, heights) => HEAD + Math.max(heights.reduce((sum, height) => sum + height, 0), BARS * BAR) + foot(data);

/** Spreads the columns over a width in px. @param {Scene} scene @param {number} room */
export function fitScene(scene, room) {
  scene.width = Math.max(NARROWEST, room);
  scene.place = columns(scene.data, scene.width);
  const middle = scene.goal.tops[scene.chosen] + ROW / 2;
  scene.barsTop = Math.max(HEAD, Math.min(middle - (BARS * BAR) / 2, scene.height - foot(scene.data) - BARS * BAR));
}

/** Returns a row's vertical middle. @param {Scene} scene @param {number} row */
export const middle = ({ tops, heights }, row) => tops[row] + heights[row] / 2;

/** Returns the thickness of a row's strips. @param {Scene} scene @param {number} row */
export const thickness = ({ heights }, row) => (heights[row] > 9 ? heights[row] - 5 : Math.max(1, heights[row] - 1));

/** @param {Column} column */
export const right = ({ x, w }) => x + w;

/** @param {Column} column */
export const centre = ({ x, w }) => x + w / 2;

/** Returns the last row's lower edge. @param {Scene} scene */
export const bottom = ({ tops, heights }) => tops[tops.length - 1] + heights[heights.length - 1];

/** Returns the shape of the tensor shown by a part, or "" if there is none. @param {Flow} data @param {string} part */
export function shapeOf({ strips, n_head, kv_heads, total }, part) {
  if (part === "weights") return `1 × ${n_head} × ${total} × ${total}`;
  if (!strips[part]) return "";
  if (part === "pos") return `${total} × ${strips[part].width}`;
  const heads = "kv".includes(part) ? kv_heads : n_head;
  return `1 ×${"qkvz".includes(part) ? ` ${heads} ×` : ""} ${total} × ${strips[part].width}`;
}

/** Returns the first key that a row sees. @param {Flow} data @param {number} row */
export const firstSeen = ({ window }, row) => (window === null ? 0 : Math.max(0, row + 1 - window));

/** Returns the query heads that share the selected head's keys and values. @param {Flow} data @returns {number[]} */
export function group({ head, n_head, kv_heads }) {
  const size = n_head / kv_heads;
  const first = Math.floor(head / size) * size;
  return Array.from({ length: size }, (_, i) => first + i);
}

// Where things are

/** @typedef {{x: number, w: number}} Column  px */
/** @typedef {[name: string, width: number][]} Sequence  an empty name stands for a gap */

export const ROW = 18; // height of a readable row, in px
export const CHOSEN = 28; // height of the selected row, in px
export const FOLDED = 5; // height of a collapsed row, in px
export const FEW = 12; // up to this number of rows, each is TALL px high
export const TALL = 24;
export const HEAD = 84; // px above the rows
export const BAR = 26; // height of a next token's bar, in px
export const BARS = 8;
export const NARROWEST = 1180; // minimum width, in px
export const TARGET = 24; // minimum size of a click target, in px
const BUDGET = 540; // total px for all rows
// Readable rows: number of neighbours, number of attended rows, and their minimum weight.
const [NEIGHBOURS, STRONGEST, STRONG] = [7, 8, 0.04];
export const ATTENTION = ["q", "k", "weights", "v", "mix", "z"]; // in these parts, the arrow keys change the head

/**
 * Returns the height below the rows for the residual stream and, if both branches are added at once, for attention's
 * output. @param {Flow} data @returns {number} px
 */
export const foot = ({ is_parallel }) => (is_parallel ? 66 : 44);

/** Returns the columns from the stream to attention's output. @param {Flow} data @returns {Sequence} */
const attention = ({ has_post_norm, is_parallel }) => [
  ["norm1", 46], ["q", 34], ["", 15], ["k", 34], ["", 10], ["weights", 132], ["", 10], ["v", 34], ["mix", 100], ["z", 34],
  has_post_norm ? ["after1", 34] : ["", 22], ["att", 42], ...(is_parallel ? [] : /** @type {Sequence} */ ([["plus1", 36]])),
];

/** Returns the columns from the stream to the feed-forward network's output. @param {Flow} data @returns {Sequence} */
const feedForward = ({ strips, has_post_norm, is_parallel }) => [
  ["norm2", is_parallel ? 58 : 34],
  .../** @type {Sequence} */ (strips.gate ? [["gate", 62], ["", 22], ["up", 62], ["", 22], ["ff", 74]] : [["ff", 116]]),
  ["", has_post_norm ? 4 : 34], ...(has_post_norm ? /** @type {Sequence} */ ([["after2", 34]]) : []), ["out", 42], ["plus2", 36],
];

/** @param {Sequence} parts */
const widthOf = (parts) => parts.reduce((sum, [, width]) => sum + width, 0);

/** @param {Flow} data @returns {Sequence} */
function sequence(data) {
  const { n_layer, layer, strips } = data;
  const thin = Math.max(3, Math.min(15, 132 / n_layer));

  /** Returns the columns for closed layers. @param {number} from @param {number} to @returns {Sequence} */
  const stack = (from, to) =>
    Array.from({ length: to - from }, (_, i) => /** @type {Sequence} */ ([[`layer${from + i}`, thin * 0.66], ["", thin * 0.34]])).flat();

  /** @type {Sequence} */
  const position = strips.pos ? [["", 16], ["pos", 40]] : [];
  /** @type {Sequence} */
  const middle = strips.mid ? [["mid", 42]] : [];
  return [
    ["tokens", 92], ["", 10], ["tok", 40], ...position, ["", 14], ...stack(0, layer), ["", 10], ["open", 0], ["", 12], ["pre", 42],
    ...attention(data), ...middle, ...feedForward(data), ["post", 42],
    ["", 12], ["close", 0], ["", 10], ...stack(layer + 1, n_layer), ["", 14], ["fin", 42], ["", 44], ["next", 168],
  ];
}

/**
 * Returns the columns by name, spread over a width in px.
 * @param {Flow} data @param {number} width @returns {Record<string, Column>}
 */
export function columns(data, width) {
  const parts = sequence(data);
  const unit = width / widthOf(parts);
  /** @type {Record<string, Column>} */
  const placed = {};
  let x = 0;
  for (const [name, size] of parts) {
    if (name) placed[name] = { x, w: size * unit };
    x += size * unit;
  }
  return placed;
}

/**
 * Returns the row heights: the selected row, its neighbours and the most attended rows are readable; the others are
 * collapsed. @param {Flow} data @returns {number[]} px
 */
export function rowHeights({ tokens, selected: position, start, row: weights }) {
  const selected = position - start;
  if (tokens.length <= FEW) return tokens.map((_, i) => (i === selected ? CHOSEN : TALL));
  const all = [...tokens.keys()];
  const nearest = [...all].sort((a, b) => Math.abs(a - selected) - Math.abs(b - selected));
  const strongest = all.filter((i) => weights?.[i] > STRONG).sort((a, b) => weights[b] - weights[a]);
  const heights = Array(tokens.length).fill(FOLDED);
  let room = BUDGET - tokens.length * FOLDED;
  for (const i of new Set([...nearest.slice(0, NEIGHBOURS), ...strongest.slice(0, STRONGEST), ...nearest])) {
    if (room < ROW - FOLDED) break;
    heights[i] = ROW;
    room -= ROW - FOLDED;
  }
  heights[selected] = CHOSEN;
  return heights;
}

/** Returns the upper edges of rows with these heights. @param {number[]} heights @returns {number[]} px */
export function rowTops(heights) {
  let y = HEAD;
  return heights.map((height) => (y += height) - height);
}
