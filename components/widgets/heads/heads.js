/**
 * An overview of all heads: thumbnails on one canvas, and one of them enlarged.
 * @typedef {object} Heads
 * @property {number} [n_layer]  if missing or 0, nothing is shown
 * @property {number} [n_head]
 * @property {number} [layer]  the selected head; -1 for none
 * @property {number} [head]
 * @property {number} [side]  a thumbnail's side in pixels
 * @property {string[]} [rows]  base64; concatenated, they are pixel rows, each with row + 1 levels per head
 * @property {string} [shares]  base64 of uint16, where 65535 represents 1: each head's mean weight on the first token,
 *   the previous token and the token itself
 * @property {string} [text]  a sentence that describes the selection
 */

import { contextOf, mapTo, picture, sizedContext, themed } from "../canvas.js";
import { MOVES, find, modified, setHint, setText } from "../dom.js";
import { t } from "../i18n.js";
import { bytes, percent } from "../labels.js";
import { defineWidget } from "../runtime.js";

/**
 * Converts pixel rows, each with row + 1 levels per head, to one image per head.
 * @param {Uint8Array} data the rows in order
 * @param {number} count number of heads
 * @param {number} side a picture's side
 * @returns {Uint8Array[]} side x side levels for each head; 0 above the diagonal
 */
export function headPictures(data, count, side) {
  const pictures = Array.from({ length: count }, () => new Uint8Array(side ** 2));
  let at = 0;
  for (let row = 0; at < data.length; row += 1) {
    for (const levels of pictures) {
      levels.set(data.subarray(at, at + row + 1), row * side);
      at += row + 1;
    }
  }
  return pictures;
}

/** @param {Uint8Array[]} parts */
export function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const [GAP, EDGE, BESIDE, TALLEST] = [4, 26, 360, 560]; // px: gap between cells, margin for the numbers, room for the enlarged head, maximum total height

/**
 * Computes the positions of the cells in a grid of layers x heads, in px.
 * @param {number} room width in px @param {number} layers @param {number} heads
 */
export function gridLayout(room, layers, heads) {
  const across = (room - (room > 700 ? BESIDE : 0) - EDGE) / heads;
  let cell = Math.max(14, Math.min(84, Math.floor(Math.min(across, Math.max(14, TALLEST / layers)))));
  if (EDGE + cell * heads > room) cell = Math.max(8, Math.floor((room - EDGE) / heads));
  return { edge: EDGE, cell, inner: cell - (cell > 24 ? GAP : 1), width: EDGE + cell * heads, height: EDGE + cell * layers };
}

