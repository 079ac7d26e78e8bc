/**
 * The code of a lesson, its question, and the answer on request.
 * @typedef {object} LessonBody
 * @property {number | null} [index]  of the lesson, from 0; none: nothing is shown
 * @property {{caption: string, lines: [string, string][][]}[]} [code]  lines of tokens, each a kind and a text
 * @property {string} [question]
 * @property {string} [answer]
 * @property {string} [show]  the label of the button that shows the answer
 * @property {string} [open]  the label of the button that opens the place in the app
 * @property {Record<string, string>} [labels]
 *
 * options: keys: of all lessons
 */

import { find, make } from "../dom.js";
import { defineWidget } from "../runtime.js";
import { keepProgress } from "./progress.js";

/** @param {{caption: string, lines: [string, string][][]}} code */
function listing({ caption, lines }) {
  const figure = make("figure");
  const pre = make("pre", "", "", { tabindex: "0", "aria-label": caption }); // focusable, so that long lines scroll by keyboard
  const code = make("code");
  for (const line of lines) {
    code.append(...line.map(([kind, text]) => make("span", kind ? `gb-c-${kind}` : "", text)), "\n");
  }
  pre.append(code);
  figure.append(make("figcaption", "", caption), pre);
  return figure;
}

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const answer = find(root, "details", HTMLDetailsElement);
  const write = (/** @type {string} */ selector, text = "") => (find(root, selector).textContent = text);
  /** @type {LessonBody} */ let shown = {};

  /** @param {LessonBody} data */
  function draw(data) {
    if (data === shown) return;
    if (data.index !== shown.index) answer.open = false;
    shown = data;
    root.hidden = typeof data.index !== "number";
    if (root.hidden) return;
    write(".gb-code-title", host.t("code"));
    find(root, ".gb-code").replaceChildren(...(data.code ?? []).map(listing));
    write(".gb-try-title", host.t("try"));
    write(".gb-lesson-question", data.question);
    write("summary", data.show);
    write("details p", data.answer);
    write(".gb-lesson-go", `${data.open} →`);
  }

  answer.addEventListener("toggle", () => {
    if (answer.open && typeof shown.index === "number") keepProgress(host.options.keys[shown.index], 2);
  });
  find(root, ".gb-lesson-go").addEventListener("click", () => host.send({ open: true }));
  return { draw };
}

defineWidget("lesson/body", mount);
