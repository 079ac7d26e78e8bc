// The flow's scene: its data with images, colours, fonts and layout.

import { contextOf, divergingMap, picture, theme, themed } from "../canvas.js";
import { bytes } from "../labels.js";

/**
 * @typedef {{bins: number, width: number, scale: string, data: string}} Strip  one vector per row. data: base64 of uint8;
 *   bins: number of pixels; width: number of values; scale: the value at the top of the colour scale
 *
 * @typedef {{
 *   tokens: string[], start: number, total: number, selected: number, layer: number, head: number,
 *   n_layer: number, n_head: number, kv_heads: number, window: number | null, ahead: boolean,
 *   is_rotary: boolean, is_parallel: boolean, has_pre_norm: boolean, has_post_norm: boolean,
 *   strips: Record<string, Strip>, stack: Strip[], norms: string[],
 *   weights?: string, row: number[], scores: number[], scores_are: string,
 *   words: Record<string, string>, next: [string, number][], chosen: number, text: string, offered_rows?: number | null,
 * }} Flow  all fields or none
 *   tokens: those of the displayed rows. start: the first row's position. total: tokens in the text. window: how many tokens the layer sees; null for all.
 *   ahead: whether a token attends to later ones. is_parallel: whether both branches read the same vector. has_pre_norm: whether
 *   they read a normalised one. has_post_norm: whether their outputs are normalised before they are added.
 *   stack, norms: the residual stream after each layer, and the selected row's norm there. weights: base64 of uint8, rows x rows,
 *   of the head. row, scores: those of the selected row, and how a score is computed. words: each part's title, sentence and
 *   formula, one per line. next: the most probable next tokens with their probabilities. chosen: index of the one that follows in
 *   the text, or -1. offered_rows: an alternative number of tokens to show.
 */
/** @typedef {{x: number, w: number}} Column  px */
/** @typedef {[name: string, width: number][]} Sequence  an empty name stands for a gap */
/** @typedef {ReturnType<typeof makeScene>} Scene */

export const OF_HEAD = ["q", "k", "weights", "v", "z"]; // columns drawn in the head's colour

/** Returns an image with one row of pixels per vector. @param {Pick<Strip, "bins" | "data">} strip @param {Uint32Array} map */
export function stripImage({ bins, data }, map) {
  const levels = bytes(data);
  return picture(bins, levels.length / bins, (i) => map[levels[i]]);
}

/** Returns the scene; `fitScene` spreads it over a width. @param {Flow} data @param {HTMLElement} root @param {HTMLCanvasElement} canvas */
export function makeScene(data, root, canvas) {
  const heights = rowHeights(data);
  const bottom = HEAD + heights.reduce((sum, height) => sum + height);
  const layers = data.stack.map((strip, layer) => /** @type {const} */ ([`layer${layer}`, strip]));
  const map = divergingMap(root);
  const [mono, sans] = ["mono", "sans"].map((name) => themed(root, name));
  return {
    data,
    ctx: contextOf(canvas),
    heights,
    tops: heights.map((_, row) => heights.slice(0, row).reduce((sum, height) => sum + height, HEAD)),
    bottom, // of the last row, in px
    height: Math.max(bottom, HEAD + BARS * BAR) + foot(data),
    images: Object.fromEntries([...Object.entries(data.strips), ...layers].map(([name, strip]) => [name, stripImage(strip, map)])),
    weights: bytes(data.weights ?? ""),
    colours: theme(root, ["surface", "card", "text", "muted", "before", "after", "attention"]),
    fonts: { token: `13px ${mono}`, strong: `600 13px ${mono}`, name: `500 12px ${sans}`, title: `600 13px ${sans}`, note: `11px ${sans}`, shape: `11px ${mono}` },
    chosen: data.selected - data.start, // the selected row
    width: 0,
    place: /** @type {Record<string, Column>} */ ({}),
    barsTop: 0,
    scrolled: 0, // px to the right; the tokens stay in view
  };
}

/** Spreads the columns over a width in px. @param {Scene} scene @param {number} width */
export function fitScene(scene, width) {
  const { data, height, chosen } = scene;
  scene.width = width;
  scene.place = columns(data, width);
  scene.barsTop = Math.max(HEAD, Math.min(middle(scene, chosen) - (BARS * BAR) / 2, height - foot(data) - BARS * BAR));
}

/** Returns a row's vertical middle. @param {Scene} scene @param {number} row */
export const middle = ({ tops, heights }, row) => tops[row] + heights[row] / 2;

