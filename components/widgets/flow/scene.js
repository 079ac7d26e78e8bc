// The flow's scene: its data with images, colours, fonts and layout.

import { bytes } from "../numbers.js";
import { divergingMap, picture, themed } from "../canvas.js";
import { BAR, BARS, columns, foot, HEAD, NARROWEST, ROW, rowHeights, rowTops } from "./layout.js";

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
 * @property {Record<string, import("./layout.js").Column>} place
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

/** @param {import("./layout.js").Column} column */
export const right = ({ x, w }) => x + w;

/** @param {import("./layout.js").Column} column */
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
