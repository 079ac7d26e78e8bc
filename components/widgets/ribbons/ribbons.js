// A flow in columns to one predicted token. Its parts can be switched off.

import { find, makeShape, modified, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { change, percent } from "../labels.js";
import { defineWidget } from "../runtime.js";

const NARROW = 590; // px
const TOP = 28; // px for the titles
const THINNEST = 0.05; // px

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

const WIDTH_ALL = 150; // total width in px of all ribbons into the target
const WIDEST = 64; // maximum width in px of one of them
const LEAST = 2; // and the minimum

/**
 * @typedef {object} Node
 * @property {string | null} key  null for a part that can't be switched off
 * @property {string} name @property {string} [short]  on a narrow page
 * @property {number} [number]  a probability beside the name
 * @property {number} adds  how much goes through it @property {string} says  its tooltip
 *
 * @typedef {object} Flow
 * @property {"heads" | "concepts"} [by]  what it goes through
 * @property {string} [name]  for screen readers
 * @property {{title: string, nodes: Node[]}[]} [columns]
 * @property {[column: number, from: number, to: number, size: number, key: string | null, says: string][]} [edges]
 * @property {string[]} [off]  keys of what is switched off
 * @property {string} [target] @property {number} [before]  its probability @property {number | null} [after]  without what is off
 * @property {string} [says]
 * @property {boolean} [is_pending]  whether the flow is still being computed; its space is reserved
 */

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const svg = find(root, "svg", SVGSVGElement);
  const button = find(root, "button", HTMLButtonElement);
  const parts = switches(svg, (payload) => host.send(payload));

  /** Shortens a label to a width in px. @param {SVGTextElement} label @param {string} name @param {string} number @param {number} room */
  function fit(label, name, number, room) {
    for (let kept = [...name].length; kept > 1 && label.getComputedTextLength() > room; kept -= 1) {
      setText(label, `${[...name].slice(0, kept - 1).join("")}…${number}`);
    }
  }

  /** Adds a node or a ribbon, which a click switches if it has a key. @param {SVGElement} shape @param {string | null} key @param {string} says @param {boolean} isOff */
  function place(shape, key, says, isOff) {
    if (key !== null) parts.add(shape, { key }, says, isOff);
    else if (says) explain(shape, says);
    svg.append(shape);
  }

  /** @param {Flow} data */
  function draw(data) {
    const { by, name = "", columns = [], edges = [], off = [], target = "", before = 0, after = null } = data;
    root.hidden = !columns.length && !data.is_pending;
    root.classList.toggle("gb-pending", !columns.length);
    root.classList.toggle("gb-concepts", by === "concepts");
    if (!columns.length) return;
    const width = root.clientWidth;
    const isNarrow = width < NARROW;
    const end = isNarrow ? 76 : 155; // leaves room for "70% → 56%"
    const box = (width - end) / columns.length - (isNarrow ? 20 : Math.max(32, (width - end) * 0.09));
    parts.clear();
    setAll(svg, { width, "aria-label": name });

    const padding = isNarrow ? 12 : 40;
    // the labels, which make a column as wide as the longest, and the ribbons' widths
    const texts = columns.map(({ nodes }) =>
      nodes.map(({ name, short, number }) => [(isNarrow && short) || name, number === undefined ? "" : ` → ${percent(number)}`]),
    );
    const labels = texts.map((column) => column.map(([text, tail]) => svg.appendChild(write(text + tail, 0, 0, "", "middle"))));
    const widest = () => labels.map((column) => Math.max(...column.map((label) => label.getComputedTextLength())) + padding);
    const total = (/** @type {number[]} */ sizes) => sizes.reduce((sum, each) => sum + each, 0);
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

    const isOff = (/** @type {number} */ column, /** @type {number} */ i) => off.includes(columns[column].nodes[i].key ?? "");
    const ribbon = (/** @type {Ribbon} */ at, /** @type {number} */ x0, /** @type {number} */ x1, /** @type {string} */ css, /** @type {boolean} */ isEmpty) =>
      makeShape("path", { d: outline({ ...at, from: at.from + TOP, to: at.to + TOP }, x0, x1), class: `gb-ribbon ${css}${isEmpty ? " gb-off" : ""}` });
    edges.forEach(([column, from, to, , key, says], e) => {
      if (ribbons[e].width < THINNEST) return;
      const isSwitched = off.includes(key ?? "");
      const css = columns[column].nodes[from].key === null ? "gb-rest" : "";
      place(ribbon(ribbons[e], right[column], left[column + 1], css, isSwitched || isOff(column, from) || isOff(column + 1, to)), key, says, isSwitched);
    });
    columns[last].nodes.forEach(({ key, adds, says }, i) => {
      const css = adds < 0 ? "gb-against" : key === null ? "gb-rest" : "";
      place(ribbon(writes[i], right[last], width - end, css, isOff(last, i)), key, says, isOff(last, i));
    });
    columns.forEach(({ title, nodes }, c) => {
      svg.append(write(title, left[c], 12, "gb-ribbon-title"));
      nodes.forEach(({ key, says }, i) => {
        const { y, height: tall } = places[c][i];
        const group = makeShape("g", { class: `gb-node${c ? " gb-through" : ""}${key === null ? " gb-rest" : ""}${isOff(c, i) ? " gb-off" : ""}` });
        group.append(makeShape("rect", { x: left[c], y: y + TOP - tall / 2, width: widths[c], height: tall - 4, rx: 6 }), labels[c][i]);
        setAll(labels[c][i], { x: left[c] + widths[c] / 2, y: y + TOP + 3 });
        place(group, key, says, isOff(c, i));
      });
    });
    const answered = answer(target, before, after, width - end + 8, end - 8, height / 2 + TOP);
    svg.append(...answered);
    fit(answered[0], target, "", end - 8);
    parts.enter();
    setText(find(root, "p"), data.says ?? "");
    setText(button, t("why.flow.all"));
    button.hidden = !off.length;
  }

  button.addEventListener("click", () => host.send({ all: true }));
  return { draw };
}

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
 * @returns {[SVGTextElement, ...SVGElement[]]} the token first
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
