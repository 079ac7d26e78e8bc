/**
 * The stages of one head: thumbnails, one of them enlarged, and the computation of one cell. Only changing the layer,
 * the head or the window of a long text needs a request to the server.
 *
 * @typedef {import("./numbers.js").Packed & {
 *   layer: number, head: number, n_layer: number, n_head: number, kv_heads: number, total: number, query: number, key: number,
 *   map?: {side: number, levels: string}, text: string, variants: string[], shared: {first: number, last: number} | null,
 * }} Stages  all fields or none
 *   total: number of tokens in the text. query, key: positions of the selected pair. map: base64 of side x side uint8, the weights
 *   for a text that is longer than the displayed part. variants: what the model computes differently: "factor", "capped", "rotary",
 *   "window" or "ahead". shared: the heads that share keys and values, if they do.
 */

import { bytes, decimal, percent, small } from "../labels.js";
import { contextOf, divergingMap, mapTo, sizedContext, stroke, themed } from "../canvas.js";
import { MOVES, find, make, makeButton, modified, setCount, setHint, setText } from "../dom.js";
import { t } from "../i18n.js";
import { cellAt, drawMatrix, numbersPicture } from "../matrix.js";
import { createRequests, drawPicks } from "../picks.js";
import { defineWidget } from "../runtime.js";
import { createPointerTip } from "../tip.js";
import { isOfKeys, isVector, STAGES, unpack, workedOut } from "./numbers.js";

/** @typedef {import("./numbers.js").StageName} StageName */

const [WIDEST, THUMBNAIL, MAP_EDGE] = [640, 64, 160]; // px
const MAP_STEP = 32; // tokens per arrow key on the map

/** Returns a text in the variant for what the model computes, if there is one. @param {Partial<Stages>} of @param {string} name @param {Record<string, any>} [given] */
function stageText({ variants = [], head_size: hs, scale = 1, cap, window }, name, given) {
  const values = { hs, scale: small(scale, 4), cap, window, ...given };
  const found = variants.map((variant) => t(`stages.${name}.${variant}`, values)).filter(Boolean);
  return found.at(-1) ?? t(`stages.${name}`, values);
}

/** Describes a stage. @param {Stages} of @param {StageName} stage */
const stageSentence = (of, stage) => stageText(of, `${stage}.says`) + (of.shared && isOfKeys(stage) ? t("stages.shared", of.shared) : "");

