/**
 * An overview of all heads: thumbnails on one canvas, and one of them enlarged.
 * @typedef {object} Heads
 * @property {number} [n_layer]  if missing or 0, nothing is shown
 * @property {number} [n_head]
 * @property {number} [layer]  the selected head; -1 for none
 * @property {number} [head]
 * @property {string[]} [rows]  base64 of a row of pixels each, with row + 1 levels per head
 * @property {string} [shares]  base64 of uint16, where 65535 represents 1: each head's mean weight on the first token,
 *   the previous token and the token itself
 * @property {string} [text]  a sentence that describes the selection
 */

import { frame, mapTo, picture, sizedContext, themed } from "../canvas.js";
import { MOVES, find, modified, setHint, setText } from "../dom.js";
import { t } from "../i18n.js";
import { bytes, percent } from "../labels.js";
import { defineWidget } from "../runtime.js";

/** Returns a pixel's level; 0 above the diagonal. @param {Uint8Array[]} rows @param {number} head @param {number} row @param {number} column */
export const levelAt = (rows, head, row, column) => (column > row ? 0 : rows[row][head * (row + 1) + column]);

const [GAP, EDGE, BESIDE, TALLEST] = [4, 26, 360, 560]; // px: gap between cells, margin for the numbers, room for the enlarged head, maximum total height

/** Returns the cells' positions, in px. @param {number} room width in px @param {number} layers @param {number} heads */
export function gridLayout(room, layers, heads) {
  const across = (room - (room > 700 ? BESIDE : 0) - EDGE) / heads;
  let cell = Math.max(14, Math.min(84, Math.floor(Math.min(across, Math.max(14, TALLEST / layers)))));
  if (EDGE + cell * heads > room) cell = Math.max(8, Math.floor((room - EDGE) / heads));
  return { cell, inner: cell - (cell > 24 ? GAP : 1), width: EDGE + cell * heads, height: EDGE + cell * layers };
}

const FULL = 65535;

