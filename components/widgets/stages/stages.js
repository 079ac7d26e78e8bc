/**
 * The stages of one head: thumbnails, one of them enlarged, and the computation of one cell. Only changing the layer,
 * the head or the window of a long text needs a request to the server.
 * @typedef {object} Selection
 * @property {number} layer
 * @property {number} head
 * @property {number} n_layer
 * @property {number} n_head
 * @property {number} kv_heads
 * @property {number} total  number of tokens in the text
 * @property {number} query  the selected pair, by position
 * @property {number} key
 * @property {{side: number, levels: string}} [map]  base64 of side x side uint8: the weights for a text
 *   that is longer than the displayed part
 * @property {string} text  a sentence that describes the selection
 * @property {string[]} variants  what the model computes differently: "factor", "capped", "rotary", "window" or "ahead"
 * @property {{first: number, last: number} | null} shared  the heads that share keys and values, if they do
 *
 * @typedef {Selection & import("./numbers.js").Packed} Stages  all fields or none
 */

import { bytes, decimal, percent, small } from "../labels.js";
import { contextOf, divergingMap, mapTo, sizedContext, themed } from "../canvas.js";
import { MOVES, find, make, makeButton, modified, setCount, setHint, setText } from "../dom.js";
import { t } from "../i18n.js";
import { cellAt, drawMatrix, numbersPicture } from "../matrix.js";
import { createRequests, drawHeadPicks, drawLayerPick } from "../picks.js";
import { defineWidget } from "../runtime.js";
import { createPointerTip } from "../tip.js";
import { isOfKeys, isVector, STAGES, unpack, workedOut } from "./numbers.js";

/** @typedef {import("./numbers.js").StageName} StageName */

const [WIDEST, THUMBNAIL, MAP_EDGE] = [640, 64, 160]; // px
const MAP_STEP = 32; // tokens per arrow key on the map

/** Returns values for the stages' names and sentences. @param {Stages} of */
const formulaOf = ({ head_size: hs, scale, cap, window }) => ({ hs, scale: small(scale, 4), cap, window });

/** Returns a text in the variant for what the model computes, if there is one. @param {Partial<Stages>} of @param {string} name @param {Record<string, any>} [values] */
function stageText({ variants = [] }, name, values) {
  const found = variants.map((variant) => t(`stages.${name}.${variant}`, values)).filter(Boolean);
  return found.at(-1) ?? t(`stages.${name}`, values);
}

