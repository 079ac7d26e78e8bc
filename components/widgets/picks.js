// Layer and head pickers made of buttons.

import { make, makeButton } from "./dom.js";

/** @typedef {(change: Record<string, number | null>) => void} Want */

/** @param {string} text @param {string} title @param {boolean | undefined} pressed @param {(() => void) | null} act null if it cannot be pressed */
export function pickButton(text, title, pressed, act) {
  const button = makeButton("", text, { "aria-label": title });
  if (pressed !== undefined) button.setAttribute("aria-pressed", String(pressed));
  button.disabled = !act;
  if (act) button.addEventListener("click", act);
  return button;
}

/**
 * Makes a button for each head.
 * @param {number} count @param {string} word the word "head" in the page's language
 * @param {(head: number) => boolean} pressed @param {(head: number) => void} act
 */
export function headButtons(count, word, pressed, act) {
  return Array.from({ length: count }, (_, head) => {
    return pickButton(count > 16 ? "" : String(head), `${word} ${head}`, pressed(head), () => act(head));
  });
}

/** Replaces the buttons in a group, keeping the focus. @param {HTMLElement} group @param {Element[]} content */
export function replaceButtons(group, content) {
  const index = [...group.children].findIndex((child) => child === document.activeElement);
  group.replaceChildren(...content);
  if (index >= 0) /** @type {HTMLElement | undefined} */ (group.children[index])?.focus();
}

/** Draws buttons for the previous layer, its number, and the next layer. @param {HTMLElement} group @param {{layer: number, n_layer: number}} at @param {string} word @param {Want} want */
export function drawLayerPick(group, { layer, n_layer }, word, want) {
  group.setAttribute("aria-label", word);
  replaceButtons(group, [
    pickButton("‹", `${word} −`, undefined, layer > 0 ? () => want({ layer: layer - 1 }) : null),
    make("span", "", `${word} ${layer}`),
    pickButton("›", `${word} +`, undefined, layer + 1 < n_layer ? () => want({ layer: layer + 1 }) : null),
  ]);
}

/** Draws the head buttons, grouping heads that share keys and values. @param {HTMLElement} group @param {{head: number, n_head: number, kv_heads: number}} at @param {string} word @param {Want} want */
export function drawHeadPicks(group, { head, n_head, kv_heads }, word, want) {
  group.setAttribute("aria-label", word);
  const buttons = headButtons(n_head, word, (each) => each === head, (each) => want({ head: each }));
  const size = n_head / kv_heads;
  buttons.forEach((button, each) => button.classList.toggle("gb-first-of-group", size > 1 && each > 0 && each % size === 0));
  replaceButtons(group, [make("span", "", word), ...buttons]);
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
