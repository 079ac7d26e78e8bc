/**
 * A text's branches: one row each, with its line on the left and its text beside it.
 * @typedef {object} Tree
 * @property {string} [text]  the text above it
 * @property {Lane[]} [lanes]  parents before their children; if missing, the widget is hidden
 */

import { find, make, makeShape, roving, setText } from "../dom.js";
import { defineWidget } from "../runtime.js";

/**
 * @typedef {object} Lane
 * @property {number | null} parent  index of its parent lane
 * @property {number} start  position of its fork, in tokens
 * @property {number} end  position of its end, in tokens
 * @property {number} reached  last position that the current text shares with it; below `start` if there is none
 * @property {boolean} here  whether the current text ends on it
 * @property {string} label
 * @property {object} sent  payload sent when it is chosen
 */

export const ROW = 28; // px
const [EDGE, BEND] = [10, 8]; // px

/** Returns a row's vertical middle in px. @param {number} row */
const y = (row) => ROW * (row + 0.5);

/** Returns paths per lane: all of it, what the text follows, and its tip; "" if missing. @param {Lane[]} lanes @param {number} width px */
export function lanePaths(lanes, width) {
  const deepest = Math.max(1, ...lanes.map((lane) => lane.end));
  const x = (/** @type {number} */ depth) => EDGE + (depth / deepest) * (width - 2 * EDGE);
  return lanes.map((lane, row) => {
    const to = (/** @type {number} */ end) => {
      if (lane.parent === null) return `M${x(0)} ${y(row)}H${x(end)}`;
      const from = x(lane.start);
      const bend = Math.min(BEND, Math.max(0, x(lane.end) - from));
      const corner = `Q${from} ${y(row)} ${from + bend} ${y(row)}`;
      return `M${from} ${y(lane.parent)}V${y(row) - BEND}${corner}H${Math.max(from + bend, x(end))}`;
    };
    return {
      whole: to(lane.end),
      reached: lane.reached >= lane.start ? to(lane.reached) : "",
      tip: lane.here ? `M${x(Math.max(lane.reached, lane.start))} ${y(row)}h0` : "",
    };
  });
}

defineWidget("tree", (root, host) => {
  const list = find(root, ".gb-branches");
  const svg = find(list, "svg", SVGSVGElement);
  const rows = /** @type {HTMLCollectionOf<HTMLElement>} */ (list.getElementsByClassName("gb-branch"));
  /** @type {Lane[]} */ let lanes = [];
  /** @type {Tree | null} */ let shown = null;

  /** @param {Lane} lane */
  const makeRow = ({ here, label }) =>
    make("div", "gb-branch", [make("span", "", label)], { role: "option", "aria-selected": String(here) });

  /** @param {Tree} data */
  function draw(data) {
    if (data !== shown) {
      const { text = "" } = shown = data;
      lanes = data.lanes ?? [];
      root.hidden = lanes.length === 0;
      const focused = list.contains(document.activeElement);
      setText(find(root, "figcaption"), text);
      list.setAttribute("aria-label", text);
      list.replaceChildren(svg, ...lanes.map(makeRow));
      const here = lanes.findIndex((lane) => lane.here);
      enter(here);
      if (focused) rows[here]?.focus();
    }
    const paths = lanePaths(lanes, svg.clientWidth);
    const kinds = /** @type {const} */ ([["whole", "gb-branch-line"], ["reached", "gb-branch-line gb-current"], ["tip", "gb-branch-tip"]]);
    svg.setAttribute("height", String(ROW * lanes.length));
    svg.replaceChildren(...kinds.flatMap(([kind, name]) => paths.map((path) => makeShape("path", { class: name, d: path[kind] }))));
  }

  const enter = roving(list, rows, (i) => host.send(lanes[i].sent));
  return { draw };
});
