// Layer and head pickers made of buttons.

import { make, makeButton } from "./dom.js";

/** @typedef {(change: Record<string, number | null>) => void} Want */

/** @param {string} text @param {string} title @param {() => void} act @param {Record<string, string>} [attributes] */
function pickButton(text, title, act, attributes = {}) {
  const button = makeButton("", text, { "aria-label": title, ...attributes });
  button.addEventListener("click", act);
  return button;
}

/** Replaces the buttons in a group, keeping the focus. @param {HTMLElement} group @param {string} word the group's name @param {Element[]} content */
function replaceButtons(group, word, content) {
  group.setAttribute("aria-label", word);
  const index = [...group.children].findIndex((child) => child === document.activeElement);
  group.replaceChildren(...content);
  if (index >= 0) /** @type {HTMLElement | undefined} */ (group.children[index])?.focus();
}

/** Draws buttons for the previous layer, its number, and the next layer. @param {HTMLElement} group @param {{layer: number, n_layer: number}} at @param {string} word @param {Want} want */
export function drawLayerPick(group, { layer, n_layer }, word, want) {
  const [back, on] = /** @type {const} */ ([["‹", "−", -1], ["›", "+", 1]]).map(([text, sign, by]) => {
    const isThere = layer + by >= 0 && layer + by < n_layer;
    return pickButton(text, `${word} ${sign}`, () => want({ layer: layer + by }), isThere ? {} : { disabled: "" });
  });
  replaceButtons(group, word, [back, make("span", "", `${word} ${layer}`), on]);
}

/** Draws the head buttons, grouping heads that share keys and values. @param {HTMLElement} group @param {{head: number, n_head: number, kv_heads: number}} at @param {string} word @param {Want} want */
export function drawHeadPicks(group, { head, n_head, kv_heads }, word, want) {
  const size = n_head / kv_heads;
  const buttons = Array.from({ length: n_head }, (_, each) => {
    const first = size > 1 && each > 0 && each % size === 0 ? "gb-first-of-group" : "";
    return pickButton(n_head > 16 ? "" : String(each), `${word} ${each}`, () => want({ head: each }), { "aria-pressed": String(each === head), class: first });
  });
  replaceButtons(group, word, [make("span", "", word), ...buttons]);
}

/**
 * Collects what has been selected but is not shown yet, and sends all of it at each change: of several in quick
 * succession, only the newest has to be handled.
 * @param {(payload: object) => void} send
 */
export function createRequests(send) {
  /** @type {Record<string, number | null>} */ let wanted = {};
  return {
    wanted: () => wanted,

    /** @param {Record<string, number | null>} change */
    want(change) {
      wanted = { ...wanted, ...change };
      send(wanted);
    },

    /** Forgets what has been selected, because newer data is shown. */
    answered() {
      wanted = {};
    },
  };
}
