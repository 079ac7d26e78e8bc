/**
 * A text's branches: one row each, with its line on the left and its text beside it.
 * @typedef {object} Tree
 * @property {string} [text]  the text above it
 * @property {import("./layout.js").Lane[]} [lanes]  parents before their children; if missing, the widget is hidden
 */

import { find, make, makeShape, setText } from "../dom.js";
import { roving } from "../roving.js";
import { defineWidget } from "../runtime.js";
import { lanePaths, ROW } from "./layout.js";

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const list = find(root, ".gb-branches");
  const svg = find(list, "svg", SVGSVGElement);
  const rows = /** @type {HTMLCollectionOf<HTMLElement>} */ (list.getElementsByClassName("gb-branch"));
  /** @type {import("./layout.js").Lane[]} */ let lanes = [];
  /** @type {Tree | null} */ let shown = null;

  /** @param {import("./layout.js").Lane} lane */
  function makeRow({ here, label }) {
    const row = make("div", "gb-branch", "", { role: "option", "aria-selected": String(here) });
    row.append(make("span", "", label));
    return row;
  }

  function drawLines() {
    svg.replaceChildren();
    const width = svg.clientWidth;
    if (!width || !lanes.length) return;
    svg.setAttribute("height", String(ROW * lanes.length));
    const paths = lanePaths(lanes, width);
    const kinds = /** @type {const} */ ([["whole", "gb-branch-line"], ["reached", "gb-branch-line gb-current"], ["tip", "gb-branch-tip"]]);
    for (const [kind, name] of kinds) {
      for (const path of paths) if (path[kind]) svg.append(makeShape("path", { class: name, d: path[kind] }));
    }
  }

  /** @param {Tree} data */
  function draw(data) {
    if (data !== shown) {
      const { text = "" } = data;
      shown = data;
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
    drawLines();
  }

  const enter = roving(list, rows, (i) => host.send(lanes[i].sent));
  return { draw };
}

defineWidget("tree", mount);
