/**
 * The path of one prediction through the model: one row per word, one column per layer. A click on a part selects it.
 * @typedef {object} Path
 * @property {Word[]} words  if empty, nothing is shown
 * @property {number} n_layer
 * @property {boolean} together  whether no single word matters: then a thread leads from each word
 * @property {[layer: number, head: number, without: number] | null} head  the head that matters most, and the token's
 *   probability without it; null if no single head matters
 * @property {number | null} writer  the layer whose feed-forward network adds most to the token's score
 * @property {[token: string, p: number][]} next  the predicted token, and others
 * @property {string} name  the picture's text for screen readers
 *
 * @typedef {{text: string, skipped: number, share: number, look: number, without: number | null}} Word  skipped: number of words
 *   before it that are not shown. share: share of the probability that is lost without it. look: the head's attention to it.
 *   without: the token's probability without it, if it is the word that matters most.
 */

import { find, makeShape, makeText, setAll } from "./dom.js";
import { t } from "./i18n.js";
import { percent } from "./labels.js";
import { defineWidget } from "./runtime.js";

const [TOP, ROW, GAP, FOOT] = [72, 28, 12, 112]; // px above the rows, of a row, for words that are left out, and below
const NARROW = 640; // px
const [THINNEST, THICKEST] = [2, 8]; // px, of the path

