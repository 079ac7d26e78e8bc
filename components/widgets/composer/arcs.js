// Arcs over a text: from the token that is predicted to those that the prediction attends to.

import { makeShape } from "../dom.js";

const RISE = 26; // px of the control points above the line
const LANE = 12; // px above a line, where what comes from another line runs

/** @typedef {{x: number, y: number}} Point */

/** An arc within a line. @param {Point} from @param {Point} to */
export function arcPath(from, to) {
  return `M${from.x} ${from.y}C${from.x} ${from.y - RISE} ${to.x} ${to.y - RISE} ${to.x} ${to.y}`;
}

/** From a token to the edge of its line, where the arc goes on in another one. @param {Point} token @param {number} edge */
export function edgePath({ x, y }, edge) {
  const turn = x + Math.sign(edge - x) * Math.min(LANE, Math.abs(edge - x));
  return `M${x} ${y}Q${x} ${y - LANE} ${turn} ${y - LANE}H${edge}`;
}

/**
 * @param {SVGSVGElement} svg @param {{node: (i: number) => HTMLElement | null}} copy
 * @param {[number, number][]} arcs position and weight @param {number} selected the position that attends
 */
export function drawArcs(svg, copy, arcs, selected) {
  svg.replaceChildren();
  const around = svg.getBoundingClientRect();
  /** The middle of a token's top, in the line that most of it is in. @param {number} i @returns {Point | null} */
  const top = (i) => {
    const [box] = [...(copy.node(i)?.getClientRects() ?? [])].sort((a, b) => b.width - a.width);
    return box ? { x: round(box.left + box.width / 2 - around.left), y: round(box.top - around.top) } : null;
  };
  /** @param {string} d @param {number} weight */
  const draw = (d, weight) =>
    svg.append(makeShape("path", { d, "stroke-width": (1 + 4 * weight).toFixed(2), "stroke-opacity": (0.25 + 0.6 * weight).toFixed(2) }));
  const from = top(selected + 1);
  if (!from || !arcs.length) return;
  let elsewhere = 0; // weight of the tokens in lines above
  for (const [position, weight] of arcs) {
    const to = top(position);
    if (!to) continue;
    if (to.y === from.y) draw(arcPath(from, to), weight);
    else {
      draw(edgePath(to, around.width), weight);
      elsewhere += weight;
    }
  }
  if (elsewhere) draw(edgePath(from, 0), elsewhere);
  svg.append(makeShape("circle", { cx: from.x, cy: from.y, r: 3 }));
}

/** @param {number} value */
const round = (value) => Math.round(value * 2) / 2;
