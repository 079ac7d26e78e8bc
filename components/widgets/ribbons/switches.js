// Shared by the flows through heads and through concepts: drawing parts that can be switched off, and the predicted
// token.

import { makeShape, modified, setAll, setText } from "../dom.js";
import { percent } from "../numbers.js";

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
    makeShape("rect", { ...track, width, class: "gb-track" }),
    makeShape("rect", { ...track, width: width * before, class: after === null ? "gb-now" : "gb-before" }),
  ];
  if (after !== null) bars.push(makeShape("rect", { ...track, y: track.y + 3, height: BAR - 6, width: width * after, class: "gb-now" }));
  const number = after === null ? percent(before) : `${percent(before)} → ${percent(after)}`;
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
