/**
 * Attention as lines from queries on the left to keys on the right; a line's width shows its weight.
 * @typedef {object} Lines
 * @property {number} [n_head]  if missing, nothing is shown
 * @property {number} [layer]  the selected layer
 * @property {number} [head]  the selected head
 * @property {number} [pictures]  number of pictures: one per head, or 1 for all together
 * @property {Side} [queries]
 * @property {Side} [keys]
 * @property {number} [query]  the selected query
 * @property {number} [key]  the selected key; -1 for none
 * @property {string} [data]  base64 of uint16, where 65535 represents 1: each picture's weights that can be non-zero
 * @property {string} [text]  a sentence that describes the selection
 * @property {Record<string, string>} [labels]
 *
 * @typedef {{start: number, tokens: string[]}} Side  the first position, and the tokens starting there
 */

import { bytes } from "../bytes.js";
import { clipped, sizedContext } from "../canvas.js";
import { headColour, mapTo, themed } from "../colours.js";
import { find, make, makeButton, modified, setHint, setText } from "../dom.js";
import { cellAt, drawMatrix, numbersPicture } from "../matrix.js";
import { percent } from "../numbers.js";
import { headButtons, replaceButtons } from "../picks.js";
import { createRequests } from "../requests.js";
import { defineWidget } from "../runtime.js";
import { createPointerTip } from "../tip.js";
import { THINNEST, unpackWeights, usualThreshold } from "./weights.js";

/** @typedef {"queries" | "keys"} SideName */

