/**
 * The code of a lesson and its question, with the check of an answer.
 * @typedef {{caption: string, lines: [string, string][][]}} Listing  lines of tokens, each a kind and a text
 * @typedef {object} LessonBody
 * @property {number | null} [index]  of the lesson, from 0; none: nothing is shown
 * @property {Listing[]} [idea]  the shortest code
 * @property {Listing[]} [code]  what runs here
 * @property {string} [question]
 * @property {"number" | "choice" | "goal"} [kind]  of the question; a goal is checked without an answer
 * @property {string[]} [choices]
 * @property {"" | "right" | "wrong" | "unreadable"} [verdict]
 * @property {string} [feedback]  the verdict in a sentence
 * @property {string} [answer]
 * @property {string} [show]  the label of the button that shows the answer
 * @property {string} [open]  the label of the button that opens the place in the app
 * @property {Record<string, string>} [labels]
 *
 * options: keys: of all lessons
 */

import { find, make, setText } from "../dom.js";
import { defineWidget } from "../runtime.js";
import { lessons as progress } from "../progress.js";

/** Lines that are too long are wrapped, further in than they begin. @param {Listing} listing */
function makeListing({ caption, lines }) {
  const figure = make("figure");
  const pre = make("pre", "", "", { "aria-label": caption });
  for (const line of lines) {
    const row = make("code");
    const indent = /^ */.exec(line.map(([, text]) => text).join(""))?.[0].length ?? 0;
    row.style.setProperty("--gb-indent", `${indent + 2}ch`);
    row.append(...line.map(([kind, text]) => make("span", kind ? `gb-c-${kind}` : "", text)), "\n");
    pre.append(row);
  }
  figure.append(make("figcaption", "", caption), pre);
  return figure;
}

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const answer = find(root, ".gb-solution", HTMLDetailsElement);
  const runs = find(root, ".gb-runs", HTMLDetailsElement);
  const form = find(root, "form", HTMLFormElement);
  const write = (/** @type {string} */ selector, text = "") => setText(find(root, selector), text);
  /** @type {LessonBody} */ let shown = {};

  /** The field or the choices, of another lesson or language. */
  function makeForm() {
    const { kind, choices = [] } = shown;
    form.hidden = kind === "goal";
    form.replaceChildren();
    if (kind === "number") form.append(make("input", "", "", { name: "answer", inputmode: "decimal", autocomplete: "off", maxlength: "40", "aria-label": host.t("number") }));
    choices.forEach((text, i) => {
      const label = make("label");
      label.append(make("input", "", "", { type: "radio", name: "answer", value: String(i + 1) }), make("span", "", text));
      form.append(label);
    });
    form.append(make("button", "", host.t("check"), { type: "submit" }));
  }

  /** @param {LessonBody} data */
  function draw(data) {
    const before = shown;
    if (data === before) return;
    shown = data;
    root.hidden = typeof data.index !== "number";
    if (root.hidden || typeof data.index !== "number") return;
    if (data.index !== before.index) answer.open = runs.open = false;
    write(".gb-code-title", host.t("code"));
    write(".gb-runs summary", host.t("runs"));
    if (data.idea !== before.idea) find(root, ".gb-idea").replaceChildren(...(data.idea ?? []).map(makeListing));
    if (data.code !== before.code) find(root, ".gb-runs .gb-code").replaceChildren(...(data.code ?? []).map(makeListing));
    write(".gb-try-title", host.t("try"));
    write(".gb-lesson-question", data.question);
    if (data.question !== before.question) makeForm();
    const verdict = find(root, ".gb-verdict");
    setText(verdict, data.feedback ?? "");
    verdict.dataset.verdict = data.verdict || "none";
    if (data.verdict === "right") {
      progress.keep(host.options.keys[data.index], 2);
      if (before.index === data.index && before.verdict !== "right") answer.open = true;
    }
    write(".gb-solution summary", data.show);
    write(".gb-solution p", data.answer);
    write(".gb-lesson-go", `${data.open} →`);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = new FormData(form).get("answer");
    if (given) host.send({ answer: shown.kind === "choice" ? Number(given) : given }, "input");
  });
  find(root, ".gb-lesson-go").addEventListener("click", () => host.send({ open: true }));
  return { draw };
}

defineWidget("lesson/body", mount);
