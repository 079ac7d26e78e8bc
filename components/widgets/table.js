/**
 * A small table whose first row and first column are headers.
 * @typedef {object} Table
 * @property {string[][]} [rows]  texts
 *
 * options: words_from: the first column with words instead of numbers, or null
 */

import { make } from "./dom.js";
import { setWords } from "./glossary.js";
import { defineWidget } from "./runtime.js";

/** @type {import("./runtime.js").Mount} */
function mount(root, { options }) {
  const around = /** @type {HTMLElement} */ (root.closest(".block") ?? root.parentElement);
  /** @type {object | null} */ let shown = null;

  /** @param {string} text @param {number} row @param {number} column */
  function cell(text, row, column) {
    const heads = Boolean(text) && !(row && column);
    const made = make(heads ? "th" : "td", "", heads ? "" : text, heads ? { scope: row ? "row" : "col" } : {});
    if (heads) setWords(made, text, true);
    const words = options.words_from !== null && column >= options.words_from;
    if (words) Object.assign(made.style, { textAlign: "start", paddingLeft: "max(8px, 2vw)", whiteSpace: "normal" });
    return made;
  }

  /** @param {Table} data */
  function draw(data) {
    if (data !== shown) {
      const rows = (data.rows ?? []).map((texts, row) => {
        const made = make("tr");
        made.append(...texts.map((text, column) => cell(text, row, column)));
        return made;
      });
      root.replaceChildren(...rows);
    }
    shown = data;
    const wide = around.scrollWidth > around.clientWidth && getComputedStyle(around).overflowX === "auto";
    if (wide) around.tabIndex = 0; // makes it focusable, so that it scrolls by keyboard
    else around.removeAttribute("tabindex");
  }

  return { draw };
}

defineWidget("table", mount);
