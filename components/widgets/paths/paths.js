/**
 * The flow from words through concepts to the predicted token.
 * @typedef {{key: string | null, name: string, adds: number, off: boolean, says: string}} Step
 * @typedef {object} Paths
 * @property {{title: string, nodes: Step[]}[]} [columns]  if missing, the widget is hidden
 * @property {[column: number, from: number, to: number, size: number][]} [edges]
 * @property {string} [target] @property {number} [before]  its probability @property {number | null} [after]
 * @property {string} [says] @property {string} [name]  the target in a sentence
 */

import { find, makeShape, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { outline } from "../ribbons/layout.js";
import { answer, explain, switches, write } from "../ribbons/switches.js";
import { defineWidget } from "../runtime.js";
import { arrange } from "./layout.js";

const NARROW = 620; // px
const TOP = 30; // px for the titles

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

  /** @param {Paths} data */
  function draw(data) {
    const { columns = [], edges = [], target = "", before = 0, after = null } = data;
    root.hidden = !columns.length;
    if (!columns.length) return;
    const width = root.clientWidth;
    const isNarrow = width < NARROW;
    const end = isNarrow ? 84 : 150; // leaves room for "70% → 56%"
    const gap = isNarrow ? 12 : Math.max(32, (width - end) * 0.09);
    const box = (width - end - gap * columns.length) / columns.length;
    const left = (/** @type {number} */ column) => column * (box + gap);
    const { places, bands, writes, height } = arrange(columns.map(({ nodes }) => nodes.map(({ adds }) => adds)), edges);
    parts.clear();
    setAll(svg, { width, height: height + TOP + 4, "aria-label": t("why.paths.name", { token: data.name ?? "" }) });

    const isOff = (/** @type {number} */ column, /** @type {number} */ node) => columns[column].nodes[node].off;
    const band = (/** @type {import("./layout.js").Band} */ each, /** @type {number} */ to, /** @type {string} */ css) => {
      if (each.width < 0.3) return;
      const ribbon = { ...each, from: each.from + TOP, to: each.to + TOP };
      svg.append(makeShape("path", { d: outline(ribbon, left(each.column) + box, to), class: css }));
    };
    bands.forEach((each, e) => {
      const [column, from, to] = edges[e];
      band(each, left(column + 1), isOff(column, from) || isOff(column + 1, to) ? "gb-ribbon gb-off" : "gb-ribbon");
    });
    const last = columns.length - 1;
    writes.forEach((each, i) => {
      const { adds, key, off } = columns[last].nodes[i];
      band(each, width - end, `gb-ribbon${off ? " gb-off" : ""}${adds < 0 ? " gb-against" : key === null ? " gb-ribbon-rest" : ""}`);
    });
    columns.forEach(({ title, nodes }, c) => {
      svg.append(write(title, left(c), 12, "gb-ribbon-title"));
      nodes.forEach(({ key, name, off, says }, i) => {
        const { y, height: tall } = places[c][i];
        const group = makeShape("g", { class: `gb-path-node gb-path-${c}${off ? " gb-off" : ""}${key === null ? " gb-path-rest" : ""}` });
        group.append(makeShape("rect", { x: left(c), y: y + TOP - tall / 2, width: box, height: tall, rx: 6 }));
        group.append(write(cut(name, box), left(c) + box / 2, y + TOP + 5, "", "middle"));
        if (key !== null) parts.add(group, { node: key }, says, off);
        else explain(group, says);
        svg.append(group);
      });
    });
    svg.append(...answer(cut(target, end + 8, 9.6), before, after, width - end + 8, end - 8, height / 2 + TOP));
    parts.enter();
    setText(find(root, "p"), data.says ?? "");
    setText(button, t("why.flow.all"));
    button.hidden = !columns.some(({ nodes }) => nodes.some(({ off }) => off));
  }

  button.addEventListener("click", () => host.send({ all: true }));
  return { draw };
}

defineWidget("paths", mount);
