// Layer and head pickers made of buttons.

import { find, make, makeButton } from "./dom.js";
import { t } from "./i18n.js";

/** @param {string} text @param {string} title @param {() => void} act @param {Record<string, string>} [attributes] */
function pickButton(text, title, act, attributes = {}) {
  return makeButton("", text, { "aria-label": title, ...attributes }, act);
}

/** Replaces the buttons in a group, keeping the focus. @param {HTMLElement} group @param {string} name @param {Element[]} content */
function replaceButtons(group, name, content) {
  group.setAttribute("aria-label", name);
  const index = [...group.children].findIndex((child) => child === document.activeElement);
  group.replaceChildren(...content);
  if (index >= 0) /** @type {HTMLElement | undefined} */ (group.children[index])?.focus();
}

/**
 * Draws buttons for the previous and the next layer, and for each head; heads that share keys and values form groups.
 * @param {HTMLElement} root @param {{layer: number, n_layer: number, head: number, n_head: number, kv_heads: number}} at
 * @param {(change: Record<string, number>) => void} want
 */
export function drawPicks(root, { layer, n_layer, head, n_head, kv_heads }, want) {
  const [layers, heads] = [t("attention.layer"), t("attention.head")];
  const [back, on] = /** @type {const} */ ([["‹", "−", -1], ["›", "+", 1]]).map(([text, sign, by]) => {
    const isThere = layer + by >= 0 && layer + by < n_layer;
    return pickButton(text, `${layers} ${sign}`, () => want({ layer: layer + by }), isThere ? {} : { disabled: "" });
  });
  replaceButtons(find(root, ".gb-picks-layer"), layers, [back, make("span", "", `${layers} ${layer}`), on]);
  const size = n_head / kv_heads;
  const buttons = Array.from({ length: n_head }, (_, each) => {
    const first = size > 1 && each > 0 && each % size === 0 ? "gb-first-of-group" : "";
    return pickButton(n_head > 16 ? "" : String(each), `${heads} ${each}`, () => want({ head: each }), { "aria-pressed": String(each === head), class: first });
  });
  replaceButtons(find(root, ".gb-picks-heads"), heads, [make("span", "", heads), ...buttons]);
}

/**
 * Collects what has been selected but is not shown yet, and sends all of it at each change: of several in quick
 * succession, only the newest has to be handled. @param {(payload: object) => void} send
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
