/**
 * The flow from words over concepts to the predicted token.
 * @typedef {{key: string | null, name: string, adds: number, off: boolean, says: string}} Step
 * @typedef {object} Paths
 * @property {{title: string, nodes: Step[]}[]} [columns]  none: the widget is hidden
 * @property {[column: number, from: number, to: number, size: number][]} [edges]
 * @property {string} [target] @property {number} [before]  its probability @property {number | null} [after]
 * @property {string} [says]
 */

import { find, makeShape, modified, setAll, setText } from "../dom.js";
import { percent } from "../numbers.js";
import { outline } from "../ribbons/layout.js";
import { defineWidget } from "../runtime.js";
import { arrange } from "./layout.js";

const NARROW = 620; // px
const TOP = 30; // px, of the titles
const BAR = 12; // px

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const svg = find(root, "svg", SVGSVGElement);
  const button = find(root, "button", HTMLButtonElement);
  /** @type {Map<Element, string>} */ const switches = new Map();
  let current = ""; // the node that the keyboard enters

  /** @param {string} text @param {number} x @param {number} y @param {string} css @param {string} [anchor] */
  function write(text, x, y, css, anchor = "start") {
    const node = makeShape("text", { x, y, class: css, "text-anchor": anchor });
    setText(node, text);
    return node;
  }

  /** A text that fits into a width in px: Chinese characters are twice as wide. @param {string} text @param {number} width @param {number} [unit] */
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
    const focused = svg.contains(document.activeElement);
    const width = root.clientWidth;
    const isNarrow = width < NARROW;
    const end = isNarrow ? 64 : 150;
    const gap = isNarrow ? 14 : Math.max(32, (width - end) * 0.09);
    const box = (width - end - gap * columns.length) / columns.length;
    const left = (/** @type {number} */ column) => column * (box + gap);
    const { places, bands, writes, height } = arrange(columns.map(({ nodes }) => nodes.map(({ adds }) => adds)), edges);
    svg.replaceChildren();
    switches.clear();
    setAll(svg, { width, height: height + TOP + 4, "aria-label": host.t("name") });

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
      svg.append(write(isNarrow ? cut(title, box) : title, left(c), 12, "gb-ribbon-title"));
      nodes.forEach(({ key, name, off, says }, i) => {
        const { y, height: tall } = places[c][i];
        const group = makeShape("g", { class: `gb-path-node gb-path-${c}${off ? " gb-off" : ""}${key === null ? " gb-path-rest" : ""}` });
        const hint = makeShape("title", {});
        setText(hint, says);
        group.append(hint, makeShape("rect", { x: left(c), y: y + TOP - tall / 2, width: box, height: tall, rx: 6 }));
        group.append(write(cut(name, box), left(c) + box / 2, y + TOP + 5, "", "middle"));
        if (key !== null) {
          setAll(group, { role: "button", tabindex: "-1", "aria-label": says, "aria-pressed": String(off) });
          group.classList.add("gb-ribbon-part");
          switches.set(group, key);
        }
        svg.append(group);
      });
    });
    answer(cut(target, end + 8, 9.6), before, after, width - end + 8, end - 8, height / 2 + TOP);

    const [first] = switches.keys();
    const entered = [...switches].find(([, key]) => key === current)?.[0] ?? first;
    entered?.setAttribute("tabindex", "0");
    if (focused && entered instanceof SVGElement) entered.focus();
    setText(find(root, "p"), data.says ?? "");
    setText(button, host.t("all"));
    button.hidden = !columns.some(({ nodes }) => nodes.some(({ off }) => off));
  }

  /** The predicted token with its bar, before and after. @param {string} token @param {number} before @param {number | null} after @param {number} x @param {number} width @param {number} y */
  function answer(token, before, after, x, width, y) {
    const track = { x, y: y - BAR / 2, height: BAR, rx: 3 };
    svg.append(write(token, x, y - 16, "gb-ribbon-target"));
    svg.append(makeShape("rect", { ...track, width, class: "gb-track" }));
    svg.append(makeShape("rect", { ...track, width: width * before, class: after === null ? "gb-now" : "gb-before" }));
    if (after !== null) svg.append(makeShape("rect", { ...track, y: y - BAR / 2 + 3, height: BAR - 6, width: width * after, class: "gb-now" }));
    svg.append(write(after === null ? percent(before) : `${percent(before)} → ${percent(after)}`, x, y + 26, "gb-ribbon-number"));
  }

  /** @param {Element | null} node */
  function send(node) {
    const key = node && switches.get(node);
    if (!key) return;
    current = key;
    host.send({ node: key });
  }

  const partAt = (/** @type {Event} */ { target }) => (target instanceof Element ? target.closest(".gb-ribbon-part") : null);
  svg.addEventListener("click", (event) => send(partAt(event)));
  svg.addEventListener("keydown", (event) => {
    const node = partAt(event);
    if (modified(event) || !node) return;
    const nodes = [...switches.keys()];
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") send(node);
    else if (step === undefined) return;
    else {
      const next = nodes[(nodes.indexOf(node) + step + nodes.length) % nodes.length];
      node.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      current = switches.get(next) ?? "";
      /** @type {SVGElement} */ (next).focus();
    }
    event.preventDefault();
  });
  button.addEventListener("click", () => host.send({ all: true }));
  return { draw };
}

defineWidget("paths", mount);
