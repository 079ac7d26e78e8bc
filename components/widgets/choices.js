/**
 * A short list of choices as stacked buttons with a few cells each.
 * @typedef {object} Choices
 * @property {string} [name]  the list's name for screen readers
 * @property {string[]} [head]  the columns' names
 * @property {{cells: string[], sent: object}[]} [lines]  a single cell fills the whole line; sent: the payload. Without
 *   lines, the widget is hidden
 */

import { make, makeButton } from "./dom.js";
import { setWords } from "./glossary.js";
import { defineWidget } from "./runtime.js";

/** @type {import("./runtime.js").Mount} */
function mount(list, host) {
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

defineWidget("choices", mount);
