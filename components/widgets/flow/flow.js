// The whole model in one diagram: one row per token, from its embedding to the next token. Buttons over the canvas serve
// keyboards and screen readers.

import { frame, sizedContext } from "../canvas.js";
import { find, make, makeButton, modified, setCount, setHint, setText } from "../dom.js";
import { t } from "../i18n.js";
import { decimal, isExact, percent } from "../labels.js";
import { createRequests, drawPicks } from "../picks.js";
import { defineWidget } from "../runtime.js";
import { createPointerTip } from "../tip.js";
import { ATTENTION, HEAD, centre, firstSeen, fitScene, makeScene, right, shapeOf } from "./scene.js";
import { paint } from "./paint.js";

/** @typedef {import("./scene.js").Flow} Flow */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {{part: string, row?: number, layer?: number}} Spot  a part, a row in it, or a closed layer */

const NARROWEST = 1180; // px
const TARGET = 24; // minimum width of a part's button, in px
const PLAIN = ["tokens", "weights"]; // parts whose formulas are always shown, as they contain no ids or lengths

defineWidget("flow", (root, host) => {
  const [scroller, stage, parts, more] = ["scroll", "stage", "parts", "more"].map((name) => find(root, `.gb-flow-${name}`));
  const [laneMark, columnMark, layerPick, headPicks] = ["lane", "column", "layer", "heads"].map((name) => find(root, `.gb-flow-${name}`));
  const canvas = find(root, "canvas", HTMLCanvasElement);
  const tip = createPointerTip(root, find(root, ".gb-flow-tip"));
  const requests = createRequests(host.send);
  /** @type {Partial<Flow>} */ let shown = {};
  let dark = false;
  /** @type {Scene | null} */ let scene = null;
  /** @type {Spot | null} */ let hot = null; // the spot under the pointer or focus
  /** @type {MouseEvent | null} */ let pointer = null;

  /** @param {Partial<Flow>} data */
  function draw(data) {
    if (data !== shown) requests.answered();
    const isSame = data === shown && dark === host.dark;
    [shown, dark] = [data, host.dark];
    root.classList.toggle("gb-nothing", !data.tokens);
    setText(find(root, ".gb-flow-scale"), t("flow.scale") + (isExact() ? t("flow.scale.pixels") : ""));
    setText(find(root, "figcaption .gb-says"), data.text ?? "");
    setHint(find(root, "figcaption .gb-note"), t("flow.hint"), t("flow.keys"));
    setText(more, data.offered_rows ? t("flow.rows", { n: Math.min(data.offered_rows, data.total ?? 0) }) : "");
    more.hidden = !data.offered_rows;
    parts.setAttribute("aria-label", t("flow.name"));
    if (!data.tokens) scene = null;
    else if (!isSame || !scene) {
      scene = makeScene(/** @type {Flow} */ (data), root, canvas);
      drawPicks(root, scene.data, requests.want);
    }
    if (!scene || scroller.clientWidth < 50) return;
    const width = Math.max(NARROWEST, scroller.clientWidth);
    if (scene.width !== width) fit(scene, width);
    scene.scrolled = scroller.scrollLeft;
    paint(scene);
    point(pointer ? under(pointer) : hot);
  }

  /** @param {Scene} of @param {number} width */
  function fit(of, width) {
    fitScene(of, width);
    Object.assign(stage.style, { width: `${width}px`, height: `${of.height}px` });
    sizedContext(canvas, width, of.height);
    const names = Object.keys(of.data.words).flatMap((part) => (part === "pre" ? ["stack", part] : part));
    setCount(parts, names.length, () => makeButton(""));
    names.forEach((part, i) => {
      const [button, column] = [/** @type {HTMLElement} */ (parts.children[i]), columnOf(of, { part })];
      button.dataset.part = part;
      frame(button, column && { left: column.x - 4, width: Math.min(Math.max(TARGET, column.w + 8), width - column.x + 4) });
      button.setAttribute("aria-label", words(of, { part }).filter(Boolean).map(asSentence).join(" "));
    });
    layerPick.style.left = `${of.place.open.x + 12}px`;
    headPicks.style.left = `${of.place.weights.x}px`;
  }

  const asSentence = (/** @type {string} */ line) => (/[.。!?！？]$/.test(line) ? line : `${line}.`);

  /**
   * Returns a part's column: a strip, an operation between strips, or the closed layers.
   * @param {Scene} of @param {Spot} spot @returns {import("./scene.js").Column | undefined}
   */
  function columnOf({ place, data }, { part, layer = data.layer ? 0 : data.n_layer - 1 }) {
    return place[part === "stack" ? `layer${layer}` : part];
  }

  /** @param {MouseEvent} event @returns {Spot | null} */
  function under({ clientX, clientY }) {
    const at = canvas.getBoundingClientRect();
    const y = clientY - at.top;
    if (!scene || y < HEAD - 44) return null;
    const { place, tops, heights, scrolled } = scene;
    let x = clientX - at.left;
    if (x < scrolled + right(place.tokens)) x -= scrolled; // inside the tokens, which do not scroll
    const [part] = Object.entries(place).find(([, column]) => x >= column.x - 1 && x <= right(column) + 1 && column.w) ?? [];
    if (!part) return null;
    const row = tops.findIndex((top, i) => y >= top && y < top + heights[i]);
    const spot = part.startsWith("layer") ? { part: "stack", layer: Number(part.slice(5)) } : { part };
    return { ...spot, row: row < 0 ? undefined : row };
  }

  /**
   * Returns a spot's tooltip: title, sentence, formula, the pair's numbers, shape and scale. Most formulas and
   * the scale appear only if all digits are shown. @param {Scene} of @param {Spot} spot
   */
  function words({ data, chosen }, { part, row, layer = data.layer ? 0 : data.n_layer - 1 }) {
    const [title, says, formula] = (data.words[part] ?? t("flow.stack", { n: layer, norm: data.norms[layer] })).split("\n");
    let pair = "";
    if (row !== undefined && ATTENTION.includes(part)) {
      const names = { query: `“${data.tokens[chosen]}”`, key: `“${data.tokens[row]}”`, scores: data.scores_are, window: data.window };
      const numbers = { score: decimal(data.scores[row]), weight: percent(data.row[row]) };
      pair = t(row > chosen ? "flow.later" : row < firstSeen(data, chosen) ? "flow.far" : "flow.pair", { ...names, ...numbers });
    } else if (row !== undefined && row !== chosen && part !== "next") {
      pair = `${isExact() ? `${data.start + row}: ` : ""}“${data.tokens[row]}”`;
    }
    const scale = data.strips[part] && isExact() ? t("flow.full", { scale: data.strips[part].scale }) : "";
    return [title, says, isExact() || PLAIN.includes(part) ? formula : "", pair, [shapeOf(data, part), scale].filter(Boolean).join(" · ")];
  }

  /** Frames a spot and explains it. @param {Spot | null} spot */
  function point(spot) {
    hot = spot;
    tip.hide();
    if (!scene) return;
    const { place, tops, heights, bottom, width, scrolled } = scene;
    const { part, row } = spot ?? {};
    frame(laneMark, row === undefined || part === "next" ? undefined : { top: tops[row], height: heights[row], width: right(place.fin) });
    const column = spot ? columnOf(scene, spot) : undefined;
    const left = column && column.x + (part === "tokens" ? scrolled : 0) - 4;
    frame(columnMark, column && { left, width: Math.min(column.w + 8, width - column.x + 4), top: HEAD - 4, height: bottom - HEAD + 8 });
    if (!spot) return;
    const tags = /** @type {const} */ (["strong", "p", "code", "code", "small"]);
    const lines = words(scene, spot).flatMap((text, i) => (text ? [make(tags[i], "", text)] : []));
    const at = canvas.getBoundingClientRect();
    tip.show(pointer ?? { clientX: at.left + (column ? centre(column) : 0), clientY: at.top + HEAD + 40 }, lines);
  }

  /** @param {"position" | "layer" | "head"} name @param {number} number @param {number} limit */
  function select(name, number, limit) {
    if (number >= 0 && number < limit) requests.want({ [name]: number });
  }

  more.addEventListener("click", () => shown.offered_rows && host.send({ rows: shown.offered_rows }));
  scroller.addEventListener("scroll", host.redraw);
  canvas.addEventListener("pointermove", (event) => {
    pointer = event;
    point(under(event));
  });
  canvas.addEventListener("pointerleave", () => {
    pointer = null;
    point(null);
  });
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
    pointer = null;
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
});
