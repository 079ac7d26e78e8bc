/**
 * The whole model in one diagram: one row per token, from its embedding to the next token. The browser itself handles
 * hovering and focus. scene.js describes the data.
 */

import { sizedContext } from "../canvas.js";
import { find, make, makeButton, modified, setCount, setHint, setText } from "../dom.js";
import { t } from "../i18n.js";
import { decimal, isExact, percent } from "../labels.js";
import { createRequests, drawHeadPicks, drawLayerPick } from "../picks.js";
import { defineWidget } from "../runtime.js";
import { ATTENTION, HEAD, NARROWEST, TARGET, bottom, centre, firstSeen, fitScene, makeScene, right, shapeOf } from "./scene.js";
import { paint } from "./paint.js";

/** @typedef {import("./scene.js").Flow} Flow */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {{part: string, row?: number, layer?: number, x?: number, y?: number}} Spot  a part, a row in it, or a closed layer; x and y of the pointer in px */

const GLIDE = 150; // duration of the row animation, in ms
const PLAIN = ["tokens", "weights"]; // parts whose formulas are always shown, as they contain no ids or lengths

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const [scroller, stage, parts] = [".gb-flow-scroll", ".gb-flow-stage", ".gb-flow-parts"].map((name) => find(root, name));
  const [laneMark, columnMark, tip] = [".gb-flow-lane", ".gb-flow-column", ".gb-flow-tip"].map((name) => find(root, name));
  const [layerPick, headPicks] = [".gb-flow-layer", ".gb-flow-heads"].map((name) => find(root, name));
  const canvas = find(root, "canvas", HTMLCanvasElement);
  const more = find(root, ".gb-flow-more");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const requests = createRequests(host.send);
  /** @type {Partial<Flow> | null} */ let shown = null;
  let dark = false;
  /** @type {Scene | null} */ let scene = null;
  /** @type {import("./scene.js").Rows | null} */ let from = null; // the rows' previous positions while they move
  let moving = 0; // the animation's start in ms; 0 if there is none
  /** @type {Spot | null} */ let hot = null; // the spot under the pointer or focus
  /** @type {CanvasRenderingContext2D} */ let context;

  /** @param {Partial<Flow>} data */
  function draw(data) {
    if (data !== shown) requests.answered();
    const again = data === shown && dark === host.dark;
    [shown, dark] = [data, host.dark];
    root.classList.toggle("gb-nothing", !data.tokens);
    setText(find(root, ".gb-flow-scale"), t("flow.scale") + (isExact() ? t("flow.scale.pixels") : ""));
    setText(find(root, "figcaption .gb-says"), data.text ?? "");
    setHint(find(root, "figcaption .gb-note"), t("flow.hint"), t("flow.keys"));
    setText(more, data.offered_rows ? t("flow.rows", { n: Math.min(data.offered_rows, data.total ?? 0) }) : "");
    more.hidden = !data.offered_rows;
    parts.setAttribute("aria-label", t("flow.name"));
    if (!data.tokens) scene = null;
    else if (!again) build(/** @type {Flow} */ (data));
    if (!scene || scroller.clientWidth < 50) return;
    if (scene.width !== Math.max(NARROWEST, scroller.clientWidth)) fit(scene);
    step(scene);
    scene.scrolled = scroller.scrollLeft;
    paint(context, scene);
    if (moving) host.redraw();
    else if (hot) point(hot.x === undefined || hot.y === undefined ? hot : spotAt(hot.x, hot.y), true);
  }

  /** @param {Flow} data */
  function build(data) {
    const before = scene;
    scene = makeScene(data, root, host);
    glide(before, scene);
    drawLayerPick(layerPick, data, t("flow.layer"), requests.want);
    drawHeadPicks(headPicks, data, t("flow.head"), requests.want);
  }

  /**
   * Starts an animation that moves the remaining rows from their previous positions.
   * @param {Scene | null} before @param {Scene} after
   */
  function glide(before, after) {
    [moving, from] = [0, null];
    if (!before || before.data.doc !== after.data.doc || still.matches) return;
    const shift = after.data.start - before.data.start;
    const { heights, tops } = after.goal;
    from = { heights: heights.map((height, row) => before.heights[row + shift] ?? height), tops: tops.map((top, row) => before.tops[row + shift] ?? top) };
    if (tops.some((top, row) => top !== from?.tops[row])) moving = performance.now();
  }

  /** @param {Scene} of */
  function step(of) {
    const share = moving ? Math.min(1, (performance.now() - moving) / GLIDE) : 1;
    const eased = 1 - (1 - share) ** 3;
    for (const list of /** @type {const} */ (["heights", "tops"])) {
      of[list] = of.goal[list].map((goal, row) => (from && share < 1 ? from[list][row] + (goal - from[list][row]) * eased : goal));
    }
    if (share === 1) moving = 0;
  }

  /** @param {Scene} of */
  function fit(of) {
    fitScene(of, scroller.clientWidth);
    Object.assign(stage.style, { width: `${of.width}px`, height: `${of.height}px` });
    context = sizedContext(canvas, of.width, of.height);
    placeParts(of);
  }

  /**
   * Returns a part's column: a strip, an operation between strips, or the closed layers.
   * @param {Scene} of @param {{part: string, layer?: number}} spot @returns {import("./scene.js").Column | undefined}
   */
  function columnOf({ place, data }, { part, layer }) {
    if (part !== "stack") return place[part];
    const closed = Object.keys(place).filter((name) => name.startsWith("layer")).map((name) => place[name]);
    return layer !== undefined ? place[`layer${layer}`] : closed[data.layer ? 0 : closed.length - 1];
  }

  /** @param {HTMLElement} node @param {Record<string, number> | undefined} box px */
  function mark(node, box) {
    node.hidden = !box;
    for (const [side, length] of Object.entries(box ?? {})) node.style.setProperty(side, `${length}px`);
  }

  /** @param {Scene} of */
  function highlight(of) {
    const row = hot && hot.part !== "next" ? hot.row : undefined;
    mark(laneMark, row === undefined ? undefined : { top: of.tops[row], height: of.heights[row], width: right(of.place.fin) });
    const column = hot ? columnOf(of, hot) : undefined;
    const scrolled = hot?.part === "tokens" ? of.scrolled : 0;
    mark(columnMark, column && { left: column.x + scrolled - 4, width: Math.min(column.w + 8, of.width - column.x + 4), top: HEAD - 4, height: bottom(of) - HEAD + 8 });
  }

  /** @param {number} x @param {number} y @returns {Spot | null} */
  function spotAt(x, y) {
    if (!scene || y < HEAD - 44) return null;
    const { place, tops, heights } = scene;
    if (x < scene.scrolled + right(place.tokens)) x -= scene.scrolled; // inside the tokens, which do not scroll
    const found = Object.entries(place).find(([, column]) => x >= column.x - 1 && x <= right(column) + 1 && column.w);
    if (!found) return null;
    const row = tops.findIndex((top, i) => y >= top && y < top + heights[i]);
    const layer = found[0].startsWith("layer") ? Number(found[0].slice(5)) : undefined;
    return { part: layer === undefined ? found[0] : "stack", row: row < 0 ? undefined : row, layer, x, y };
  }

  /** @param {MouseEvent} event */
  function under(event) {
    const at = canvas.getBoundingClientRect();
    return spotAt(event.clientX - at.left, event.clientY - at.top);
  }

  /**
   * Returns a spot's tooltip: title, sentence, formula, the pair's numbers, shape and scale. Most formulas and
   * the scale appear only if all digits are shown.
   * @param {Scene} of @param {Spot} spot
   */
  function words({ data, chosen }, { part, row, layer }) {
    const open = layer ?? (data.layer ? 0 : data.n_layer - 1);
    const lines = (data.words[part] ?? t("flow.stack", { n: open, norm: data.norms[open] })).split("\n");
    let pair = "";
    if (row !== undefined && ATTENTION.includes(part)) {
      const names = { query: `“${data.tokens[chosen]}”`, key: `“${data.tokens[row]}”`, scores: data.scores_are, window: data.window };
      const numbers = { score: decimal(data.scores[row]), weight: percent(data.row[row]) };
      pair = t(row > chosen ? "flow.later" : row < firstSeen(data, chosen) ? "flow.far" : "flow.pair", { ...names, ...numbers });
    } else if (row !== undefined && row !== chosen && part !== "next") {
      pair = `${isExact() ? `${data.start + row}: ` : ""}“${data.tokens[row]}”`;
    }
    const scale = data.strips[part] && isExact() ? t("flow.full", { scale: data.strips[part].scale }) : "";
    const [title, says, formula] = lines;
    return [title, says, isExact() || PLAIN.includes(part) ? formula : "", pair, [shapeOf(data, part), scale].filter(Boolean).join(" · ")];
  }

  /** @param {Scene} of */
  function writeTip(of) {
    const tags = /** @type {const} */ (["strong", "p", "code", "code", "small"]);
    tip.hidden = !hot;
    if (!hot) return;
    const lines = words(of, hot).map((text, i) => (text ? make(tags[i], "", text) : null));
    tip.replaceChildren(...lines.filter((line) => line !== null));
  }

  /** @param {Scene} of @param {Spot} spot */
  function placeTip(of, spot) {
    const [around, at] = [root.getBoundingClientRect(), canvas.getBoundingClientRect()];
    const column = columnOf(of, spot);
    const x = (spot.x ?? (column ? centre(column) : 0)) + at.left - around.left;
    const y = (spot.y ?? HEAD + 40) + at.top - around.top;
    const left = x + 20 + tip.offsetWidth > around.width ? x - tip.offsetWidth - 20 : x + 20;
    const top = Math.max(0, y - tip.offsetHeight - 12);
    tip.style.transform = `translate(${Math.max(0, Math.min(left, around.width - tip.offsetWidth))}px, ${top}px)`;
  }

  /** @param {Spot | null} spot @param {boolean} [always] whether to act even if the spot has not changed */
  function point(spot, always = false) {
    const same = !always && hot && spot && hot.part === spot.part && hot.row === spot.row && hot.layer === spot.layer;
    hot = scene ? spot : null;
    if (!scene) return;
    if (!same) {
      highlight(scene);
      writeTip(scene);
    }
    if (hot) placeTip(scene, hot);
  }

  /** @param {"position" | "layer" | "head"} name @param {number} number @param {number} limit */
  function select(name, number, limit) {
    if (number >= 0 && number < limit) requests.want({ [name]: number });
  }

  const asSentence = (/** @type {string} */ line) => (/[.。!?！？]$/.test(line) ? line : `${line}.`);

  /** Places buttons over the canvas for keyboards and screen readers. @param {Scene} of */
  function placeParts(of) {
    const names = Object.keys(of.data.words);
    if (!names.includes("stack")) names.splice(names.indexOf("pre"), 0, "stack");
    setCount(parts, names.length, () => makeButton(""));
    names.forEach((part, i) => {
      const [button, column] = [/** @type {HTMLElement} */ (parts.children[i]), columnOf(of, { part })];
      button.dataset.part = part;
      button.hidden = !column;
      if (!column) return;
      button.style.left = `${column.x - 4}px`;
      button.style.width = `${Math.min(Math.max(TARGET, column.w + 8), of.width - column.x + 4)}px`;
      button.setAttribute("aria-label", words(of, { part }).filter(Boolean).map(asSentence).join(" "));
    });
    layerPick.style.left = `${of.place.open.x + 12}px`;
    if (of.place.weights) headPicks.style.left = `${of.place.weights.x}px`;
  }

  more.addEventListener("click", () => shown?.offered_rows && host.send({ rows: shown.offered_rows }));
  scroller.addEventListener("scroll", () => host.redraw());
  canvas.addEventListener("pointermove", (event) => point(under(event)));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("click", (event) => {
    const spot = under(event);
    if (!scene || !spot) return;
    const { data } = scene;
    if (spot.layer !== undefined) select("layer", spot.layer, data.n_layer);
    else if (spot.row !== undefined && spot.part !== "next") select("position", data.start + spot.row, data.total);
  });
  parts.addEventListener("focusin", ({ target }) => {
    const part = target instanceof HTMLElement && target.dataset.part;
    if (!scene || !part) return;
    const column = columnOf(scene, { part });
    const room = scroller.clientWidth;
    if (column) scroller.scrollLeft = Math.min(Math.max(scroller.scrollLeft, right(column) + 40 - room), Math.max(0, column.x - right(scene.place.tokens) - 16));
    point({ part });
  });
  parts.addEventListener("focusout", () => point(null));
  parts.addEventListener("keydown", (event) => {
    const move = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") return point(null);
    if (!move || !scene || !(event.target instanceof HTMLElement) || modified(event)) return;
    event.preventDefault();
    const { selected, total, layer, n_layer, head, n_head } = scene.data;
    const upright = event.key === "ArrowUp" || event.key === "ArrowDown";
    const name = upright ? "position" : ATTENTION.includes(event.target.dataset.part ?? "") ? "head" : "layer";
    const [now, limit] = { position: [selected, total], head: [head, n_head], layer: [layer, n_layer] }[name];
    select(name, (requests.wanted()[name] ?? now) + move, limit);
  });
  return { draw };
}

defineWidget("flow", mount);