defineWidget("stages", (root, host) => {
  const [row, what, large, sum, mapBox] = ["row", "what", "large", "sum", "map"].map((name) => find(root, `.gb-stages-${name}`));
  const [canvas, mapCanvas] = [large, mapBox].map((around) => find(around, "canvas", HTMLCanvasElement));
  const [from, ramp, to] = /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(".gb-stages-legend span"));
  const tip = createPointerTip(root, find(root, ".gb-stages-tip"));
  const requests = createRequests(host.send);
  /** @type {Partial<Stages>} */ let shown = {};
  let dark = false;
  /** @type {Stages | null} */ let data = null;
  /** @type {import("./numbers.js").Unpacked} */ let numbers;
  /** @type {Record<StageName, HTMLCanvasElement>} */ let images;
  /** @type {import("../matrix.js").Layout} */ let layout;
  /** @type {StageName} */ let stage = "weights";
  /** @type {[number, number]} */ let cell = [0, 0]; // query and key within the displayed part
  // A selected pair whose key comes after its query; it is shown here but not in other tabs.
  /** @type {[number, number] | null} */ let chosen = null;

  const colour = () => themed(root, "attention");
  const token = (/** @type {"queries" | "keys"} */ side, /** @type {number} */ i) => `“${data?.[side].tokens[i]}”`;
  const within = (/** @type {import("./numbers.js").Side} */ { start, tokens }, /** @type {number} */ position) => position >= start && position < start + tokens.length;

  /** @param {Stages} given */
  function build(given) {
    data = given;
    numbers = unpack(given);
    const [signed, weights] = [divergingMap(root), mapTo(root, colour())];
    const made = STAGES.map((name) => [name, numbersPicture(numbers.stages[name], numbers.stages[name].signed ? signed : weights)]);
    images = Object.fromEntries(made);
    if (chosen && (chosen[0] !== given.query || !within(given.keys, chosen[1]))) chosen = null;
    const [query, key] = chosen ?? [given.query, given.key];
    cell = [query - given.queries.start, key - given.keys.start];
    drawPicks(root, given, requests.want);
    setCount(row, STAGES.length, makeThumbnail);
    STAGES.forEach((name, i) => {
      const button = /** @type {HTMLElement} */ (row.children[i]);
      const context = contextOf(find(button, "canvas", HTMLCanvasElement));
      context.clearRect(0, 0, THUMBNAIL, THUMBNAIL);
      context.imageSmoothingEnabled = images[name].width > THUMBNAIL;
      context.drawImage(images[name], 0, 0, THUMBNAIL, THUMBNAIL);
      setText(find(button, "span"), stageText(given, name));
      button.title = stageSentence(given, name);
    });
  }

  function makeThumbnail() {
    const canvas = make("canvas", "", "", { width: THUMBNAIL, height: THUMBNAIL });
    const button = makeButton("", [canvas, make("span")], {}, ({ detail }) => {
      stage = STAGES[[...row.children].indexOf(button)];
      host.redraw();
      if (detail) large.focus({ preventScroll: true }); // so that the arrow keys move the cell
    });
    return button;
  }

  /** @param {Partial<Stages>} given */
  function draw(given) {
    if (given !== shown) requests.answered();
    root.classList.toggle("gb-nothing", !given.n_head);
    setText(find(root, "figcaption .gb-says"), given.text ?? "");
    setHint(find(root, "figcaption .gb-note"), stageText(given, "hint"), t("stages.keys"));
    setText(find(mapBox, ".gb-note"), t("stages.map"));
    const names = /** @type {const} */ ([[large, t("stages.name")], [row, t("stages.row")], [mapCanvas, t("stages.map")]]);
    for (const [node, name] of names) node.setAttribute("aria-label", name);
    if (!given.n_head) data = null;
    else if (given !== shown || dark !== host.dark) build(/** @type {Stages} */ (given));
    [shown, dark] = [given, host.dark];
    if (data && root.clientWidth >= 50) drawStage(data);
  }

  /** @param {Stages} of */
  function drawStage(of) {
    [...row.children].forEach((button, i) => button.setAttribute("aria-pressed", String(STAGES[i] === stage)));
    const { signed, scale } = numbers.stages[stage];
    const columnLabels = isVector(stage) ? null : of.keys.tokens;
    const [side, line] = isOfKeys(stage) ? [of.keys, cell[1]] : [of.queries, cell[0]];
    const room = Math.min(WIDEST, large.parentElement?.clientWidth ?? 0);
    layout = drawMatrix(canvas, images[stage], side.tokens, columnLabels, [line, columnLabels ? cell[1] : -1], room);
    setText(what, stageSentence(of, stage));
    setText(from, signed ? `−${decimal(scale)}` : "0");
    setText(to, signed ? `+${decimal(scale)}` : `≥ ${percent(scale)}`);
    ramp.style.background = signed ? "" : `linear-gradient(to right in oklab, var(--gb-surface), ${colour()})`;
    writeSum(of);
    drawMap(of);
  }

  /** @param {Stages} of */
  function writeSum(of) {
    const { lines, strips } = workedOut(of, numbers, cell, (name, values) => stageText(of, name, values));
    const names = { query: token("queries", cell[0]), key: token("keys", cell[1]), i: of.queries.start + cell[0], j: of.keys.start + cell[1] };
    const pair = make("li", "gb-pair", [make("strong", "", t("stages.pair", names))]);
    const items = lines.map(([name, text]) => {
      const item = make("li", "", [make("code", "", text)]);
      item.classList.toggle("gb-now", name === stage || (name === "raw" && (stage === "q" || stage === "k")));
      return item;
    });
    items[0].append(stripsOf(strips));
    sum.replaceChildren(pair, ...items);
  }

  /** Draws q, k and their products, one column per component. @param {number[][]} rows */
  function stripsOf(rows) {
    const scales = rows.map((numbers) => Math.max(1e-6, ...numbers.map(Math.abs)));
    const at = (/** @type {number} */ i, /** @type {number} */ d) => rows[i][d] / scales[i];
    const strips = numbersPicture({ rows: 3, columns: rows[0].length, at, scale: 1, signed: true }, divergingMap(root));
    return Object.assign(strips, { className: "gb-stages-strips", title: t("stages.strips") });
  }

  /** @param {Stages} of */
  function drawMap({ map, ahead, total, queries, keys }) {
    mapBox.hidden = !map;
    if (!map) return;
    const { side } = map;
    const levels = bytes(map.levels);
    const at = (/** @type {number} */ i, /** @type {number} */ j) => (j > i && !ahead ? NaN : Math.sqrt(levels[i * side + j] / 255));
    const image = numbersPicture({ rows: side, columns: side, at, scale: 1, signed: false }, mapTo(root, colour()));
    const ctx = sizedContext(mapCanvas, MAP_EDGE, MAP_EDGE);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(image, 0, 0, MAP_EDGE, MAP_EDGE);
    const box = [keys.start, queries.start, keys.tokens.length, queries.tokens.length].map((tokens) => (tokens * MAP_EDGE) / total);
    stroke(ctx, box, themed(root, "text"), 2);
  }

  /** Selects a pair by its positions in the text. @param {number} query @param {number} key */
  function choose(query, key) {
    chosen = key > query ? [query, key] : null;
    if (data && within(data.queries, query) && within(data.keys, key)) {
      cell = [query - data.queries.start, key - data.keys.start];
      host.redraw();
    }
    requests.want({ position: query, key: chosen ? null : key });
  }

  /** @param {MouseEvent} event */
  function tell(event) {
    const [i, j] = cellAt(layout, event) ?? [-1, -1];
    if (j < 0) return tip.hide();
    const x = numbers.stages[stage].at(i, j);
    const number = stage === "weights" ? `${percent(x)} · ${small(x, 4)}` : decimal(x, 3);
    const title = isVector(stage) ? `${token(isOfKeys(stage) ? "keys" : "queries", i)} ${stage}[${j}]` : `${token("queries", i)} → ${token("keys", j)}`;
    tip.show(event, [make("strong", "", title), make("code", "", Number.isNaN(x) ? t(`stages.${numbers.hidden(i, j) ?? "later"}`) : number)]);
  }

  /** Returns a position within the text. @param {number} position */
  const on = (position) => Math.max(0, Math.min((data?.total ?? 1) - 1, Math.floor(position)));

  /** @param {KeyboardEvent} event @param {number} step tokens */
  function move(event, step) {
    if (!MOVES[event.key] || !data || modified(event)) return;
    event.preventDefault();
    const [up, across] = MOVES[event.key];
    const query = on(data.queries.start + cell[0] + up * step);
    choose(query, Math.min(on(data.keys.start + cell[1] + across * step), query));
  }

  canvas.addEventListener("pointermove", tell);
  canvas.addEventListener("pointerleave", tip.hide);
  canvas.addEventListener("click", (event) => {
    const found = cellAt(layout, event);
    if (!found || !data) return;
    const { queries, keys } = data;
    const [i, j] = found;
    if (isOfKeys(stage)) choose(queries.start + cell[0], keys.start + i);
    else if (isVector(stage) || j < 0) choose(queries.start + i, Math.min(keys.start + cell[1], queries.start + i));
    else choose(queries.start + i, keys.start + j);
  });
  large.addEventListener("keydown", (event) => move(event, 1));
  mapCanvas.addEventListener("keydown", (event) => move(event, MAP_STEP));
  mapCanvas.addEventListener("click", ({ offsetX, offsetY }) => {
    const [query, key] = [offsetY, offsetX].map((at) => on((at / MAP_EDGE) * (data?.total ?? 1)));
    choose(query, Math.min(query, key));
  });
  return { draw };
});
