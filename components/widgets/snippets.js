/**
 * Text snippets with tinted words.
 * @typedef {object} Snippets
 * @property {string} [name]
 * @property {[word: string, level: number][][]} [snippets]
 */

import { find, make, setText } from "./dom.js";
import { defineWidget } from "./runtime.js";

/** @type {import("./runtime.js").Mount} */
function mount(root) {
  const list = find(root, "ol");
  let key = "";

  /** @param {Snippets} data */
  function draw({ name = "", snippets = [] }) {
    setText(find(root, "h3"), name);
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

defineWidget("snippets", mount);
