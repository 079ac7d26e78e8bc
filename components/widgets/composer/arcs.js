// Arcs above a text, from the predicted token to the words that the prediction depends on.

import { makeShape } from "../dom.js";

const RISE = 30; // px by which the control points rise above the line
const HOOD = 12; // px by which the control point rises above a word in another line

/** @typedef {{x: number, y: number, width: number}} Place  the top centre of a token, and its width */

/** Returns an arc within a line. @param {Place} from @param {Place} to */
export function arcPath(from, to) {
  return `M${from.x} ${from.y}C${from.x} ${from.y - RISE} ${to.x} ${to.y - RISE} ${to.x} ${to.y}`;
}

/**
 * Returns a small arc over a word in another line; an arc between the lines would strike through the text.
 * @param {Place} word
 */
export function hoodPath({ x, y, width }) {
  return `M${x - width / 2} ${y}Q${x} ${y - HOOD} ${x + width / 2} ${y}`;
}

/**
 * @param {SVGSVGElement} svg @param {{node: (i: number) => HTMLElement | null}} copy
 * @param {[number, number][]} arcs [position, weight] each @param {number} selected the attending position
 */
export function drawArcs(svg, copy, arcs, selected) {
  svg.replaceChildren();
  const around = svg.getBoundingClientRect();
  /** Returns a token's place, in the line that contains most of it. @param {number} i @returns {Place | null} */
  const placeOf = (i) => {
    const [box] = [...(copy.node(i)?.getClientRects() ?? [])].sort((a, b) => b.width - a.width);
    return box ? { x: round(box.left + box.width / 2 - around.left), y: round(box.top - around.top), width: round(box.width) } : null;
  };
  const from = placeOf(selected + 1);
  if (!from || !arcs.length) return;
  for (const [position, weight] of arcs) {
    const to = placeOf(position);
    if (!to) continue;
    const d = to.y === from.y ? arcPath(from, to) : hoodPath(to);
    svg.append(makeShape("path", { d, "stroke-width": (1 + 4 * weight).toFixed(2), "stroke-opacity": (0.25 + 0.6 * weight).toFixed(2) }));
  }
  svg.append(makeShape("circle", { cx: from.x, cy: from.y, r: 3 }));
}

/** @param {number} value */
const round = (value) => Math.round(value * 2) / 2;
