// Layout of the flow: columns from left to right, rows from top to bottom.

/** @typedef {import("./scene.js").Flow} Flow */
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
