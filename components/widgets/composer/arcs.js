// Arcs over a text: from the token that is predicted to those that the prediction attends to.

import { makeShape } from "../dom.js";

const RISE = 26; // px of the control points above the line

/** @typedef {{x: number, y: number}} Point */

/** @param {Point} from @param {Point} to */
export function arcPath(from, to) {
  return `M${from.x} ${from.y}C${from.x} ${from.y - RISE} ${to.x} ${to.y - RISE} ${to.x} ${to.y}`;
}

/**
 * @param {SVGSVGElement} svg @param {{node: (i: number) => HTMLElement | null}} copy
 * @param {[number, number][]} arcs position and weight @param {number} selected the position that attends
 */
export function drawArcs(svg, copy, arcs, selected) {
  svg.replaceChildren();
  const around = svg.getBoundingClientRect();
  /** @param {number} i @returns {Point | null} */
  const top = (i) => {
    const box = copy.node(i)?.getClientRects()[0];
    return box ? { x: round(box.left + box.width / 2 - around.left), y: round(box.top - around.top) } : null;
  };
  const from = top(selected + 1);
  if (!from || !arcs.length) return;
  for (const [position, weight] of arcs) {
    const to = top(position);
    if (!to) continue;
    const width = (1 + 5 * weight).toFixed(2);
    svg.append(makeShape("path", { d: arcPath(from, to), "stroke-width": width, "stroke-opacity": (0.25 + 0.6 * weight).toFixed(2) }));
  }
  svg.append(makeShape("circle", { cx: from.x, cy: from.y, r: 3 }));
}

/** @param {number} value */
const round = (value) => Math.round(value * 2) / 2;
