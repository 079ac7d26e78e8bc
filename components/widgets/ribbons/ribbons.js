/**
 * The flow from tokens through heads to the predicted token.
 * @typedef {object} Flow
 * @property {[position: number, word: string, without: number][]} [tokens]  without: the probability without the token
 * @property {[layer: number, head: number, without: number][]} [heads]
 * @property {number[][]} [weights]  [head][token] @property {number} [n_head]  number of heads in a layer
 * @property {string} [target] @property {string} [name]  the target in a sentence
 * @property {number} [before]  its probability @property {number | null} [after]
 * @property {{tokens: number[][], heads: number[][], reads: number[][]}} [off]  the places that are switched off
 * @property {string} [says]
 * @property {boolean} [is_pending]  whether the heads are still being computed; their space is reserved
 */

import { headColour } from "../colours.js";
import { find, makeShape, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { percent } from "../numbers.js";
import { defineWidget } from "../runtime.js";
import { layout, outline } from "./layout.js";
import { answer, switches, write } from "./switches.js";

const NARROW = 560; // px
const TOP = 26; // px for the titles

/** @typedef {{part: string, place: number[]}} Switch */

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const svg = find(root, "svg", SVGSVGElement);
  const button = find(root, "button", HTMLButtonElement);
  const parts = switches(svg, (payload) => host.send(payload));

  /** Makes a part that a click switches off or on. @param {SVGElement} node @param {Switch} to @param {string} label @param {boolean} isOff */
  function switched(node, to, label, isOff) {
    parts.add(node, to, label, isOff);
    svg.append(node);
  }

  /** Draws a node with its name. @param {{y: number, height: number}} at @param {number} x @param {number} width @param {string} text */
  function box(at, x, width, text, attributes = {}) {
    const group = makeShape("g", attributes);
    const height = Math.max(24, at.height - 4);
    group.append(makeShape("rect", { x, y: at.y + TOP - height / 2, width, height, rx: 6 }));
    group.append(write(text, x + width / 2, at.y + TOP + 5, "", "middle"));
    return group;
  }

  /** @param {Flow} data */
  function draw(data) {
    const { tokens = [], heads = [], weights = [], n_head: count = 1, target = "", before = 0, after = null } = data;
    const off = data.off ?? { tokens: [], heads: [], reads: [] };
    root.hidden = !heads.length && !data.is_pending;
    root.classList.toggle("gb-pending", !heads.length);
    if (!heads.length) return;
    const width = root.clientWidth;
    const isNarrow = width < NARROW;
    const { tokens: rows, heads: nodes, height, reads, writes } = layout(heads.map(([, , without]) => 1 - without / before), weights);
    const [side, middle] = isNarrow ? [104, 106] : [160, 190];
    const end = isNarrow ? 104 : 160;
    const [headX, endX] = [side + (width - side - end - middle) * 0.5, width - end];
    parts.clear();
    setAll(svg, { width, height: height + TOP + 4, "aria-label": t("why.flow.name", { token: data.name ?? "" }) });
    /** @param {"tokens" | "heads" | "reads"} part @param {number[]} place */
    const has = (part, place) => off[part].some((each) => String(each) === String(place));
    const colour = (/** @type {number} */ head) => `--hue: ${headColour(head, count, host.dark)}`;

    heads.forEach(([layer, head, without], h) => {
      const isHeadOff = has("heads", [layer, head]);
      reads[h].forEach((ribbon, i) => {
        if (ribbon.width < 0.05) return;
        const position = tokens[i]?.[0];
        const shape = { d: outline({ ...ribbon, from: ribbon.from + TOP, to: ribbon.to + TOP }, side, headX), style: colour(head) };
        if (position === undefined) {
          svg.append(makeShape("path", { ...shape, class: isHeadOff ? "gb-ribbon gb-ribbon-rest gb-off" : "gb-ribbon gb-ribbon-rest" }));
          return;
        }
        const isOff = has("reads", [layer, head, position]);
        const isDark = isOff || isHeadOff || has("tokens", [position]);
        const node = makeShape("path", { ...shape, class: isDark ? "gb-ribbon gb-off" : "gb-ribbon" });
        const label = t("why.flow.read.off", { layer, head, token: tokens[i][1], p: percent(weights[h][i]) });
        switched(node, { part: "reads", place: [layer, head, position] }, label, isOff);
      });
      const written = { ...writes[h], from: writes[h].from + TOP, to: writes[h].to + TOP };
      const css = isHeadOff ? "gb-ribbon gb-off" : "gb-ribbon";
      const path = makeShape("path", { d: outline(written, headX + middle, endX), class: css, style: colour(head) });
      const label = t("why.flow.head.off", { layer, head, before: percent(before), after: percent(without) });
      const to = { part: "heads", place: [layer, head] };
      switched(path, to, label, isHeadOff);
      const name = t(isNarrow ? "why.flow.head.short" : "why.flow.head", { layer, head });
      const text = `${name} ${isNarrow ? "" : "→ "}${percent(without)}`;
      const node = box(nodes[h], headX, middle, text, { class: isHeadOff ? "gb-ribbon-head gb-off" : "gb-ribbon-head", style: colour(head) });
      switched(node, to, label, isHeadOff);
    });
    rows.forEach((row, i) => {
      const [position, token, without] = tokens[i] ?? [-1, t("why.flow.others"), 0];
      if (position < 0) return void svg.append(box(row, 0, side, token, { class: "gb-ribbon-others" }));
      const isOff = has("tokens", [position]);
      const most = isNarrow ? 7 : 12;
      const shown = token.length > most ? `${token.slice(0, most - 1)}…` : token;
      const node = box(row, 0, side, `${shown} → ${percent(without)}`, { class: isOff ? "gb-ribbon-token gb-off" : "gb-ribbon-token" });
      switched(node, { part: "tokens", place: [position] }, t("why.flow.token.off", { token, before: percent(before), after: percent(without) }), isOff);
    });
    svg.append(write(t("why.flow.tokens"), 0, 12, "gb-ribbon-title"));
    svg.append(write(t("why.flow.heads"), headX + middle / 2, 12, "gb-ribbon-title", "middle"));
    const shownTarget = target.length > 12 ? `${target.slice(0, 11)}…` : target;
    svg.append(...answer(shownTarget, before, after, endX + 8, end - 8, height / 2 + TOP));
    parts.enter();
    setText(find(root, "p"), data.says ?? "");
    setText(button, t("why.flow.all"));
    button.hidden = !Object.values(off).some((places) => places.length);
  }

  button.addEventListener("click", () => host.send({ all: true }));
  return { draw };
}

defineWidget("ribbons", mount);
