// A flow in columns to one predicted token. Its parts can be switched off.

import { find, makeShape, modified, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { change, percent } from "../labels.js";
import { defineWidget } from "../runtime.js";

const NARROW = 590; // px
const TOP = 28; // px for the titles
const THINNEST = 0.05; // px

/** @typedef {OfHeads & OfConcepts & Answer} Flow */

// Where the nodes and ribbons are

const ROW = 30; // height of the smallest node in px
const GAP = 8; // px between two nodes

/**
 * @typedef {[column: number, from: number, to: number, width: number]} Edge  between neighbouring columns; width in px
 * @typedef {{y: number, height: number}} Place  a node's middle and height
 * @typedef {{from: number, to: number, width: number}} Ribbon  y of the middle at both ends, and the width, in px
 */

/**
 * @param {number[][]} sizes  px of ribbons at each node, by column
 * @param {Edge[]} edges
 * @returns {{places: Place[][], ribbons: Ribbon[], writes: Ribbon[], height: number}}  writes: from the last column into the target
 */
export function arrange(sizes, edges) {
  const columns = sizes.map((column) => column.map((size) => Math.max(ROW, size + 8)));
  const tall = (/** @type {number[]} */ column) => column.reduce((sum, size) => sum + size + GAP, -GAP);
  const height = Math.max(...columns.map(tall));
  const places = columns.map((column) => {
    let y = (height - tall(column)) / 2;
    return column.map((size) => {
      const place = { y: y + size / 2, height: size };
      y += size + GAP;
      return place;
    });
  });

  /**
   * Returns the middle of each edge at one end, placing edges side by side at their node.
   * @param {(edge: Edge) => [column: number, node: number]} at
   */
  function shared(at) {
    /** @type {Map<string, number>} */ const sums = new Map();
    edges.forEach((edge) => sums.set(`${at(edge)}`, (sums.get(`${at(edge)}`) ?? 0) + edge[3]));
    /** @type {Map<string, number>} */ const used = new Map();
    return edges.map((edge) => {
      const [column, node] = at(edge);
      const begun = used.get(`${at(edge)}`) ?? 0;
      used.set(`${at(edge)}`, begun + edge[3]);
      return places[column][node].y - (sums.get(`${at(edge)}`) ?? 0) / 2 + begun + edge[3] / 2;
    });
  }

  const starts = shared(([column, from]) => [column, from]);
  const ends = shared(([column, , to]) => [column + 1, to]);
  const into = sizes[sizes.length - 1];
  let y = height / 2 - into.reduce((sum, size) => sum + size, 0) / 2;
  const writes = into.map((width, i) => {
    y += width;
    return { from: places[places.length - 1][i].y, to: y - width / 2, width };
  });
  return { places, ribbons: edges.map(([, , , width], e) => ({ from: starts[e], to: ends[e], width })), writes, height };
}

/** Returns a ribbon's outline from x0 to x1. @param {Ribbon} ribbon @param {number} x0 @param {number} x1 */
export function outline({ from, to, width }, x0, x1) {
  const [half, bend] = [width / 2, (x0 + x1) / 2];
  const f = (/** @type {number} */ value) => value.toFixed(1);
  const edge = (/** @type {number} */ by) => [from + by, to + by].map(f);
  const [[a, b], [c, d]] = [edge(-half), edge(half)];
  return `M${f(x0)} ${a}C${f(bend)} ${a} ${f(bend)} ${b} ${f(x1)} ${b}V${d}C${f(bend)} ${d} ${f(bend)} ${c} ${f(x0)} ${c}Z`;
}

// What the two flows show: words through attention heads, and words through concepts

const WIDTH_ALL = 150; // total width in px of all ribbons into the target
const WIDEST = 64; // maximum width in px of one head's ribbon

/**
 * @typedef {object} Answer  what both flows end in
 * @property {string} [target] @property {string} [name]  the target in a sentence
 * @property {number} [before]  its probability @property {number | null} [after]
 * @property {string} [says]
 *
 * @typedef {object} OfHeads
 * @property {[position: number, word: string, without: number][]} [tokens]  without: the probability without the token
 * @property {[layer: number, head: number, without: number][]} [heads]
 * @property {number[][]} [weights]  [head][token] @property {number} [n_head]  number of heads in a layer
 * @property {{tokens: number[][], heads: number[][], reads: number[][]}} [off]  the places that are switched off
 * @property {boolean} [is_pending]  whether the heads are still being computed; their space is reserved
 *
 * @typedef {{key: string | null, name: string, adds: number, off: boolean, says: string}} Step
 * @typedef {object} OfConcepts
 * @property {{title: string, nodes: Step[]}[]} [columns]
 * @property {[column: number, from: number, to: number, size: number][]} [edges]
 *
 * @typedef {object} Look  how a node or a ribbon looks, and what a click on it does
 * @property {boolean} isOff @property {string} [style] @property {string} [css]
 * @property {object} [sends]  the payload of a click, for parts that can be switched @property {string} [says]
 * @property {boolean} [isSwitched]  whether the part itself is off
 *
 * @typedef {object} Contents
 * @property {string} name
 * @property {{title: string, width?: number, nodes: (Look & {text: string, size: number, writes: Look | null})[]}[]} columns
 *   size: px of its ribbons; writes: the ribbon into the target, in the last column
 * @property {{edge: Edge, look: Look}[]} edges
 */

/** @param {OfHeads & Answer} data @param {boolean} isNarrow @returns {Contents} */
function ofHeads({ tokens = [], heads = [], weights = [], before = 0, off, name }, isNarrow) {
  const falls = heads.map(([, , without]) => 1 - without / before);
  const unit = Math.min(WIDTH_ALL / (falls.reduce((sum, fall) => sum + fall, 0) || 1), WIDEST / Math.max(...falls, 1e-9));
  const widths = falls.map((fall) => Math.max(2, fall * unit));
  const reads = weights.map((row, h) => [...row, Math.max(0, 1 - row.reduce((a, b) => a + b, 0))].map((weight) => weight * widths[h]));
  /** @param {"tokens" | "heads" | "reads"} part @param {number[]} place */
  const has = (part, place) => (off?.[part] ?? []).some((each) => String(each) === String(place));
  const shortened = (/** @type {string} */ word, most = isNarrow ? 7 : 12) => (word.length > most ? `${word.slice(0, most - 1)}…` : word);

  const words = [...tokens, null].map((token, i) => {
    const size = reads.reduce((sum, row) => sum + row[i], 0);
    if (!token) return { text: t("why.flow.others"), size, css: "gb-ribbon-others", isOff: false, writes: null };
    const [position, word, without] = token;
    const says = t("why.flow.token.off", { token: word, before: percent(before), after: percent(without) });
    const sends = { part: "tokens", place: [position] };
    const isOff = has("tokens", [position]);
    return { text: `${shortened(word)} ${isNarrow ? "" : "→ "}${percent(without)}`, size, css: "gb-ribbon-token", isOff, sends, says, writes: null };
  });
  const nodes = heads.map(([layer, head, without], h) => {
    const title = t(isNarrow ? "why.flow.head.short" : "part.head", { layer, head });
    const look = {
      isOff: has("heads", [layer, head]),
      sends: { part: "heads", place: [layer, head] },
      says: t("why.flow.head.off", { layer, head, before: percent(before), after: percent(without) }),
    };
    return { ...look, text: `${title} ${isNarrow ? "" : "→ "}${percent(without)}`, size: widths[h], css: "gb-ribbon-head", writes: look };
  });
  const edges = heads.flatMap(([layer, head], h) =>
    reads[h].map((width, i) => {
      const edge = /** @type {Edge} */ ([0, i, h, width]);
      const { isOff: isHeadOff } = nodes[h];
      if (!tokens[i]) return { edge, look: { isOff: isHeadOff, css: "gb-ribbon-rest" } };
      const [position, token] = tokens[i];
      const isSwitched = has("reads", [layer, head, position]);
      const says = t("why.flow.read.off", { layer, head, token, p: percent(weights[h][i]) });
      const sends = { part: "reads", place: [layer, head, position] };
      return { edge, look: { isOff: isSwitched || isHeadOff || words[i].isOff, isSwitched, sends, says } };
    }),
  );
  const columns = [
    { title: t("why.flow.tokens"), width: isNarrow ? 76 : 160, nodes: words },
    { title: t("why.flow.heads"), width: isNarrow ? 84 : 190, nodes },
  ];
  return { name: t("why.flow.name", { token: name ?? "" }), columns, edges };
}

/** @param {OfConcepts & Answer} data @returns {Contents} */
function ofConcepts({ columns = [], edges = [], name }) {
  const last = columns.length - 1;
  const unit = WIDTH_ALL / (columns[last].nodes.reduce((sum, { adds }) => sum + Math.abs(adds), 0) || 1);
  const isOff = (/** @type {number} */ column, /** @type {number} */ node) => columns[column].nodes[node].off;
  return {
    name: t("why.paths.name", { token: name ?? "" }),
    columns: columns.map(({ title, nodes }, c) => ({
      title,
      nodes: nodes.map(({ key, name: text, adds, off, says }) => ({
        text,
        size: Math.abs(adds) * unit,
        css: `gb-path-node gb-path-${c}${key === null ? " gb-path-rest" : ""}`,
        isOff: off,
        says,
        sends: key === null ? undefined : { node: key },
        writes: c < last ? null : { isOff: off, css: adds < 0 ? "gb-against" : key === null ? "gb-ribbon-rest" : "" },
      })),
    })),
    edges: edges.map(([column, from, to, size]) => ({
      edge: [column, from, to, Math.max(0, size) * unit],
      look: { isOff: isOff(column, from) || isOff(column + 1, to) },
    })),
  };
}

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

  /** @param {Ribbon} at @param {number} x0 @param {number} x1 @param {Look} look */
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
    const end = isNarrow ? 76 : 155; // leaves room for "70% → 56%"
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

// The parts that can be switched off

const BAR = 12; // px

/** Makes a text element. @param {string} text @param {number} x @param {number} y @param {string} css @param {string} [anchor] */
export function write(text, x, y, css, anchor = "start") {
  const node = makeShape("text", { x, y, class: css, "text-anchor": anchor });
  setText(node, text);
  return node;
}

/** Adds a tooltip to a part. @param {SVGElement} node @param {string} text */
export function explain(node, text) {
  const title = makeShape("title", {});
  setText(title, text);
  node.append(title);
}

/**
 * Makes the predicted token with bars for its probability before and after.
 * @param {string} token @param {number} before @param {number | null} after
 * @param {number} x @param {number} width @param {number} y
 */
export function answer(token, before, after, x, width, y) {
  const track = { x, y: y - BAR / 2, height: BAR, rx: 3 };
  const bars = [
    makeShape("rect", { ...track, width, class: "gb-ribbon-track" }),
    makeShape("rect", { ...track, width: width * before, class: after === null ? "gb-now" : "gb-before" }),
  ];
  if (after !== null) bars.push(makeShape("rect", { ...track, y: track.y + 3, height: BAR - 6, width: width * after, class: "gb-now" }));
  const number = change(before, after ?? before);
  return [write(token, x, y - 16, "gb-ribbon-target"), ...bars, write(number, x, y + 26, "gb-ribbon-number")];
}

/**
 * Manages the parts of a drawing that a click switches off or on. They form a single Tab stop with arrow keys; Enter and
 * Space act as clicks.
 * @param {SVGSVGElement} svg @param {(payload: object) => void} send
 */
export function switches(svg, send) {
  /** @type {Map<Element, object>} */ const parts = new Map();
  let current = ""; // payload of the part that receives the keyboard focus first
  let focused = false;

  /** @param {Element | null} node */
  function choose(node) {
    const payload = node && parts.get(node);
    if (!payload) return;
    current = JSON.stringify(payload);
    send(payload);
  }

  const partAt = (/** @type {Event} */ { target }) => (target instanceof Element ? target.closest(".gb-ribbon-part") : null);
  svg.addEventListener("click", (event) => choose(partAt(event)));
  svg.addEventListener("keydown", (event) => {
    const node = partAt(event);
    if (modified(event) || !node) return;
    const nodes = [...parts.keys()];
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") choose(node);
    else if (step === undefined) return;
    else {
      const next = nodes[(nodes.indexOf(node) + step + nodes.length) % nodes.length];
      node.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      current = JSON.stringify(parts.get(next));
      /** @type {SVGElement} */ (next).focus();
    }
    event.preventDefault();
  });

  return {
    /** Clears the drawing. Call it before drawing. */
    clear() {
      focused = svg.contains(document.activeElement);
      svg.replaceChildren();
      parts.clear();
    },

    /** @param {SVGElement} node @param {object} payload @param {string} label @param {boolean} isOff */
    add(node, payload, label, isOff) {
      setAll(node, { role: "button", tabindex: "-1", "aria-label": label, "aria-pressed": String(isOff) });
      explain(node, label);
      node.classList.add("gb-ribbon-part");
      parts.set(node, payload);
    },

    /** Restores the keyboard focus to the part that had it. Call it after drawing. */
    enter() {
      const nodes = [...parts];
      const [node] = nodes.find(([, payload]) => JSON.stringify(payload) === current) ?? nodes[0] ?? [];
      node?.setAttribute("tabindex", "0");
      if (focused && node instanceof SVGElement) node.focus();
    },
  };
}
