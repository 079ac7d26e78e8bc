// Texts in rows: tables, snippets with tinted words, and lists of choices.

import { find, make, makeButton, roving, setText } from "./dom.js";
import { setWords } from "./glossary.js";
import { defineWidget } from "./runtime.js";

defineWidget("table", (root, { options }) => {
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

  /** @param {{ rows?: string[][] }} data */
  function draw(data) {
    if (data !== shown) {
      const rows = data.rows ?? [];
      root.replaceChildren(...rows.map((texts, row) => make("tr", "", texts.map((text, column) => cell(text, row, column)))));
    }
    shown = data;
    const wide = around.scrollWidth > around.clientWidth && getComputedStyle(around).overflowX === "auto";
    if (wide) around.tabIndex = 0; // makes it focusable, so that it scrolls by keyboard
    else around.removeAttribute("tabindex");
  }

  return { draw };
});

defineWidget("snippets", (root) => {
  const [title, list] = [find(root, "h3"), find(root, "ol")];
  let key = "";

  /** @param {{ name?: string, snippets?: [word: string, level: number][][] }} data */
  function draw({ name = "", snippets = [] }) {
    setText(title, name);
    title.hidden = !name;
    root.hidden = !snippets.length;
    const fresh = JSON.stringify(snippets);
    if (fresh === key) return;
    key = fresh;
    list.replaceChildren(
      ...snippets.map((words) => {
        const most = Math.max(...words.map(([, level]) => level));
        const parts = words.map(([word, level]) => {
          const part = make(level === most ? "mark" : "span", "", word);
          if (level) part.style.setProperty("--tint", String(level));
          return part;
        });
        return make("li", "", parts);
      }),
    );
  }
  return { draw };
});

/**
 * A short list of choices as stacked buttons with a few cells each; without lines, it is hidden.
 * @typedef {object} Choices
 * @property {string} [name]  the list's name for screen readers
 * @property {string[]} [head]  the columns' names
 * @property {{cells: string[], sent: object}[]} [lines]  a single cell fills the whole line; sent: the payload
 */

defineWidget("choices", (list, host) => {
  const buttons = list.getElementsByTagName("button");
  const spans = (/** @type {string[]} */ texts) => texts.map((text) => make("span", "", text));
  /** @type {Choices | null} */ let shown = null;

  /** @param {Choices} data */
  function draw(data) {
    if (data === shown) return;
    shown = data;
    const { name = "", head = [], lines = [] } = data;
    list.hidden = lines.length === 0;
    list.setAttribute("aria-label", name);
    list.replaceChildren();
    let headed = false;
    for (const { cells } of lines) {
      const whole = cells.length === 1;
      if (!whole && !headed) {
        const title = make("p", "", spans(head));
        head.forEach((text, i) => setWords(/** @type {HTMLElement} */ (title.children[i]), text, true));
        list.append(title);
      }
      headed ||= !whole;
      list.append(makeButton(whole ? "gb-whole" : "", spans(cells)));
    }
    turn();
  }

  const turn = roving(list, buttons, (i) => {
    const line = shown?.lines?.[i];
    if (line) host.send(line.sent);
  });
  return { draw };
});
