/**
 * A short text as tokens, with arcs above it.
 * @typedef {object} Arcs
 * @property {string[]} [tokens]  if empty, nothing is shown
 * @property {string} [name]  the text's name for screen readers
 * @property {[number, number, number, number][]} [arcs]  from, to, weight in 0..1, head
 * @property {boolean} [is_flat]  whether to reserve no space for arcs
 * @property {boolean} [selectable]  whether tokens can be selected
 * @property {number} [selected]  the selected position; -1 for none
 */

import { themed } from "./canvas.js";
import { find, makeButton, makeShape, setCount, setText } from "./dom.js";
import { defineWidget } from "./runtime.js";
import { visible } from "./text.js";

const [LOWEST, HIGHEST] = [16, 44]; // limits on an arc's height above the tokens, in px

/**
 * @typedef {{x: number, y: number}} Point
 * @typedef {{x: number, top: number, bottom: number}} Place  a token's position; x is its middle
 */

/**
 * Returns an arc above a line of text; wider arcs are higher. Between two lines, the curve crosses neither token.
 * @param {Place} from @param {Place} to @returns {{d: string, end: Point}}
 */
export function arcBetween(from, to) {
  if (from.top === to.top) {
    const y = from.top - (4 / 3) * Math.min(HIGHEST, LOWEST + Math.abs(to.x - from.x) / 14); // y of the control points
    return { d: `M${from.x} ${from.top}C${from.x} ${y} ${to.x} ${y} ${to.x} ${to.top}`, end: { x: to.x, y: to.top } };
  }
  const [start, end] = from.top > to.top ? [from.top, to.bottom] : [from.bottom, to.top];
  const y = (start + end) / 2;
  return { d: `M${from.x} ${start}C${from.x} ${y} ${to.x} ${y} ${to.x} ${end}`, end: { x: to.x, y: end } };
}

/** @type {import("./runtime.js").Mount} */
function mount(root, host) {
  const [svg, text] = [find(root, "svg", SVGSVGElement), find(root, ".gb-arcs-text")];

  /** @param {Arcs} data */
  function draw({ tokens = [], name = "", arcs = [], is_flat = false, selectable = false, selected = -1 }) {
    root.classList.toggle("gb-nothing", !tokens.length);
    text.setAttribute("aria-label", name);
    text.classList.toggle("gb-flat", is_flat);
    setCount(text, tokens.length, () => makeButton("gb-arcs-token"));
    const nodes = /** @type {HTMLCollectionOf<HTMLButtonElement>} */ (text.children);
    tokens.forEach((token, i) => {
      setText(nodes[i], visible(token));
      nodes[i].disabled = !selectable;
      if (selectable) nodes[i].setAttribute("aria-pressed", String(i === selected));
      else nodes[i].removeAttribute("aria-pressed");
    });
    drawArcs(arcs, nodes);
  }

  /** @param {[number, number, number, number][]} arcs @param {HTMLCollectionOf<HTMLButtonElement>} nodes */
  function drawArcs(arcs, nodes) {
    svg.replaceChildren();
    const around = svg.getBoundingClientRect();
    const place = (/** @type {number} */ i) => {
      const box = nodes[i].getBoundingClientRect();
      const [top, bottom] = [box.top, box.bottom].map((y) => Math.round(y - around.top));
      return { x: Math.round(box.left + box.width / 2 - around.left), top: top - 2, bottom: bottom + 2 };
    };
    for (const [from, to, weight] of arcs) {
      const [{ d, end }, colour] = [arcBetween(place(from), place(to)), themed(root, "attention")];
      const look = { stroke: colour, "stroke-width": (1 + 4 * weight).toFixed(2), "stroke-opacity": (0.2 + 0.75 * weight).toFixed(2) };
      svg.append(makeShape("path", { d, ...look }));
      svg.append(makeShape("circle", { cx: end.x, cy: end.y, r: 3.5, fill: colour, "fill-opacity": look["stroke-opacity"] }));
    }
  }

  text.addEventListener("click", ({ target }) => {
    const index = [...text.children].findIndex((node) => node === target);
    if (index >= 0) host.send({ index });
  });
  return { draw };
}

defineWidget("arcs", mount);
