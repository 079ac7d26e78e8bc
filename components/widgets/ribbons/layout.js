// Layout of the ribbons in the flow.

const ROW = 30; // height of the smallest node in px
const GAP = 8; // px between two nodes
const WIDTH_ALL = 150; // total width in px of all heads' ribbons
const WIDEST = 64; // maximum width in px of one head's ribbon

/**
 * @typedef {{y: number, height: number}} Node  a node's middle and height
 * @typedef {{from: number, to: number, width: number}} Ribbon  y of the middle at both ends, and the width, in px
 * @typedef {object} Layout
 * @property {Node[]} tokens  the last node stands for all unlisted tokens
 * @property {Node[]} heads @property {number} height
 * @property {Ribbon[][]} reads  [head][token]
 * @property {Ribbon[]} writes  one ribbon per head
 */

/** @param {number[]} sizes @param {number} height @returns {Node[]} the nodes stacked vertically, centred in the height */
function stack(sizes, height) {
  let y = (height - sizes.reduce((sum, size) => sum + size + GAP, -GAP)) / 2;
  return sizes.map((size) => {
    const node = { y: y + size / 2, height: size };
    y += size + GAP;
    return node;
  });
}

/**
 * Places ribbons side by side at a node.
 * @param {Node} node @param {number[]} widths @returns {number[]} the ribbons' middles
 */
function shared(node, widths) {
  let y = node.y - widths.reduce((sum, width) => sum + width, 0) / 2;
  return widths.map((width) => (y += width) - width / 2);
}

/**
 * @param {number[]} falls each head's drop in probability when switched off, in 0..1
 * @param {number[][]} weights [head][token]; the remainder to 1 goes to the unlisted tokens
 * @returns {Layout}
 */
export function layout(falls, weights) {
  const sum = falls.reduce((total, fall) => total + fall, 0) || 1;
  const unit = Math.min(WIDTH_ALL / sum, WIDEST / Math.max(...falls, 1e-9));
  const widths = falls.map((fall) => Math.max(2, fall * unit));
  const split = weights.map((row, h) => [...row, Math.max(0, 1 - row.reduce((a, b) => a + b, 0))].map((weight) => weight * widths[h]));
  const ofToken = split[0].map((_, t) => split.map((row) => row[t]));
  const size = (/** @type {number[]} */ each) => Math.max(ROW, each.reduce((a, b) => a + b, 0) + 6);
  const [tokenSizes, headSizes] = [ofToken.map(size), widths.map((width) => size([width]))];
  const tall = (/** @type {number[]} */ sizes) => sizes.reduce((total, each) => total + each + GAP, -GAP);
  const height = Math.max(tall(tokenSizes), tall(headSizes));
  const [tokens, heads] = [stack(tokenSizes, height), stack(headSizes, height)];
  const starts = tokens.map((node, t) => shared(node, ofToken[t]));
  const ends = heads.map((node, h) => shared(node, split[h]));
  const target = shared({ y: height / 2, height }, widths);
  return {
    tokens,
    heads,
    height,
    reads: split.map((row, h) => row.map((width, t) => ({ from: starts[t][h], to: ends[h][t], width }))),
    writes: widths.map((width, h) => ({ from: heads[h].y, to: target[h], width })),
  };
}

/** Returns a ribbon's outline from x0 to x1. @param {Ribbon} ribbon @param {number} x0 @param {number} x1 */
export function outline({ from, to, width }, x0, x1) {
  const [half, bend] = [width / 2, (x0 + x1) / 2];
  const f = (/** @type {number} */ value) => value.toFixed(1);
  const edge = (/** @type {number} */ by) => [from + by, to + by].map(f);
  const [[a, b], [c, d]] = [edge(-half), edge(half)];
  return `M${f(x0)} ${a}C${f(bend)} ${a} ${f(bend)} ${b} ${f(x1)} ${b}V${d}C${f(bend)} ${d} ${f(bend)} ${c} ${f(x0)} ${c}Z`;
}