/** Describes a stage. @param {Stages} of @param {string} name */
function stageSentence(of, name) {
  const isShared = of.shared && (name === "k" || name === "v");
  return stageText(of, `${name}.says`, formulaOf(of)) + (isShared ? t("stages.shared", of.shared ?? {}) : "");
}

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const [row, what, large] = [".gb-stages-row", ".gb-stages-what", ".gb-stages-large"].map((name) => find(root, name));
  const [sum, mapBox] = [find(root, ".gb-stages-sum"), find(root, ".gb-stages-map")];
  const [canvas, mapCanvas] = [large, mapBox].map((around) => find(around, "canvas", HTMLCanvasElement));
  const [from, ramp, to] = /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(".gb-stages-legend span"));
  const tip = createPointerTip(root, find(root, ".gb-stages-tip"));
  const requests = createRequests(host.send);
  /** @type {Partial<Stages> | null} */ let shown = null;
  let dark = false;
  /** @type {Stages | null} */ let data = null;
  /** @type {import("./numbers.js").Unpacked} */ let numbers;
  /** @type {Record<StageName, HTMLCanvasElement>} */ let images;
  /** @type {import("../matrix.js").Layout | null} */ let layout = null;
  /** @type {StageName} */ let stage = "weights";
  /** @type {[number, number]} */ let cell = [0, 0]; // query and key within the displayed part
  // A selected pair whose key comes after its query; it is shown here but not in other tabs.
  /** @type {[number, number] | null} */ let chosen = null;

  const colour = () => themed(root, "attention");
  const token = (/** @type {"queries" | "keys"} */ side, /** @type {number} */ i) => `“${data?.[side].tokens[i]}”`;
  const within = ({ start, tokens } = { start: 0, tokens: [""] }, /** @type {number} */ position) => position >= start && position < start + tokens.length;

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
    drawLayerPick(find(root, ".gb-picks-layer"), given, t("stages.layer"), requests.want);
    drawHeadPicks(find(root, ".gb-picks-heads"), given, t("stages.head"), requests.want);
    drawThumbnails(given);
  }

  function makeThumbnail() {
    const button = makeButton("");
    button.append(Object.assign(document.createElement("canvas"), { width: THUMBNAIL, height: THUMBNAIL }), make("span"));
    button.addEventListener("click", ({ detail }) => {
      stage = STAGES[[...row.children].indexOf(button)];
      host.redraw();
      if (detail) large.focus({ preventScroll: true }); // so that the arrow keys move the cell
    });
    return button;
  }

  /** @param {Stages} of */
  function drawThumbnails(of) {
    setCount(row, STAGES.length, makeThumbnail);
    STAGES.forEach((name, i) => {
      const button = /** @type {HTMLElement} */ (row.children[i]);
      const context = contextOf(find(button, "canvas", HTMLCanvasElement));
      context.clearRect(0, 0, THUMBNAIL, THUMBNAIL);
      context.imageSmoothingEnabled = images[name].width > THUMBNAIL;
      context.drawImage(images[name], 0, 0, THUMBNAIL, THUMBNAIL);
      setText(find(button, "span"), stageText(of, name, formulaOf(of)));
      button.title = stageSentence(of, name);
    });
  }

  /** @param {Partial<Stages>} given */
  function draw(given) {
    if (given !== shown) requests.answered();
    root.classList.toggle("gb-nothing", !given.n_head);
    setText(find(root, "figcaption .gb-says"), given.text ?? "");
    setHint(find(root, "figcaption .gb-note"), stageText(given, "hint"), t("stages.keys"));
    setText(find(mapBox, ".gb-note"), t("stages.map"));
    large.setAttribute("aria-label", t("stages.name"));
    row.setAttribute("aria-label", t("stages.row"));
    mapCanvas.setAttribute("aria-label", t("stages.map"));
    if (!given.n_head) data = null;
    else if (given !== shown || dark !== host.dark) build(/** @type {Stages} */ (given));
    [shown, dark] = [given, host.dark];
    if (data && root.clientWidth >= 50) drawStage(data);
  }

  /** @param {Stages} of */
  function drawStage(of) {
    [...row.children].forEach((button, i) => button.setAttribute("aria-pressed", String(STAGES[i] === stage)));
    const current = numbers.stages[stage];
    const [ofKeys, vector] = [isOfKeys(stage), isVector(stage)];
    const matrix = {
      image: images[stage],
      rows: current.rows,
      columns: current.columns,
      rowLabels: of[ofKeys ? "keys" : "queries"].tokens,
      columnLabels: vector ? null : of.keys.tokens,
      row: cell[ofKeys ? 1 : 0],
      column: vector ? -1 : cell[1],
    };
    layout = drawMatrix(canvas, matrix, large.parentElement?.clientWidth ?? 0, WIDEST);
    setText(what, stageSentence(of, stage));
    setText(from, current.signed ? `−${decimal(current.scale)}` : "0");
    setText(to, current.signed ? `+${decimal(current.scale)}` : `≥ ${percent(current.scale)}`);
    ramp.style.background = current.signed ? "" : `linear-gradient(to right in oklab, var(--gb-surface), ${colour()})`;
    writeSum(of);
    drawMap(of);
  }

  /** @param {Stages} of */
  function writeSum(of) {
    const { lines, strips } = workedOut(of, numbers, cell, (name, values) => stageText(of, name, values));
    const names = { query: token("queries", cell[0]), key: token("keys", cell[1]), i: of.queries.start + cell[0], j: of.keys.start + cell[1] };
    const pair = make("li", "gb-pair");
    pair.append(make("strong", "", t("stages.pair", names)));
    const items = lines.map(([name, text]) => {
      const item = make("li");
      item.append(make("code", "", text));
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
    strips.className = "gb-stages-strips";
    strips.title = t("stages.strips");
    return strips;
  }

  /** @param {Stages} of */
  function drawMap({ map, ahead, total, queries, keys }) {
    mapBox.hidden = !map;
    if (!map) return;
    const levels = bytes(map.levels);
    const at = (/** @type {number} */ i, /** @type {number} */ j) => (j > i && !ahead ? NaN : Math.sqrt(levels[i * map.side + j] / 255));
    const image = numbersPicture({ rows: map.side, columns: map.side, at, scale: 1, signed: false }, mapTo(root, colour()));
    const ctx = sizedContext(mapCanvas, MAP_EDGE, MAP_EDGE);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(image, 0, 0, MAP_EDGE, MAP_EDGE);
    const unit = MAP_EDGE / total;
    ctx.strokeStyle = themed(root, "text");
    ctx.lineWidth = 2;
    ctx.strokeRect(keys.start * unit, queries.start * unit, keys.tokens.length * unit, queries.tokens.length * unit);
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
    const [i, j] = cellAt(canvas, layout, event) ?? [-1, -1];
    if (j < 0) return tip.hide();
    const x = numbers.stages[stage].at(i, j);
    const number = stage === "weights" ? `${percent(x)} · ${small(x, 4)}` : decimal(x, 3);
    const title = isVector(stage) ? `${token(isOfKeys(stage) ? "keys" : "queries", i)} ${stage}[${j}]` : `${token("queries", i)} → ${token("keys", j)}`;
    tip.show(event, [make("strong", "", title), make("code", "", Number.isNaN(x) ? t(`stages.${numbers.hidden(i, j) ?? "later"}`) : number)]);
  }

  /** @param {KeyboardEvent} event @param {number} step tokens */
  function move(event, step) {
    if (!MOVES[event.key] || !data || modified(event)) return;
    event.preventDefault();
    const { queries, keys, total } = data;
    const [up, across] = MOVES[event.key];
    const on = (/** @type {number} */ at, /** @type {number} */ by) => Math.max(0, Math.min(total - 1, at + by * step));
    const query = on(queries.start + cell[0], up);
    choose(query, Math.min(on(keys.start + cell[1], across), query));
  }

  canvas.addEventListener("pointermove", tell);
  canvas.addEventListener("pointerleave", tip.hide);
  canvas.addEventListener("click", (event) => {
    const found = cellAt(canvas, layout, event);
    if (!found || !data) return;
    const { queries, keys } = data;
    const [i, j] = found;
    if (isOfKeys(stage)) choose(queries.start + cell[0], keys.start + i);
    else if (isVector(stage) || j < 0) choose(queries.start + i, Math.min(keys.start + cell[1], queries.start + i));
    else choose(queries.start + i, keys.start + j);
  });
  large.addEventListener("keydown", (event) => move(event, 1));
  mapCanvas.addEventListener("keydown", (event) => move(event, MAP_STEP));
  mapCanvas.addEventListener("click", (event) => {
    if (!data) return;
    const { total } = data;
    const box = mapCanvas.getBoundingClientRect();
    const at = (/** @type {number} */ share) => Math.max(0, Math.min(total - 1, Math.floor(share * total)));
    const query = at((event.clientY - box.top) / box.height);
    choose(query, Math.min(query, at((event.clientX - box.left) / box.width)));
  });
  return { draw };
}

defineWidget("stages", mount);