const [NAMES, TALLEST, TOP, LARGEST] = [112, 720, 24, 460]; // px: width of a token column, maximum height of all rows, space above them, maximum size of the cells

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const { t } = host;
  const [picks, least, stage, cells] = [".gb-lines-heads", ".gb-lines-least", ".gb-lines-picture", ".gb-lines-cells"].map((name) => find(root, name));
  const slider = find(least, "input", HTMLInputElement);
  const [canvas, cellCanvas] = [stage, cells].map((around) => find(around, "canvas", HTMLCanvasElement));
  const tip = createPointerTip(root, find(root, ".gb-tip"));
  const requests = createRequests(host.send);
  /** @type {Lines | null} */ let shown = null;
  let dark = false;
  /** @type {Required<Lines>} */ let data = emptyLines();
  /** @type {Float32Array[]} */ let weights = [];
  /** @type {import("../matrix.js").Layout | null} */ let layout = null;
  /** @type {Set<number>} */ let off = new Set(); // heads whose lines are hidden
  let byHand = false; // whether a person has set the threshold
  /** @type {{side: SideName, index: number} | null} */ let hot = null; // the token under the pointer
  let rowHeight = 18;

  const many = () => data.pictures > 1;
  const chosen = () => (many() ? data.head : 0);
  const colour = (/** @type {number} */ head) => (many() ? headColour(head, data.n_head, host.dark) : themed(root, "after"));
  const threshold = () => Math.max(THINNEST, (Number(slider.value) / 100) ** 2); // squared, for finer steps at small weights
  const weight = (/** @type {number} */ head, /** @type {number} */ i, /** @type {number} */ j) => weights[head][i * data.keys.tokens.length + j];

  function drawPicks() {
    picks.hidden = !many();
    picks.setAttribute("aria-label", t("head"));
    const press = () => buttons.forEach((button, head) => button.setAttribute("aria-pressed", String(!off.has(head))));
    const buttons = headButtons(data.n_head, host.dark, t("head"), (head) => !off.has(head), (head) => {
      if (!off.delete(head)) off.add(head);
      press();
      host.redraw();
    });
    buttons[data.head]?.classList.add("gb-chosen");
    const all = Array.from({ length: data.n_head }, (_, head) => head);
    /** @param {string} text @param {number[]} hidden */
    const only = (text, hidden) => {
      const button = makeButton("gb-words", text);
      button.addEventListener("click", () => {
        off = new Set(hidden);
        press();
        host.redraw();
      });
      return button;
    };
    const title = make("span", "", t("heads", { layer: data.layer }));
    const one = only(t("only", { head: data.head }), all.filter((head) => head !== data.head));
    replaceButtons(picks, [title, ...buttons, only(t("all"), []), one]);
  }

  /** @param {Lines} given */
  function draw(given) {
    const again = given === shown && dark === host.dark;
    dark = host.dark;
    if (given !== shown) {
      shown = given;
      data = { ...emptyLines(), ...given };
      requests.answered(given);
      weights = unpackWeights(bytes(data.data), data);
      if (!byHand) slider.value = String(usualThreshold(weights, data.queries.tokens.length));
    }
    root.classList.toggle("gb-nothing", !data.n_head);
    setText(find(root, "figcaption .gb-says"), data.text);
    setHint(find(root, "figcaption .gb-note"), t("hint"), t("keys"));
    setText(find(least, "span"), t("least"));
    stage.setAttribute("aria-label", t("name"));
    if (!data.n_head) return;
    if (!again) drawPicks();
    drawPictures();
  }

  function drawPictures() {
    if (root.clientWidth < 50) return;
    setText(find(least, "output"), percent(threshold()));
    drawLines();
    drawCells();
  }

  function drawLines() {
    const { queries, keys } = data;
    const rows = Math.max(queries.tokens.length, keys.tokens.length);
    rowHeight = Math.max(11, Math.min(22, TALLEST / rows));
    const [width, height] = [stage.clientWidth, rows * rowHeight + TOP];
    const names = Math.min(NAMES, width / 3.4);
    const ctx = sizedContext(canvas, width, height);
    ctx.font = `12px ${themed(root, "sans")}`;
    ctx.fillStyle = themed(root, "muted");
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    ctx.fillText(t("from"), names - 8, 9);
    ctx.textAlign = "left";
    ctx.fillText(t("to"), width - names + 8, 9);
    weights.forEach((_, head) => {
      if (!many() || !off.has(head)) drawHead(ctx, head, names, width);
    });
    drawTokens(ctx, "queries", names - 8, "right", names);
    drawTokens(ctx, "keys", width - names + 8, "left", names);
  }

  const middle = (/** @type {number} */ index) => TOP + (index + 0.5) * rowHeight;
  const touched = (/** @type {number} */ i, /** @type {number} */ j) => !hot || (hot.side === "queries" ? hot.index === i : hot.index === j);

  /** @param {CanvasRenderingContext2D} ctx @param {number} head @param {number} names px @param {number} width px */
  function drawHead(ctx, head, names, width) {
    const own = data.query - data.queries.start;
    const [from, to, bend] = [names, width - names, (width - 2 * names) * 0.4];
    ctx.strokeStyle = colour(head);
    for (let i = 0; i < data.queries.tokens.length; i += 1) {
      for (let j = 0; j < data.keys.tokens.length; j += 1) {
        const share = weight(head, i, j);
        if (!(share >= threshold()) || !touched(i, j)) continue;
        ctx.globalAlpha = hot || i === own ? 0.25 + 0.75 * share : 0.12 + 0.5 * share;
        ctx.lineWidth = Math.max(0.5, share * Math.min(7, rowHeight * 0.6));
        ctx.beginPath();
        ctx.moveTo(from, middle(i));
        ctx.bezierCurveTo(from + bend, middle(i), to - bend, middle(j), to, middle(j));
        ctx.stroke();
      }
    }
    ctx.globalAlpha = 1;
  }

  /**
   * Returns a token's opacity, which is low if no line connects it to the token under the pointer.
   * @param {SideName} side @param {number} index
   */
  function strength(side, index) {
    if (!hot) return 1;
    if (hot.side === side) return hot.index === index ? 1 : 0.35;
    const [i, j] = side === "keys" ? [hot.index, index] : [index, hot.index];
    const most = Math.max(...weights.map((_, head) => (many() && off.has(head) ? 0 : weight(head, i, j) || 0)));
    return most >= threshold() ? 1 : 0.25;
  }

  /** @param {CanvasRenderingContext2D} ctx @param {SideName} side @param {number} x @param {CanvasTextAlign} align @param {number} room px */
  function drawTokens(ctx, side, x, align, room) {
    const selected = side === "queries" ? data.query - data.queries.start : -1;
    const [accent, text, mono] = ["accent", "text", "mono"].map((name) => themed(root, name));
    ctx.textAlign = align;
    data[side].tokens.forEach((token, index) => {
      ctx.font = `${index === selected ? "600 " : ""}${Math.min(13, rowHeight)}px ${mono}`;
      ctx.fillStyle = index === selected ? accent : text;
      ctx.globalAlpha = strength(side, index);
      ctx.fillText(clipped(ctx, token, room - 10), x, middle(index));
    });
    ctx.globalAlpha = 1;
  }

  /** Draws the selected head, or the only picture, as cells. */
  function drawCells() {
    const { queries, keys } = data;
    const [rows, columns] = [queries.tokens.length, keys.tokens.length];
    const later = weights[chosen()].slice(Math.floor(rows / 4) * columns); // the first rows have large weights
    const scale = later.reduce((most, share) => (share > most ? share : most), 0) || 1e-6;
    const numbers = { rows, columns, at: (/** @type {number} */ i, /** @type {number} */ j) => weight(chosen(), i, j), scale, signed: false };
    const matrix = {
      image: numbersPicture(numbers, mapTo(root, colour(chosen()))),
      rows,
      columns,
      rowLabels: queries.tokens,
      columnLabels: keys.tokens,
      row: data.query - queries.start,
      column: data.key - keys.start,
    };
    setText(find(cells, "p"), many() ? t("cells", { layer: data.layer, head: data.head }) : t("cells.one"));
    layout = drawMatrix(cellCanvas, matrix, cells.clientWidth, LARGEST);
  }

  /** @param {MouseEvent} event @returns {{side: SideName, index: number} | null} */
  function under(event) {
    const box = canvas.getBoundingClientRect();
    const index = Math.floor((event.clientY - box.top - TOP) / rowHeight);
    const side = event.clientX - box.left < box.width / 2 ? "queries" : "keys";
    return index >= 0 && index < data[side].tokens.length ? { side, index } : null;
  }

  /** @param {typeof hot} to */
  function point(to) {
    if (to?.side === hot?.side && to?.index === hot?.index) return;
    hot = to;
    host.redraw();
  }

  canvas.addEventListener("pointermove", (event) => point(under(event)));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("click", (event) => {
    const found = under(event);
    if (!found) return;
    const position = data[found.side].start + found.index;
    if (found.side === "queries") requests.want({ position });
    else if (position <= data.query) requests.want({ position: data.query, key: position });
  });
  cellCanvas.addEventListener("pointermove", (event) => {
    const [i, j] = cellAt(cellCanvas, layout, event) ?? [-1, -1];
    if (j < 0) return tip.hide();
    const share = weight(chosen(), i, j);
    tip.show(event, `“${data.queries.tokens[i]}” → “${data.keys.tokens[j]}”`, Number.isNaN(share) ? t("later") : percent(share));
  });
  cellCanvas.addEventListener("pointerleave", tip.hide);
  cellCanvas.addEventListener("click", (event) => {
    const found = cellAt(cellCanvas, layout, event);
    if (!found) return;
    const [query, key] = [data.queries.start + found[0], data.keys.start + found[1]];
    requests.want(found[1] >= 0 && key <= query ? { position: query, key } : { position: query });
  });
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step || !data.n_head || modified(event)) return;
    event.preventDefault();
    const { start, tokens } = data.queries;
    const from = requests.wanted().position ?? data.query;
    requests.want({ position: Math.max(0, Math.min(start + tokens.length - 1, from + step)) });
  });
  slider.addEventListener("input", () => {
    byHand = true;
    host.redraw();
  });
  return { draw };
}

/** @returns {Required<Lines>} */
function emptyLines() {
  const side = { start: 0, tokens: [] };
  return { n_head: 0, layer: 0, head: 0, pictures: 0, queries: side, keys: side, query: -1, key: -1, data: "", text: "", labels: {} };
}

defineWidget("lines", mount);
