// A flow in columns to one predicted token. Its parts can be switched off.

import { find, makeShape, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { defineWidget } from "../runtime.js";
import { ofConcepts, ofHeads } from "./contents.js";
import { arrange, outline } from "./layout.js";
import { answer, explain, switches, write } from "./switches.js";

const NARROW = 590; // px
const TOP = 28; // px for the titles
const THINNEST = 0.05; // px

/** @typedef {import("./contents.js").OfHeads & import("./contents.js").OfConcepts & import("./contents.js").Answer} Flow */
/** @typedef {import("./contents.js").Look} Look */

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const svg = find(root, "svg", SVGSVGElement);
  const button = find(root, "button", HTMLButtonElement);
  const parts = switches(svg, (payload) => host.send(payload));

  /**
   * Truncates a text to a width in px; Chinese characters count double.
   * @param {string} text @param {number} width @param {number} [unit]
   */
  const cut = (text, width, unit = 7.2) => {
    let room = Math.max(3, (width - 12) / unit);
    const kept = [...text].findIndex((character) => (room -= character > "\u2e7f" ? 1.9 : 1) < 0);
    return kept < 0 ? text : `${[...text].slice(0, Math.max(1, kept - 1)).join("")}…`;
  };

  /** Adds a node or a ribbon, which a click switches if it sends something. @param {SVGElement} shape @param {Look} look */
  function place(shape, { isOff, isSwitched = isOff, sends, says }) {
    if (sends) parts.add(shape, sends, says ?? "", isSwitched);
    else if (says) explain(shape, says);
    svg.append(shape);
  }

  /** @param {import("./layout.js").Ribbon} at @param {number} x0 @param {number} x1 @param {Look} look */
  function ribbon(at, x0, x1, look) {
    if (at.width < THINNEST) return;
    const path = outline({ ...at, from: at.from + TOP, to: at.to + TOP }, x0, x1);
    place(makeShape("path", { d: path, class: classes("gb-ribbon", look), style: look.style ?? "" }), look);
  }

  /** @param {Flow} data */
  function draw(data) {
    const { columns: concepts, heads = [], target = "", before = 0, after = null, off } = data;
    const isEmpty = concepts ? !concepts.length : !heads.length;
    root.hidden = isEmpty && !data.is_pending;
    root.classList.toggle("gb-pending", isEmpty);
    root.classList.toggle("gb-concepts", Boolean(concepts));
    if (isEmpty) return;
    const width = root.clientWidth;
    const isNarrow = width < NARROW;
    const { name, columns, edges } = concepts ? ofConcepts(data) : ofHeads(data, isNarrow);
    const end = isNarrow ? 88 : 155; // leaves room for "70% → 56%"
    const least = isNarrow ? 12 : Math.max(32, (width - end) * 0.09); // px between columns
    const box = (width - end) / columns.length - least;
    const widths = columns.map((each) => Math.min(each.width ?? box, box));
    const gap = (width - end - widths.reduce((sum, each) => sum + each, 0)) / columns.length;
    const left = widths.map((_, c) => widths.slice(0, c).reduce((sum, each) => sum + each + gap, 0));
    const right = left.map((x, c) => x + widths[c]);
    const { places, ribbons, writes, height } = arrange(
      columns.map(({ nodes }) => nodes.map(({ size }) => size)),
      edges.map(({ edge }) => edge),
    );
    parts.clear();
    setAll(svg, { width, height: height + TOP + 4, "aria-label": name });
    edges.forEach(({ edge: [column], look }, e) => ribbon(ribbons[e], right[column], left[column + 1], look));
    const last = columns.length - 1;
    columns[last].nodes.forEach((node, i) => node.writes && ribbon(writes[i], right[last], width - end, node.writes));
    columns.forEach(({ title, width: given, nodes }, c) => {
      svg.append(write(title, left[c], 12, "gb-ribbon-title"));
      nodes.forEach((node, i) => {
        const { y, height: tall } = places[c][i];
        const group = makeShape("g", { class: classes("", node), style: node.style ?? "" });
        group.append(makeShape("rect", { x: left[c], y: y + TOP - tall / 2, width: widths[c], height: tall - 4, rx: 6 }));
        group.append(write(given ? node.text : cut(node.text, widths[c]), left[c] + widths[c] / 2, y + TOP + 3, "", "middle"));
        place(group, node);
        const label = find(group, "text", SVGTextElement);
        if (label.getComputedTextLength() > widths[c] - 8) setAll(label, { textLength: widths[c] - 8, lengthAdjust: "spacingAndGlyphs" });
      });
    });
    svg.append(...answer(cut(target, end + 8, 9.6), before, after, width - end + 8, end - 8, height / 2 + TOP));
    parts.enter();
    setText(find(root, "p"), data.says ?? "");
    setText(button, t("why.flow.all"));
    const isAnyOff = concepts ? concepts.some(({ nodes }) => nodes.some((node) => node.off)) : Object.values(off ?? {}).some((each) => each.length);
    button.hidden = !isAnyOff;
  }

  button.addEventListener("click", () => host.send({ all: true }));
  return { draw };
}

/** @param {string} kind @param {Look} look */
const classes = (kind, { css = "", isOff }) => [kind, css, isOff ? "gb-off" : ""].filter(Boolean).join(" ");

defineWidget("ribbons", mount);
