/**
 * The flow from tokens over heads to the predicted token.
 * @typedef {object} Flow
 * @property {[position: number, word: string, without: number][]} [tokens]  without: the probability without it
 * @property {[layer: number, head: number, without: number][]} [heads]
 * @property {number[][]} [weights]  [head][token] @property {number} [n_head]  of the model
 * @property {string} [target] @property {number} [before]  its probability @property {number | null} [after]
 * @property {{tokens: number[][], heads: number[][], reads: number[][]}} [off]  the places that are switched off
 * @property {string} [says]
 * @property {boolean} [is_pending]  the heads are on their way: their room is kept
 */

import { headColour } from "../colours.js";
import { find, makeShape, modified, setAll, setText } from "../dom.js";
import { percent } from "../numbers.js";
import { defineWidget } from "../runtime.js";
import { layout, outline } from "./layout.js";

const NARROW = 560; // px
const TOP = 26; // px, of the titles
const BAR = 12; // px

/** @typedef {{part: string, place: number[]}} Switch */

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const svg = find(root, "svg", SVGSVGElement);
  const button = find(root, "button", HTMLButtonElement);
  /** @type {Map<Element, Switch>} */ const switches = new Map();
  let current = ""; // the switch that the keyboard enters

  /** @param {Switch} each */
  const name = ({ part, place }) => `${part} ${place}`;

  /** A part that is switched by a click. @param {SVGElement} node @param {Switch} to @param {string} label @param {boolean} isOff */
  function switched(node, to, label, isOff) {
    setAll(node, { role: "button", tabindex: "-1", "aria-label": label, "aria-pressed": String(isOff) });
    const title = makeShape("title", {});
    setText(title, label);
    node.append(title);
    node.classList.add("gb-ribbon-part");
    switches.set(node, to);
    svg.append(node);
    return node;
  }

  /** A node with its name. @param {{y: number, height: number}} at @param {number} x @param {number} width @param {string} text */
  function box(at, x, width, text, attributes = {}) {
    const group = makeShape("g", attributes);
    const height = Math.max(24, at.height - 4);
    group.append(makeShape("rect", { x, y: at.y + TOP - height / 2, width, height, rx: 6 }));
    const words = makeShape("text", { x: x + width / 2, y: at.y + TOP + 5, "text-anchor": "middle" });
    setText(words, text);
    group.append(words);
    return group;
  }

  /** @param {string} text @param {number} x @param {string} anchor */
  function title(text, x, anchor) {
    const node = makeShape("text", { x, y: 12, "text-anchor": anchor, class: "gb-ribbon-title" });
    setText(node, text);
    svg.append(node);
  }

  /** @param {Flow} data */
  function draw(data) {
    const { tokens = [], heads = [], weights = [], n_head: count = 1, target = "", before = 0, after = null } = data;
    const off = data.off ?? { tokens: [], heads: [], reads: [] };
    root.hidden = !heads.length && !data.is_pending;
    root.classList.toggle("gb-pending", !heads.length);
    if (!heads.length) return;
    const focused = svg.contains(document.activeElement);
    const width = root.clientWidth;
    const isNarrow = width < NARROW;
    const { tokens: rows, heads: nodes, height, reads, writes } = layout(heads.map(([, , without]) => 1 - without / before), weights);
    const [side, middle] = isNarrow ? [108, 84] : [160, 190];
    const end = isNarrow ? 104 : 160;
    const [headX, endX] = [side + (width - side - end - middle) * 0.5, width - end];
    svg.replaceChildren();
    switches.clear();
    setAll(svg, { width, height: height + TOP + 4, "aria-label": host.t("name", { token: host.t("target") }) });
    /** @param {"tokens" | "heads" | "reads"} part @param {number[]} place */
    const has = (part, place) => off[part].some((each) => String(each) === String(place));
    const colour = (/** @type {number} */ head) => `--hue: ${headColour(head, count, host.dark)}`;

    heads.forEach(([layer, head, without], h) => {
      const isHeadOff = has("heads", [layer, head]);
      reads[h].forEach((ribbon, t) => {
        if (ribbon.width < 0.05) return;
        const position = tokens[t]?.[0];
        const shape = { d: outline({ ...ribbon, from: ribbon.from + TOP, to: ribbon.to + TOP }, side, headX), style: colour(head) };
        if (position === undefined) {
          svg.append(makeShape("path", { ...shape, class: isHeadOff ? "gb-ribbon gb-ribbon-rest gb-off" : "gb-ribbon gb-ribbon-rest" }));
          return;
        }
        const isOff = has("reads", [layer, head, position]);
        const isDark = isOff || isHeadOff || has("tokens", [position]);
        const node = makeShape("path", { ...shape, class: isDark ? "gb-ribbon gb-off" : "gb-ribbon" });
        const label = host.t("read.off", { layer, head, token: tokens[t][1], p: percent(weights[h][t]) });
        switched(node, { part: "reads", place: [layer, head, position] }, label, isOff);
      });
      const write = { ...writes[h], from: writes[h].from + TOP, to: writes[h].to + TOP };
      const css = isHeadOff ? "gb-ribbon gb-off" : "gb-ribbon";
      const path = makeShape("path", { d: outline(write, headX + middle, endX), class: css, style: colour(head) });
      const label = host.t("head.off", { layer, head, before: percent(before), after: percent(without) });
      const to = { part: "heads", place: [layer, head] };
      switched(path, to, label, isHeadOff);
      const name = host.t(isNarrow ? "head.short" : "head", { layer, head });
      const text = `${name} ${isNarrow ? "" : "→ "}${percent(without)}`;
      const node = box(nodes[h], headX, middle, text, { class: isHeadOff ? "gb-ribbon-head gb-off" : "gb-ribbon-head", style: colour(head) });
      switched(node, to, label, isHeadOff);
    });
    rows.forEach((row, t) => {
      const [position, token, without] = tokens[t] ?? [-1, host.t("others"), 0];
      if (position < 0) return void svg.append(box(row, 0, side, token, { class: "gb-ribbon-others" }));
      const isOff = has("tokens", [position]);
      const most = isNarrow ? 7 : 12;
      const shown = token.length > most ? `${token.slice(0, most - 1)}…` : token;
      const node = box(row, 0, side, `${shown} → ${percent(without)}`, { class: isOff ? "gb-ribbon-token gb-off" : "gb-ribbon-token" });
      switched(node, { part: "tokens", place: [position] }, host.t("token.off", { token, before: percent(before), after: percent(without) }), isOff);
    });
    title(host.t("tokens"), 0, "start");
    title(host.t("heads"), headX + middle / 2, "middle");
    answer(target, before, after, endX, end, height / 2 + TOP);

    const states = [...switches];
    const entered = states.find(([, each]) => name(each) === current) ?? states[0];
    entered[0].setAttribute("tabindex", "0");
    if (focused) /** @type {SVGElement} */ (entered[0]).focus();
    setText(find(root, "p"), data.says ?? "");
    setText(button, host.t("all"));
    button.hidden = !Object.values(off).some((places) => places.length);
  }

  /** The predicted token with its bar, before and after. @param {string} token @param {number} before @param {number | null} after @param {number} x @param {number} width @param {number} y */
  function answer(token, before, after, x, width, y) {
    const group = makeShape("g", { class: "gb-ribbon-answer" });
    const left = x + 8;
    const room = width - 8;
    const add = (/** @type {string} */ text, /** @type {number} */ dy, /** @type {string} */ css) => {
      const node = makeShape("text", { x: left, y: y + dy, class: css });
      setText(node, token.length > 12 && css === "gb-ribbon-target" ? `${token.slice(0, 11)}…` : text);
      group.append(node);
    };
    add(token, -16, "gb-ribbon-target");
    const track = { x: left, y: y - BAR / 2, height: BAR, rx: 3 };
    group.append(makeShape("rect", { ...track, width: room, class: "gb-track" }));
    group.append(makeShape("rect", { ...track, width: room * before, class: after === null ? "gb-now" : "gb-before" }));
    if (after !== null) {
      group.append(makeShape("rect", { ...track, y: y - BAR / 2 + 3, height: BAR - 6, width: room * after, class: "gb-now" }));
    }
    add(after === null ? percent(before) : `${percent(before)} → ${percent(after)}`, 26, "gb-ribbon-number");
    svg.append(group);
  }

  /** @param {Element | null} node */
  function send(node) {
    const to = node && switches.get(node);
    if (!to) return;
    current = name(to);
    host.send(to);
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
      current = name(/** @type {Switch} */ (switches.get(next)));
      /** @type {SVGElement} */ (next).focus();
    }
    event.preventDefault();
  });
  button.addEventListener("click", () => host.send({ all: true }));
  return { draw };
}

defineWidget("ribbons", mount);
