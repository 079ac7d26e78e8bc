// A flow in columns to one predicted token. Its parts can be switched off.

import { band } from "../canvas.js";
import { find, makeShape, makeText, roving, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { change, percent } from "../labels.js";
import { defineWidget } from "../runtime.js";

/** @typedef {[column: number, from: number, to: number, width: number]} Edge  between neighbouring columns; width in px */
/** @typedef {{from: number, to: number, width: number}} Ribbon  y of the middle at both ends, and the width, in px */
/**
 * @typedef {object} Node
 * @property {string | null} key  null for a part that can't be switched off
 * @property {string} name
 * @property {string} [short]  on a narrow page
 * @property {number} [number]  a probability beside the name
 * @property {number} adds  how much goes through it
 * @property {string} says  its tooltip
 *
 * @typedef {object} Flow
 * @property {"heads" | "concepts"} [by]  what it goes through
 * @property {string} [name]  for screen readers
 * @property {{title: string, nodes: Node[]}[]} [columns]
 * @property {[column: number, from: number, to: number, size: number, key: string | null, says: string][]} [edges]
 * @property {string[]} [off]  keys of what is switched off
 * @property {string} [target]  the predicted token
 * @property {number} [before]  the target's probability with everything on
 * @property {number | null} [after]  the same without what is off; null until it is computed
 * @property {string} [says]
 * @property {boolean} [is_pending]  whether the flow is still being computed; its space is reserved
 */

const NARROW = 590; // px
const TOP = 28; // px for the titles
const [ROW, GAP] = [30, 8]; // height of the smallest node, and space between two, in px
const BAR = 12; // height of the probability in px
const THINNEST = 0.05; // px; thinner ribbons are left out
const [WIDTH_ALL, WIDEST, LEAST] = [150, 64, 2]; // px: all ribbons into the target together, and limits on each

const total = (/** @type {number[]} */ sizes) => sizes.reduce((sum, size) => sum + size, 0);

/**
 * Returns where the nodes and ribbons are, in px; writes: the ribbons from the last column into the target.
 * @param {number[][]} sizes  px of ribbons at each node, by column @param {Edge[]} edges
 */
export function arrange(sizes, edges) {
  const columns = sizes.map((column) => column.map((size) => Math.max(ROW, size + 8)));
  const tall = (/** @type {number[]} */ column) => total(column) + GAP * (column.length - 1);
  const height = Math.max(...columns.map(tall));
  const places = columns.map((column) => {
    const top = (height - tall(column)) / 2;
    return column.map((size, i) => ({ y: top + total(column.slice(0, i)) + GAP * i + size / 2, height: size }));
  });

  /** Returns the middles of ribbons side by side around y. @param {number} y @param {number[]} widths */
  const beside = (y, widths) => widths.map((width, i) => y + total(widths.slice(0, i)) + (width - total(widths)) / 2);

  /** Returns the middle of each edge at one end. @param {(edge: Edge) => [column: number, node: number]} at */
  const ends = (at) =>
    edges.map((edge) => {
      const [column, node] = at(edge);
      const shared = edges.filter((each) => String(at(each)) === String([column, node]));
      return beside(places[column][node].y, shared.map(([, , , width]) => width))[shared.indexOf(edge)];
    });
  const [starts, goals] = [ends(([column, from]) => [column, from]), ends(([column, , to]) => [column + 1, to])];
  const last = places.length - 1;
  const into = beside(height / 2, sizes[last]);
  return {
    places,
    ribbons: edges.map(([, , , width], e) => ({ from: starts[e], to: goals[e], width })),
    writes: into.map((to, i) => ({ from: places[last][i].y, to, width: sizes[last][i] })),
    height,
  };
}

defineWidget("ribbons", (root, host) => {
  const svg = find(root, "svg", SVGSVGElement);
  const button = find(root, "button", HTMLButtonElement);
  const parts = /** @type {HTMLCollectionOf<any>} */ (svg.getElementsByClassName("gb-ribbon-part"));
  const enter = roving(/** @type {any} */ (svg), parts, (i) => host.send({ key: parts[i].dataset.key }));

  /** Shortens a label to a width in px. @param {SVGTextElement} label @param {string} name @param {string} number @param {number} room */
  function fit(label, name, number, room) {
    for (let kept = [...name].length; kept > 1 && label.getComputedTextLength() > room; kept -= 1) {
      setText(label, `${[...name].slice(0, kept - 1).join("")}…${number}`);
    }
  }

  /** Adds a node or a ribbon, which a click switches if it has a key. @param {SVGElement} shape @param {string | null} key @param {string} says @param {boolean} isOff */
  function place(shape, key, says, isOff) {
    if (says) shape.append(makeShape("title", {}, says));
    if (key !== null) {
      setAll(shape, { role: "button", "aria-label": says, "aria-pressed": String(isOff), "data-key": key });
      shape.classList.add("gb-ribbon-part");
    }
    svg.append(shape);
  }

  /** Draws the predicted token with bars for its probability. @param {Flow} flow @param {number} x @param {number} width @param {number} y */
  function answer({ target = "", before = 0, after = null }, x, width, y) {
    const track = { x, y: y - BAR / 2, height: BAR, rx: 3 };
    const token = makeText(target, x, y - 16, "gb-ribbon-target", "start");
    svg.append(
      token,
      makeShape("rect", { ...track, width, class: "gb-ribbon-track" }),
      makeShape("rect", { ...track, width: width * before, class: after === null ? "gb-now" : "gb-before" }),
    );
    if (after !== null) svg.append(makeShape("rect", { ...track, y: track.y + 3, height: BAR - 6, width: width * after, class: "gb-now" }));
    svg.append(makeText(change(before, after ?? before), x, y + 26, "gb-ribbon-number", "start"));
    fit(token, target, "", width);
  }

  /** @param {Flow} data */
  function draw(data) {
    const { by, name = "", columns = [], edges = [], off = [] } = data;
    root.hidden = !columns.length && !data.is_pending;
    root.classList.toggle("gb-pending", !columns.length);
    root.classList.toggle("gb-concepts", by === "concepts");
    if (!columns.length) return;
    const width = root.clientWidth;
    const isNarrow = width < NARROW;
    const end = isNarrow ? 76 : 155; // leaves room for "70% → 56%"
    const box = (width - end) / columns.length - (isNarrow ? 20 : Math.max(32, (width - end) * 0.09));
    const padding = isNarrow ? 12 : 40;
    const focused = svg.contains(document.activeElement) && document.activeElement?.getAttribute("data-key");
    svg.replaceChildren();
    setAll(svg, { width, "aria-label": name });

    // the labels, which make a column as wide as the longest, and the ribbons' widths
    const texts = columns.map(({ nodes }) =>
      nodes.map(({ name, short, number }) => [(isNarrow && short) || name, number === undefined ? "" : ` → ${percent(number)}`]),
    );
    const labels = texts.map((column) => column.map(([text, tail]) => svg.appendChild(makeText(text + tail, 0, 0, ""))));
    const widest = () => labels.map((column) => Math.max(...column.map((label) => label.getComputedTextLength())) + padding);
    if (total(widest()) > box * columns.length) labels.forEach((column, c) => column.forEach((label, i) => fit(label, texts[c][i][0], texts[c][i][1], box - padding)));
    const widths = widest();
    const gap = (width - end - total(widths)) / columns.length;
    const left = widths.map((_, c) => total(widths.slice(0, c)) + c * gap);
    const right = left.map((x, c) => x + widths[c]);
    const last = columns.length - 1;
    const into = columns[last].nodes.map(({ adds }) => Math.abs(adds));
    const unit = Math.min(WIDTH_ALL / (total(into) || 1), WIDEST / Math.max(...into, 1e-9));
    const { places, ribbons, writes, height } = arrange(
      columns.map(({ nodes }, c) => nodes.map(({ adds }) => Math.max(c === last ? LEAST : 0, Math.abs(adds) * unit))),
      edges.map(([column, from, to, size]) => [column, from, to, size * unit]),
    );
    svg.setAttribute("height", String(height + TOP + 4));

    const isOff = (/** @type {string | null} */ key) => off.includes(key ?? "");
    const keyOf = (/** @type {number} */ column, /** @type {number} */ i) => columns[column].nodes[i].key;
    const ribbon = (/** @type {Ribbon} */ { from, to, width }, /** @type {number} */ x0, /** @type {number} */ x1, /** @type {string} */ css, /** @type {boolean} */ isEmpty) =>
      makeShape("path", { d: band([x0, from + TOP, width], [x1, to + TOP, width]), class: `gb-ribbon ${css}${isEmpty ? " gb-off" : ""}` });
    edges.forEach(([column, from, to, , key, says], e) => {
      if (ribbons[e].width < THINNEST) return;
      const css = keyOf(column, from) === null ? "gb-rest" : "";
      const isEmpty = [key, keyOf(column, from), keyOf(column + 1, to)].some(isOff);
      place(ribbon(ribbons[e], right[column], left[column + 1], css, isEmpty), key, says, isOff(key));
    });
    columns[last].nodes.forEach(({ key, adds, says }, i) => {
      const css = adds < 0 ? "gb-against" : key === null ? "gb-rest" : "";
      place(ribbon(writes[i], right[last], width - end, css, isOff(key)), key, says, isOff(key));
    });
    columns.forEach(({ title, nodes }, c) => {
      svg.append(makeText(title, left[c], 12, "gb-ribbon-title", "start"));
      nodes.forEach(({ key, says }, i) => {
        const { y, height: tall } = places[c][i];
        const group = makeShape("g", { class: `gb-node${c ? " gb-through" : ""}${key === null ? " gb-rest" : ""}${isOff(key) ? " gb-off" : ""}` });
        group.append(makeShape("rect", { x: left[c], y: y + TOP - tall / 2, width: widths[c], height: tall - 4, rx: 6 }), labels[c][i]);
        setAll(labels[c][i], { x: left[c] + widths[c] / 2, y: y + TOP + 3 });
        place(group, key, says, isOff(key));
      });
    });
    answer(data, width - end + 8, end - 8, height / 2 + TOP);
    enter();
    if (focused) [...parts].find((part) => part.dataset.key === focused)?.focus();
    setText(find(root, "p"), data.says ?? "");
    setText(button, t("why.flow.all"));
    button.hidden = !off.length;
  }

  button.addEventListener("click", () => host.send({ all: true }));
  return { draw };
});
