// Arches over a text, from the words that a prediction depends on to the predicted word. In the first line, an arch rises
// with its length. An arch to another line leaves to the nearer margin, runs along it, and enters between two lines. On
// phones it begins in the left margin, and its word is underlined.

import { themed } from "./canvas.js";
import { find, makeButton, makeShape, setCount, setText } from "./dom.js";
import { defineWidget } from "./runtime.js";
import { visible } from "./labels.js";

const [LOWEST, HIGHEST] = [40, 140]; // limits on an arch's height in px
const LOW = 16; // the same limit for an arch over a short text
const MAX_BETWEEN = 3; // arches that don't have the first line for themselves
const RISING = 0.17; // height per px of length
const LANE = 7; // between two arches in a margin, in px

/** @typedef {{x: number, y: number}} Place  the top centre of a token, in px */
/** @typedef {Place & {bottom: number}} Box */

/** Returns an arch within a line. @param {Place} from @param {Place} to @param {number} room free space above the line in px */
export function archPath(from, to, room, lowest = LOWEST) {
  const height = Math.min(room, HIGHEST, Math.max(lowest, RISING * Math.abs(to.x - from.x)));
  const y = from.y - (4 / 3) * height; // of the control points
  return `M${from.x} ${from.y}C${from.x} ${y} ${to.x} ${y} ${to.x} ${to.y}`;
}

/**
 * Returns an arch to a later line.
 * @param {Place} from @param {Place} to @param {number} margin x of its way down @param {number} gap distance from a line to the
 *   arch above it, in px @param {number} [room] free space above the word's line; without it, the arch leaves through the gap
 */
export function marginPath(from, to, margin, gap, room = 0) {
  const side = Math.sign(margin - to.x);
  const bendFrom = (/** @type {number} */ x) => Math.min(32, Math.abs(margin - x) / 2);
  const [out, bend, y] = [bendFrom(from.x), bendFrom(to.x), to.y - gap];
  const turn = to.x + side * bend;
  const top = from.y - (room ? (4 / 3) * Math.min(room, Math.max(LOWEST, RISING * Math.abs(margin - from.x))) : gap);
  const leaves = room
    ? `C${from.x} ${top} ${margin} ${top} ${margin} ${from.y + gap}`
    : `Q${from.x} ${top} ${from.x + side * out} ${top}H${margin - side * out}Q${margin} ${top} ${margin} ${(top + y) / 2}`;
  return `M${from.x} ${from.y}${leaves}V${Math.max(from.y + gap, y - bend)}Q${margin} ${y} ${margin - side * bend} ${y}H${turn}Q${to.x} ${y} ${to.x} ${to.y}`;
}

/**
 * @param {SVGSVGElement} svg @param {{node: (i: number) => HTMLElement | null}} copy
 * @param {[number, number][]} arcs [position, weight] each @param {number} selected the position before the prediction
 * @param {boolean} pulses whether light runs along the strongest arch
 * @param {(position: number) => number} lastOf returns the last token of the word that begins at a position
 */
export function drawArcs(svg, copy, arcs, selected, pulses, lastOf) {
  const around = svg.getBoundingClientRect();
  /** Returns a token's place, in the line that contains most of it. @param {number} i @returns {Place | null} */
  const placeOf = (i) => {
    const [box] = [...(copy.node(i)?.getClientRects() ?? [])].sort((a, b) => b.width - a.width);
    return box ? { x: round(box.left + box.width / 2 - around.left), y: round(box.top - around.top) } : null;
  };
  const to = arcs.length ? placeOf(selected + 1) : null;
  if (!to) return svg.replaceChildren();
  const first = placeOf(0)?.y ?? 0;
  const goal = /** @type {HTMLElement} */ (copy.node(selected + 1));
  const lineHeight = parseFloat(getComputedStyle(svg).lineHeight);
  const letters = parseFloat(getComputedStyle(goal).fontSize);
  const gap = round(0.1 * lineHeight);
  const between = Math.max(6, lineHeight - goal.getClientRects()[0].height - 2); // px of room over a line that isn't the first
  const isNarrow = matchMedia("(max-width: 900px)").matches; // there is no room in the right margin
  const paths = [...arcs].sort((a, b) => a[1] - b[1]).flatMap(([position, weight], i) => {
    const from = placeOf(position);
    const rank = arcs.length - 1 - i;
    const isFirst = from?.y === to.y && to.y === first;
    if (!from || (!isFirst && rank >= MAX_BETWEEN)) return [];
    const isRight = !isNarrow && from.x + to.x > around.width;
    const out = (isNarrow ? 28 : 32) - LANE * rank;
    const room = from.y === first ? first - 4 - LANE * rank : 0;
    const width = 1 + (isFirst ? 5 : 3) * weight;
    const look = { "stroke-width": width.toFixed(2), "stroke-opacity": (0.2 + 0.7 * weight).toFixed(2) };
    if (from.y === to.y) return [makeShape("path", { d: archPath(from, to, isFirst ? first - 4 : between), ...look })];
    const margin = isRight ? around.width + out : -out;
    if (room || !isNarrow) return [makeShape("path", { d: marginPath(from, to, margin, gap, room), ...look })];
    const [head, tail] = [position, lastOf(position)].map((token) => /** @type {HTMLElement} */ (copy.node(token)).getBoundingClientRect());
    const y = round(head.bottom - around.top - gap / 2);
    const line = makeShape("path", { d: `M${round(head.left - around.left + 0.25 * letters)} ${y}H${round(tail.right - around.left)}`, ...look });
    const start = { x: -2, y: from.y + head.height / 2 };
    return [line, makeShape("path", { d: marginPath(start, to, margin, gap), ...look })];
  });
  const drawn = paths.map((path) => path.outerHTML).join("");
  if (svg.dataset.drawn === drawn && svg.childElementCount) return; // the light doesn't run again
  svg.dataset.drawn = drawn;
  const strongest = pulses && paths.at(-1);
  if (strongest) paths.push(makeShape("path", { class: "gb-pulse", d: strongest.getAttribute("d") ?? "", pathLength: 1 }));
  svg.replaceChildren(...paths, makeShape("circle", { cx: to.x, cy: to.y, r: 4 }));
}

