// Arches over a text, from the words that a prediction depends on to the predicted word. In the first line, an arch rises
// with its length. Elsewhere, it stays in the gap above its line; between two lines, it bends around the left margin.

import { makeShape } from "../dom.js";

const [LOWEST, HIGHEST] = [40, 140]; // limits on an arch's height in px
const MAX_BETWEEN = 4; // arches in the gaps between lines
const RISING = 0.17; // height per px of length
const [MARGIN, LANE] = [24, 5]; // room in the left margin, and between two arches there, in px

/** @typedef {{x: number, y: number}} Place  the top centre of a token, in px */

/**
 * Returns an arch within a line. @param {Place} from @param {Place} to
 * @param {number} room free space above the line in px
 */
export function archPath(from, to, room) {
  const height = Math.min(room, HIGHEST, Math.max(LOWEST, RISING * Math.abs(to.x - from.x)));
  const y = from.y - (4 / 3) * height; // of the control points
  return `M${from.x} ${from.y}C${from.x} ${y} ${to.x} ${y} ${to.x} ${to.y}`;
}

/**
 * Returns an arch between two lines: through the gap above each, and around the left margin.
 * @param {Place} from @param {Place} to @param {number} reach px into the margin @param {number} gap distance from a line to
 *   the arch above it, in px
 */
export function marginPath(from, to, reach, gap) {
  const [y0, y1, bulge] = [from.y - gap, to.y - gap, (-4 / 3) * reach];
  const [rise, fall] = [Math.min(24, from.x / 2), Math.min(24, to.x / 2)]; // px along the lines
  return `M${from.x} ${from.y}Q${from.x} ${y0} ${from.x - rise} ${y0}H0C${bulge} ${y0} ${bulge} ${y1} 0 ${y1}H${to.x - fall}Q${to.x} ${y1} ${to.x} ${to.y}`;
}

/**
 * @param {SVGSVGElement} svg @param {{node: (i: number) => HTMLElement | null}} copy
 * @param {[number, number][]} arcs [position, weight] each @param {number} selected the position before the prediction
 * @param {boolean} pulses whether light runs along the strongest arch
 */
export function drawArcs(svg, copy, arcs, selected, pulses) {
  const around = svg.getBoundingClientRect();
  /** Returns a token's place, in the line that contains most of it. @param {number} i @returns {Place | null} */
  const placeOf = (i) => {
    const [box] = [...(copy.node(i)?.getClientRects() ?? [])].sort((a, b) => b.width - a.width);
    return box ? { x: round(box.left + box.width / 2 - around.left), y: round(box.top - around.top) } : null;
  };
  const to = arcs.length ? placeOf(selected + 1) : null;
  if (!to) return svg.replaceChildren();
  const first = placeOf(0)?.y ?? 0;
  const gap = round(0.12 * parseFloat(getComputedStyle(svg).lineHeight));
  const between = 2.5 * gap; // room for an arch within a line that has one above it
  const rising = [...arcs].sort((a, b) => a[1] - b[1]);
  const paths = rising.flatMap(([position, weight], i) => {
    const from = placeOf(position);
    const rank = arcs.length - 1 - i;
    const isFirst = from?.y === to.y && to.y === first;
    if (!from || (!isFirst && rank >= MAX_BETWEEN)) return [];
    const d = from.y === to.y ? archPath(from, to, isFirst ? first - 4 : between) : marginPath(from, to, MARGIN - LANE * rank, gap);
    const width = 1 + (isFirst ? 5 : 2) * weight;
    return [makeShape("path", { d, "stroke-width": width.toFixed(2), "stroke-opacity": (0.2 + 0.7 * weight).toFixed(2) })];
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
