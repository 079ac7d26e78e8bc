// Draws entropy and surprisal along the text, as lines below the strip.

import { find, makeShape, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { visible } from "../labels.js";
import { inUnit, measured, surprisal } from "./chips.js";

/** @typedef {import("./chips.js").Token} Token */

const [TOP, BOTTOM, LEFT] = [6, 18, 28]; // px

/** Returns the top of the scale: an even number of bits, at least 4. @param {number[]} values may be infinite */
export const scaleTop = (values) => Math.max(4, 2 * Math.ceil(Math.max(0, ...values.filter(Number.isFinite)) / 2));

/**
 * @param {HTMLElement} root the strip's root
 * @param {object} strip
 * @param {Token[]} strip.tokens  the same list, as it grows
 * @param {() => number} strip.selected
 * @param {(index: number) => void} strip.select
 * @param {(index: number) => void} strip.point  called with the token under the pointer; -1 for none
 * @param {boolean} strip.offered  whether the lines can be shown
 */
export function createCurve(root, { tokens, selected, select, point, offered }) {
  const figure = find(root, ".gb-curve");
  const button = find(root, ".gb-open");
  const svg = find(figure, "svg", SVGSVGElement);
  const caption = find(figure, "figcaption");
  /** @template {keyof SVGElementTagNameMap} Tag @param {Tag} tag @param {string} name @returns {SVGElementTagNameMap[Tag]} */
  const shape = (tag, name) => svg.appendChild(makeShape(tag, { class: name }));
  const grid = [0, 1].map(() => ({ rule: shape("line", "gb-grid"), tick: shape("text", "gb-tick") }));
  const area = shape("path", "gb-area");
  const line = shape("path", "gb-line");
  const [frame, hairline] = [shape("line", "gb-chosen-at"), shape("line", "gb-hairline")];
  let stale = true;
  let pointed = -1;
  let [width, highest] = [0, 1];

  const height = () => svg.height.baseVal.value;
  const x = (/** @type {number} */ i) => LEFT + ((i - 0.5) * (width - LEFT)) / Math.max(1, tokens.length - 1);
  const y = (/** @type {number} */ value) => height() - BOTTOM - (Math.min(value, highest) / highest) * (height() - BOTTOM - TOP);
  const bits = (/** @type {number} */ value) => inUnit(value);

  /** @param {SVGElement} node @param {number} i */
  function place(node, i) {
    node.style.display = i > 0 && i < tokens.length ? "" : "none";
    if (i > 0) setAll(node, { x1: x(i), x2: x(i), y1: TOP, y2: height() - BOTTOM });
  }

  function totals() {
    const all = tokens.filter(measured);
    const mean = all.reduce((sum, token) => sum + surprisal(token), 0) / all.length;
    return all.length ? t("strip.totals", { n: all.length, mean: bits(mean), perplexity: (2 ** mean).toFixed(1) }) : "";
  }

  function say() {
    const token = tokens[pointed];
    const all = totals();
    svg.setAttribute("aria-label", all);
    if (!measured(token)) setText(caption, all);
    else {
      const numbers = { surprise: bits(surprisal(token)), entropy: bits(token.entropy ?? 0) };
      setText(caption, t("strip.here", { token: visible(token.text || token.bytes || ""), ...numbers }));
    }
  }

  function drawLines() {
    stale = false;
    width = svg.clientWidth;
    const places = tokens.map((_, i) => i).filter((i) => measured(tokens[i]));
    const entropy = (/** @type {Token} */ token) => token.entropy ?? 0;
    highest = scaleTop(places.flatMap((i) => [surprisal(tokens[i]), entropy(tokens[i])]));
    const through = (/** @type {(token: Token) => number} */ of) => places.map((i) => `${x(i).toFixed(1)} ${y(of(tokens[i])).toFixed(1)}`).join("L");
    line.setAttribute("d", places.length ? `M${through(surprisal)}` : "");
    const [first, last] = [places[0], places[places.length - 1]];
    area.setAttribute("d", places.length ? `M${x(first)} ${y(0)}L${through(entropy)}L${x(last)} ${y(0)}Z` : "");
    grid.forEach(({ rule, tick }, i) => {
      setAll(rule, { x1: LEFT, x2: width, y1: y(i * highest), y2: y(i * highest) });
      setAll(tick, { x: LEFT - 6, y: y(i * highest) + 4, "text-anchor": "end" });
      tick.textContent = String(i * highest);
    });
  }

  /** @param {boolean} [changed] whether the tokens have changed */
  function draw(changed = false) {
    stale ||= changed;
    if (figure.hidden || !svg.clientWidth) return;
    if (stale || width !== svg.clientWidth) {
      drawLines();
      say();
    }
    place(frame, selected());
    place(hairline, pointed);
  }

  /** Marks the token under the pointer; -1 for none. @param {number} i */
  function mark(i) {
    if (figure.hidden || i === pointed) return;
    pointed = i;
    place(hairline, i);
    say();
  }

  /** @param {boolean} on */
  function show(on) {
    button.setAttribute("aria-pressed", String(on));
    figure.hidden = !on;
    draw();
  }

  function relabel() {
    button.hidden = !offered;
    setText(button, t("strip.curve"));
    setText(find(figure, ".gb-is-surprise"), t("strip.surprise"));
    setText(find(figure, ".gb-is-entropy"), `${t("strip.entropy")} (${t("strip.unit")})`);
    if (!figure.hidden) say();
  }

  /** @param {MouseEvent} event */
  function under(event) {
    const share = (event.clientX - svg.getBoundingClientRect().left - LEFT) / Math.max(1, width - LEFT);
    const i = 1 + Math.floor(share * (tokens.length - 1));
    return share >= 0 && i < tokens.length ? i : -1;
  }

  button.addEventListener("click", () => show(Boolean(figure.hidden)));
  svg.addEventListener("pointermove", (event) => point(under(event)));
  svg.addEventListener("pointerleave", () => point(-1));
  svg.addEventListener("click", (event) => {
    if (under(event) > 0) select(under(event));
  });
  return { draw, mark, show, relabel };
}