defineWidget("heads", (root, host) => {
  const { hint } = host.options;
  const [grid, large] = [find(root, ".gb-heads-grid"), find(root, ".gb-heads-large")];
  const [canvas, target] = [grid, large].map((around) => find(around, "canvas", HTMLCanvasElement));
  const [selectedMark, spotMark] = /** @type {NodeListOf<HTMLElement>} */ (grid.querySelectorAll(".gb-heads-mark"));
  /** @type {Heads} */ let shown = {};
  let dark = false;
  /** @type {HTMLCanvasElement[]} */ let images = [];
  let shares = new Uint16Array();
  let layout = gridLayout(0, 1, 1);
  let [layers, heads] = [0, 0];
  /** @type {number[] | null} */ let selected = null; // the selected [layer, head]
  /** @type {number[] | null} */ let spot = null; // the one under the pointer or the keyboard

  /** @param {Heads} data */
  function build({ n_layer = 0, n_head = 0, layer = -1, head = 0, rows = [], shares: packed = "" }) {
    [layers, heads] = [n_layer, n_head];
    selected = layer < 0 ? null : [layer, head];
    if (spot && (spot[0] >= layers || spot[1] >= heads)) spot = null;
    shares = new Uint16Array(bytes(packed).buffer);
    if (rows === shown.rows && dark === host.dark) return;
    const colours = mapTo(root, themed(root, "attention"));
    const [levels, side] = [rows.map(bytes), rows.length];
    const colour = (/** @type {number} */ level) => colours[Math.round(Math.sqrt(255 * level))]; // faint weights stay visible
    images = Array.from({ length: layers * heads }, (_, each) => picture(side, side, (i) => colour(levelAt(levels, each, Math.floor(i / side), i % side))));
  }

  /** @param {Heads} data */
  function draw(data) {
    const { text = "" } = data;
    root.classList.toggle("gb-nothing", !data.n_layer);
    setText(find(root, "figcaption .gb-says"), text);
    setHint(find(root, "figcaption .gb-note"), t(`heads.hint.${hint}`), t(`heads.keys.${hint}`));
    grid.setAttribute("aria-label", `${t("heads.name")}. ${text}`);
    if (data !== shown || dark !== host.dark) build(data);
    [shown, dark] = [data, host.dark];
    if (data.n_layer && root.clientWidth) drawGrid();
  }

  function drawGrid() {
    layout = gridLayout(root.clientWidth, layers, heads);
    const { cell, inner } = layout;
    const ctx = sizedContext(canvas, layout.width, layout.height);
    ctx.imageSmoothingEnabled = images[0].width > cell;
    images.forEach((image, i) => ctx.drawImage(image, EDGE + (i % heads) * cell, EDGE + Math.floor(i / heads) * cell, inner, inner));
    Object.assign(ctx, { font: `11px ${themed(root, "mono")}`, fillStyle: themed(root, "muted"), textAlign: "center", textBaseline: "middle" });
    const every = (/** @type {number} */ room) => Math.ceil(room / cell);
    for (let head = 0; head < heads; head += every(18)) ctx.fillText(String(head), EDGE + head * cell + inner / 2, EDGE / 2);
    for (let layer = 0; layer < layers; layer += every(12)) ctx.fillText(String(layer), EDGE / 2 - 2, EDGE + layer * cell + inner / 2);
    point();
  }

  /** Frames the selected head and the one under the pointer, and enlarges the latter. */
  function point() {
    const { cell, inner } = layout;
    for (const [mark, at] of /** @type {const} */ ([[selectedMark, selected], [spotMark, spot]])) {
      frame(mark, at ? { left: EDGE + at[1] * cell, top: EDGE + at[0] * cell, width: inner, height: inner } : undefined);
    }
    const at = spot ?? selected;
    large.hidden = !at;
    if (at) enlarge(at);
  }

  /** @param {number[]} at */
  function enlarge([layer, head]) {
    const beside = Math.max(248, root.clientWidth - canvas.clientWidth - 300);
    const width = Math.min(beside, canvas.clientHeight - EDGE, root.clientWidth, 480);
    const ctx = sizedContext(target, width, width);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(images[layer * heads + head], 0, 0, width, width);
    setText(find(large, "strong"), t("part.head", { layer, head }));
    setText(find(large, ".gb-note"), t("heads.axis"));
    const at = 3 * (layer * heads + head);
    const [first, previous, self] = [...shares.subarray(at, at + 3)].map((share) => percent(share / FULL));
    setText(find(large, ".gb-says"), t("heads.share", { first, previous, self }));
  }

  /** @param {MouseEvent} event */
  function under({ offsetX, offsetY }) {
    const [layer, head] = [offsetY, offsetX].map((at) => Math.floor((at - EDGE) / layout.cell));
    return head >= 0 && layer >= 0 && head < heads && layer < layers ? [layer, head] : null;
  }

  /** @param {number[] | null} to */
  function move(to) {
    if (!images.length || String(to) === String(spot)) return;
    spot = to;
    point();
  }

  /** @param {number[]} at */
  function open([layer, head]) {
    selected = [layer, head];
    point();
    host.send({ layer, head });
  }

  canvas.addEventListener("pointermove", (event) => move(under(event)));
  canvas.addEventListener("pointerleave", () => move(null));
  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at) open(at);
  });
  grid.addEventListener("blur", () => move(null));
  grid.addEventListener("keydown", (event) => {
    if (!images.length || modified(event)) return;
    const [layer, head] = spot ?? selected ?? [0, 0];
    const step = MOVES[event.key];
    const within = (/** @type {number} */ at, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, at));
    if (step) move([within(layer + step[0], layers), within(head + step[1], heads)]);
    else if (event.key === "Enter" || event.key === " ") open([layer, head]);
    else if (event.key === "Escape") move(null);
    else return;
    event.preventDefault();
  });
  return { draw };
});
