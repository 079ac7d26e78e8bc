// Texts in rows: tables, snippets with tinted words, and lists of choices.

import { find, make, makeButton, setText } from "./dom.js";
import { setWords } from "./glossary.js";
import { defineWidget } from "./runtime.js";

/**
 * A small table whose first row and first column are headers.
 * @typedef {object} Table
 * @property {string[][]} [rows]  texts
 *
 * options: words_from: the first column with words instead of numbers, or null
 */

/** @type {import("./runtime.js").Mount} */
function table(root, { options }) {
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

defineWidget("table", table);

/**
 * Text snippets with tinted words.
 * @typedef {object} Snippets
 * @property {string} [name]
 * @property {[word: string, level: number][][]} [snippets]
 */

/** @type {import("./runtime.js").Mount} */
function snippets(root) {
  const list = find(root, "ol");
  let key = "";

  /** @param {Snippets} data */
  function draw({ name = "", snippets = [] }) {
    setText(find(root, "h3"), name);
    root.hidden = !name;
    const fresh = JSON.stringify(snippets);
    if (fresh === key) return;
    key = fresh;
    list.replaceChildren(
      ...snippets.map((words) => {
        const item = make("li");
        const most = Math.max(...words.map(([, level]) => level));
        item.append(
          ...words.map(([word, level]) => {
            const part = make(level === most ? "mark" : "span", "", word);
            if (level) part.style.setProperty("--tint", String(level));
            return part;
          }),
        );
        return item;
      }),
    );
  }
  return { draw };
}

defineWidget("snippets", snippets);

/**
 * A short list of choices as stacked buttons with a few cells each.
 * @typedef {object} Choices
 * @property {string} [name]  the list's name for screen readers
 * @property {string[]} [head]  the columns' names
 * @property {{cells: string[], sent: object}[]} [lines]  a single cell fills the whole line; sent: the payload. Without
 *   lines, the widget is hidden
 */

/** @type {import("./runtime.js").Mount} */
function choices(list, host) {
  const buttons = list.getElementsByTagName("button");
  const indexOf = (/** @type {Element | null} */ button) => [...buttons].findIndex((each) => each === button);
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
        const title = make("p");
        title.append(...spans(head));
        head.forEach((text, i) => setWords(/** @type {HTMLElement} */ (title.children[i]), text, true));
        list.append(title);
      }
      headed ||= !whole;
      const button = makeButton(whole ? "gb-whole" : "");
      button.append(...spans(cells));
      list.append(button);
    }
  }

  list.addEventListener("click", ({ target }) => {
    const line = target instanceof Element && shown?.lines?.[indexOf(target.closest("button"))];
    if (line) host.send(line.sent);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    buttons[indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  });
  return { draw };
}

defineWidget("choices", choices);