/** Returns the thickness of a row's strips. @param {Scene} scene @param {number} row */
export const thickness = ({ heights }, row) => (heights[row] > 9 ? heights[row] - 5 : Math.max(1, heights[row] - 1));

/** @param {Column} column */
export const right = ({ x, w }) => x + w;

/** @param {Column} column */
export const centre = ({ x, w }) => x + w / 2;

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

export const ROW = 18; // height of a readable row, in px
export const CHOSEN = 28; // height of the selected row
export const FOLDED = 5; // height of a collapsed row
export const TALL = 24; // height of each row if there are at most FEW
const FEW = 12;
export const HEAD = 84; // px above the rows
export const BAR = 26; // height of a next token's bar, in px
const BARS = 8;
export const ATTENTION = ["q", "k", "weights", "v", "mix", "z"]; // in these parts, the arrow keys change the head
const BUDGET = 540; // total px for all rows
// Readable rows: number of neighbours, number of attended rows, and their minimum weight.
const [NEIGHBOURS, STRONGEST, STRONG] = [7, 8, 0.04];

/** Returns the height below the rows for the residual stream and, if the branches are parallel, for attention's output. @param {Flow} data */
const foot = ({ is_parallel }) => (is_parallel ? 66 : 44);

/** @param {Flow} data @returns {Sequence} */
function sequence({ n_layer, layer, strips, is_parallel, has_post_norm }) {
  const thin = Math.max(3, Math.min(15, 132 / n_layer));
  const [position, middle, gate] = [strips.pos, strips.mid, strips.gate].map(Boolean);

  /** @param {boolean} there @param {Sequence} parts @param {Sequence} [others] */
  const only = (there, parts, others = []) => (there ? parts : others);
  /** Returns the columns for closed layers. @param {number} from @param {number} to @returns {Sequence} */
  const stack = (from, to) =>
    Array.from({ length: to - from }, (_, i) => /** @type {Sequence} */ ([[`layer${from + i}`, thin * 0.66], ["", thin * 0.34]])).flat();

  return [
    ["tokens", 92], ["", 10], ["tok", 40], ...only(position, [["", 16], ["pos", 40]]), ["", 14], ...stack(0, layer), ["", 10], ["open", 0], ["", 12], ["pre", 42],
    ["norm1", 46], ["q", 34], ["", 15], ["k", 34], ["", 10], ["weights", 132], ["", 10], ["v", 34], ["mix", 100], ["z", 34],
    ...only(has_post_norm, [["after1", 34]], [["", 22]]), ["att", 42], ...only(!is_parallel, [["plus1", 36]]), ...only(middle, [["mid", 42]]),
    ["norm2", is_parallel ? 58 : 34], ...only(gate, [["gate", 62], ["", 22], ["up", 62], ["", 22], ["ff", 74]], [["ff", 116]]),
    ...only(has_post_norm, [["", 4], ["after2", 34]], [["", 34]]), ["out", 42], ["plus2", 36], ["post", 42],
    ["", 12], ["close", 0], ["", 10], ...stack(layer + 1, n_layer), ["", 14], ["fin", 42], ["", 44], ["next", 168],
  ];
}

/** Spreads the columns over a width in px. @param {Flow} data @param {number} width @returns {Record<string, Column>} by name */
export function columns(data, width) {
  const parts = sequence(data);
  const unit = width / parts.reduce((sum, [, size]) => sum + size, 0);
  /** @type {Record<string, Column>} */ const placed = {};
  let x = 0;
  for (const [name, size] of parts) {
    if (name) placed[name] = { x, w: size * unit };
    x += size * unit;
  }
  return placed;
}

/** The selected row, its neighbours and the most attended rows are readable. @param {Flow} data @returns {number[]} px */
export function rowHeights({ tokens, selected: position, start, row: weights }) {
  const selected = position - start;
  if (tokens.length <= FEW) return tokens.map((_, i) => (i === selected ? CHOSEN : TALL));
  const all = [...tokens.keys()];
  const nearest = [...all].sort((a, b) => Math.abs(a - selected) - Math.abs(b - selected));
  const strongest = all.filter((i) => weights?.[i] > STRONG).sort((a, b) => weights[b] - weights[a]);
  const fitting = Math.floor((BUDGET - tokens.length * FOLDED) / (ROW - FOLDED));
  const readable = [...new Set([...nearest.slice(0, NEIGHBOURS), ...strongest.slice(0, STRONGEST), ...nearest])].slice(0, Math.max(0, fitting));
  return all.map((i) => (i === selected ? CHOSEN : readable.includes(i) ? ROW : FOLDED));
}