/** @param {number} value */
const round = (value) => Math.round(value * 2) / 2;

// A short text as tokens, with arcs above it

const ROOM = 44; // px above a line

/** Returns an arc between two tokens, and the y of its end. Between two lines, it crosses neither token. @param {Box} from @param {Box} to @returns {[string, number]} */
function pathBetween(from, to) {
  if (from.y === to.y) return [archPath(from, to, ROOM, LOW), to.y];
  const [start, end] = from.y > to.y ? [from.y, to.bottom] : [from.bottom, to.y];
  const y = (start + end) / 2;
  return [`M${from.x} ${start}C${from.x} ${y} ${to.x} ${y} ${to.x} ${end}`, end];
}

/**
 * @typedef {object} Arcs
 * @property {string[]} [tokens]  if empty, nothing is shown
 * @property {string} [name]  the text's name for screen readers
 * @property {[number, number, number][]} [arcs]  from, to, weight in 0..1
 * @property {boolean} [is_flat]  whether to reserve no space for arcs
 * @property {boolean} [selectable]  whether tokens can be selected
 * @property {number} [selected]  the selected position; -1 for none
 */

defineWidget("arcs", (root, host) => {
  const [svg, text] = [find(root, "svg", SVGSVGElement), find(root, ".gb-arcs-text")];

  /** @param {Arcs} data */
  function draw({ tokens = [], name = "", arcs = [], is_flat = false, selectable = false, selected = -1 }) {
    root.classList.toggle("gb-nothing", !tokens.length);
    text.setAttribute("aria-label", name);
    text.classList.toggle("gb-flat", is_flat);
    setCount(text, tokens.length, () => makeButton("gb-arcs-token"));
    const nodes = [.../** @type {HTMLCollectionOf<HTMLButtonElement>} */ (text.children)];
    nodes.forEach((node, i) => {
      setText(node, visible(tokens[i]));
      node.disabled = !selectable;
      node.ariaPressed = selectable ? String(i === selected) : null;
    });
    svg.replaceChildren();
    const colour = themed(root, "attention");
    const around = svg.getBoundingClientRect();
    const place = (/** @type {number} */ i) => {
      const box = nodes[i].getBoundingClientRect();
      return { x: round(box.left + box.width / 2 - around.left), y: round(box.top - around.top) - 2, bottom: round(box.bottom - around.top) + 2 };
    };
    for (const [from, to, weight] of arcs) {
      const [d, end] = pathBetween(place(from), place(to));
      const opacity = (0.2 + 0.75 * weight).toFixed(2);
      svg.append(
        makeShape("path", { d, stroke: colour, "stroke-width": (1 + 4 * weight).toFixed(2), "stroke-opacity": opacity }),
        makeShape("circle", { cx: place(to).x, cy: end, r: 3.5, fill: colour, "fill-opacity": opacity }),
      );
    }
  }

  text.addEventListener("click", ({ target }) => {
    const index = [...text.children].findIndex((node) => node === target);
    if (index >= 0) host.send({ index });
  });
  return { draw };
});