const FULL = 65535;

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const { options } = host;
  const [grid, large] = [find(root, ".gb-heads-grid"), find(root, ".gb-heads-large")];
  const [canvas, target] = [grid, large].map((around) => find(around, "canvas", HTMLCanvasElement));
  const [selectedMark, spotMark] = /** @type {NodeListOf<HTMLElement>} */ (grid.querySelectorAll(".gb-heads-mark"));
  /** @type {Heads | null} */ let shown = null;
  let dark = false;
  let size = { n_layer: 0, n_head: 0, side: 0 };
  /** @type {number[] | null} */ let selected = null;
  let shares = new Uint16Array();
  /** @type {HTMLCanvasElement[]} */ let images = [];
  let layout = gridLayout(0, 1, 1);
  /** @type {number[] | null} */ let spot = null; // the head under the pointer or chosen with keys; null for the selected head

  /** @param {Heads} data */
  function build(data) {
    const { n_layer = 0, n_head = 0, side = 0, rows = [], shares: packed = "" } = data;
    size = { n_layer, n_head, side };
    selected = (data.layer ?? -1) < 0 ? null : [data.layer ?? 0, data.head ?? 0];
    if (spot && (spot[0] >= n_layer || spot[1] >= n_head)) spot = null;
    shares = new Uint16Array(bytes(packed).buffer);
    if (rows === shown?.rows && dark === host.dark) return;
    const colours = mapTo(root, themed(root, "attention"));
    const pictures = headPictures(joined(rows.map(bytes)), n_layer * n_head, side);
    images = pictures.map((levels) => picture(side, side, (i) => colours[Math.round(Math.sqrt(255 * levels[i]))])); // faint weights stay visible
  }

  /** @param {Heads} data */
  function draw(data) {
    const { text = "" } = data;
    root.classList.toggle("gb-nothing", !data.n_layer);
    setText(find(root, "figcaption .gb-says"), text);
    setHint(find(root, "figcaption .gb-note"), t(`heads.hint.${options.hint}`), t(`heads.keys.${options.hint}`));
    grid.setAttribute("aria-label", `${t("heads.name")}. ${text}`);
    if (data !== shown || dark !== host.dark) build(data);
    [shown, dark] = [data, host.dark];
    if (data.n_layer && root.clientWidth) drawGrid();
  }

  function drawGrid() {
    const { n_layer, n_head, side } = size;
    layout = gridLayout(root.clientWidth, n_layer, n_head);
    const { edge, cell, inner } = layout;
    const ctx = sizedContext(canvas, layout.width, layout.height);
    ctx.imageSmoothingEnabled = side > cell;
    images.forEach((image, i) => ctx.drawImage(image, edge + (i % n_head) * cell, edge + Math.floor(i / n_head) * cell, inner, inner));
    ctx.font = `11px ${themed(root, "mono")}`;
    ctx.fillStyle = themed(root, "muted");
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    const every = (/** @type {number} */ room) => Math.ceil(room / cell);
    for (let head = 0; head < n_head; head += every(18)) ctx.fillText(String(head), edge + head * cell + inner / 2, edge / 2);
    for (let layer = 0; layer < n_layer; layer += every(12)) ctx.fillText(String(layer), edge / 2 - 2, edge + layer * cell + inner / 2);
    point();
  }

  /** Frames the selected head and the one under the pointer, and enlarges the latter. */
  function point() {
    const { edge, cell, inner } = layout;
    for (const [mark, at] of /** @type {const} */ ([[selectedMark, selected], [spotMark, spot]])) {
      mark.hidden = !at;
      const place = at && { left: edge + at[1] * cell, top: edge + at[0] * cell, width: inner, height: inner };
      for (const [name, length] of Object.entries(place ?? {})) mark.style.setProperty(name, `${length}px`);
    }
    large.hidden = !(spot ?? selected);
    if (!large.hidden) enlarge(spot ?? selected ?? []);
  }

  /** @param {number[]} at */
  function enlarge([layer, head]) {
    const beside = Math.max(248, root.clientWidth - canvas.clientWidth - 300);
    const width = Math.min(beside, canvas.clientHeight - layout.edge, root.clientWidth, 480);
    sizedContext(target, width, width);
    const ctx = contextOf(target);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(images[layer * size.n_head + head], 0, 0, width, width);
    setText(find(large, "strong"), t("part.head", { layer, head }));
    setText(find(large, ".gb-note"), t("heads.axis"));
    const at = 3 * (layer * size.n_head + head);
    const [first, previous, self] = [...shares.subarray(at, at + 3)].map((share) => percent(share / FULL));
    setText(find(large, ".gb-says"), t("heads.share", { first, previous, self }));
  }

  /** @param {MouseEvent} event */
  function under(event) {
    const place = canvas.getBoundingClientRect();
    const head = Math.floor((event.clientX - place.left - layout.edge) / layout.cell);
    const layer = Math.floor((event.clientY - place.top - layout.edge) / layout.cell);
    return head >= 0 && layer >= 0 && head < size.n_head && layer < size.n_layer ? [layer, head] : null;
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
    if (step) move([within(layer + step[0], size.n_layer), within(head + step[1], size.n_head)]);
    else if (event.key === "Enter" || event.key === " ") open([layer, head]);
    else if (event.key === "Escape") move(null);
    else return;
    event.preventDefault();
  });
  return { draw };
}

defineWidget("heads", mount);