defineWidget("path", (root, host) => {
  const svg = find(root, "svg", SVGSVGElement);
  /** @type {Map<EventTarget | null, object>} */ const parts = new Map(); // what is sent if a part is chosen

  /** @param {keyof SVGElementTagNameMap} tag @param {Record<string, string | number>} attributes */
  const add = (tag, attributes) => svg.appendChild(makeShape(tag, attributes));

  /** @param {string} text @param {number} x @param {number} y @param {string} css @param {string} [anchor] */
  const write = (text, x, y, css, anchor) => svg.appendChild(makeText(text, x, y, css, anchor));

  /** Writes a name below the rows that leads to its part. @param {string} text @param {number} x @param {number} from @param {number} y @param {string} css @param {object} sent @param {number} room  px to its right end */
  function callout(text, x, from, y, css, sent, room) {
    add("path", { d: `M${x} ${from}V${y - 20}`, class: "gb-path-stem" });
    const node = write(text, x, y, `gb-path-part ${css}`);
    setAll(node, { role: "button", tabindex: 0, "aria-label": `${text}. ${t("path.open")}` });
    const { width } = node.getBoundingClientRect(); // stays inside the picture
    const edge = room - width / 2 - 4;
    node.setAttribute("x", String(Math.max(width / 2 + 4, Math.min(x, edge))));
    parts.set(node, sent);
  }

  /** @param {import("./store.js").Data} data */
  function draw(data) {
    const { words = [], n_layer, together, head, writer, next, name } = /** @type {Path} */ (data);
    root.classList.toggle("gb-nothing", !words.length);
    const width = root.clientWidth;
    if (!words.length || width < 50) return;
    svg.replaceChildren();
    const isNarrow = width < NARROW;
    const longest = isNarrow ? 9 : 16; // characters
    const cut = (/** @type {string} */ text) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);
    const measured = words.map(({ text }) => write(cut(text), 0, 0, "gb-path-word").getComputedTextLength());
    const left = Math.max(isNarrow ? 56 : 72, ...measured) + 16; // px for the words
    const guess = cut(next[0][0]);
    const right = 40 + write(guess, 0, 0, "gb-path-token").getComputedTextLength();
    const [start, end] = [left + (isNarrow ? 20 : 104), width - Math.max(isNarrow ? 96 : 216, right)];
    const layer = (end - start) / n_layer;
    let bottom = TOP;
    const rows = words.map(({ skipped }) => (bottom += ROW + (skipped ? GAP : 0)) - ROW / 2); // their middles
    const last = bottom - ROW / 2;
    const gap = Math.min(6, layer / 6);
    parts.clear();
    svg.replaceChildren(); // without the words that were measured
    setAll(svg, { width, height: bottom + FOOT, "aria-label": name });

    // names, in the order of computation
    write(t("path.words"), left - 8, 24, "gb-path-name", "end");
    if (!isNarrow) write(t("inside.step.numbers"), left + 8, TOP - 8, "gb-path-note");
    write(t("path.layers", { n: n_layer, last: n_layer - 1 }), (start + end) / 2, 24, "gb-path-name");
    write(t("path.next"), end + 24, 24, "gb-path-name", "start");
    if (!isNarrow) {
      const note = write(t("path.looks"), (start + end) / 2, 46, "gb-path-note gb-of-head");
      note.append(makeShape("tspan", {}, t("path.works")));
    }

    // the machine: each layer's attention and feed-forward network, and a lane for each word
    add("rect", { x: left + 4, y: TOP, width: 8, height: bottom - TOP, rx: 4, class: "gb-path-embedding" });
    for (let i = 0; i < n_layer; i += 1) {
      const [x, half] = [start + i * layer + gap / 2, (layer - gap) / 2];
      const isHead = head?.[0] === i;
      add("rect", { x, y: TOP, width: half, height: bottom - TOP, rx: 4, class: `gb-path-attention${isHead ? " gb-on" : ""}` });
      add("rect", { x: x + half, y: TOP, width: half, height: bottom - TOP, rx: 4, class: `gb-path-mlp${writer === i ? " gb-on" : ""}` });
      if (layer > 14 || i % 4 === 0) write(String(i), x + half, TOP - 8, `gb-path-number${isHead || writer === i ? " gb-on" : ""}`);
    }
    words.forEach(({ text, skipped, share }, row) => {
      const y = rows[row];
      const css = row === words.length - 1 || share ? " gb-on" : "";
      add("path", { d: `M${left} ${y}H${end}`, class: "gb-path-lane" });
      write(cut(text), left - 8, y + 5, `gb-path-word${css}`, "end");
      if (skipped) write("⋮", left - 12, y - ROW / 2 + 1, "gb-path-number", "end");
    });

    // the path: along its word's lane, through the head, along the last word's lane
    const x0 = start + (head ? head[0] * layer : 0);
    const x1 = head ? x0 + Math.max(layer / 2, 24) : end; // of the look back
    const bend = Math.max(left + 8, x0 - Math.min(layer, 32) - 16);
    const toHead = (/** @type {number} */ y) => `M${left + 8} ${y}H${bend}C${x0} ${y} ${x0} ${last} ${x1} ${last}`;
    const thickness = (/** @type {number} */ share) => (THINNEST + (THICKEST - THINNEST) * share).toFixed(1);
    const most = Math.max(...words.map(({ share }) => share), 1e-6);
    const main = words.findIndex(({ without }) => without !== null);
    let dashed = false;
    const order = [...words.keys()].sort((a, b) => Number(a === main) - Number(b === main)); // the main reason in front
    for (const row of order) {
      const [{ share, look }, y] = [words[row], rows[row]];
      if (!share && !look) continue;
      if (together && y !== last) {
        const d = `M${left + 8} ${y}C${(start + end) / 2} ${y} ${(start + end) / 2} ${last} ${end} ${last}`;
        add("path", { d, class: "gb-path-look", "stroke-width": (1 + (3 * share) / most).toFixed(1), "stroke-opacity": (0.25 + (0.5 * share) / most).toFixed(2) });
        continue;
      }
      const strong = row === main ? 1 : Math.max((0.3 * share) / most, y === last ? 0.1 : 0);
      const isDashed = main >= 0 && head !== null && !look && row !== main;
      dashed ||= isDashed;
      const css = `gb-path-look${isDashed ? " gb-indirect" : ""}`;
      add("path", { d: toHead(y), class: css, "stroke-width": thickness(strong), "stroke-opacity": (0.35 + 0.65 * strong).toFixed(2) });
    }
    if (main >= 0) write(t("path.without", { p: percent(words[main].without ?? 0) }), left + (isNarrow ? 14 : 20), rows[main] - 9, "gb-path-note gb-cause", "start");
    const dashes = dashed ? t(words[main]?.look ? "path.dashed" : "path.dashed.main", { word: words[main]?.text ?? "" }) : "";
    const lines = isNarrow ? dashes.split(/(?<=^[^,，.。]*[,，.。]) ?/) : [dashes]; // after the first clause
    lines.forEach((line, i) => write(line, 4, bottom + 96 - 16 * (lines.length - 1 - i), "gb-path-note", "start"));
    const p = next[0][1];
    add("path", { d: `M${x1} ${last}H${end + 16}`, class: "gb-path-out", "stroke-width": thickness(p) });
    add("path", { d: `${toHead(main < 0 ? last : rows[main])}H${end + 16}`, class: "gb-pulse", pathLength: 1 });
    add("circle", { cx: end + 16, cy: last, r: 5, class: "gb-path-end" });

    // the predicted word, and others
    write(guess, end + 30, last + 7, "gb-path-token", "start");
    write(percent(p), end + 30, last + 30, "gb-path-percent", "start");
    if (!isNarrow) next.slice(1).forEach(([text, share], i) => write(`${cut(text)}  ${percent(share)}`, end + 30, last + 58 + 24 * i, "gb-path-word", "start"));

    // what the parts on the path are called
    if (head) {
      const label = t("part.head", { layer: head[0], head: head[1] }) + (isNarrow ? "" : ` · ${t("path.without", { p: percent(head[2]) })}`);
      callout(label, x0 + layer / 4, last + 10, bottom + 32, "gb-of-head", { layer: head[0], head: head[1] }, isNarrow ? width : end + 16);
    } else write(t("path.together"), (start + end) / 2, bottom + 32, "gb-path-note");
    if (writer !== null) callout(t("path.writer.name", { layer: writer }), start + (writer + 0.75) * layer, last + 10, bottom + 64, "", { layer: writer }, isNarrow ? width : end + 16);
  }

  /** @param {Event} event */
  function choose({ target }) {
    const sent = parts.get(target);
    if (sent) host.send(sent);
  }
  svg.addEventListener("click", choose);
  svg.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    choose(event);
    event.preventDefault();
  });
  return { draw };
});
