// A lesson's code, its questions, and feedback on the answers.

import { copyFrom, find, make, makeButton, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";
import { lessons as progress } from "../storage.js";

/** @typedef {{caption: string, lines: string[]}} Listing  lines of the project's own code as HTML, highlighted by pygments */
/** @typedef {{question: string, kind: string, choices: string[], verdict: string, feedback: string, answer: string}} Question */

/** Builds a listing in which long lines wrap with extra indentation. @param {Listing} listing @param {boolean} copies whether it can be copied */
function makeListing({ caption, lines }, copies) {
  const rows = lines.map((line) => {
    const row = make("code");
    row.innerHTML = `${line}\n`;
    const indent = /^ */.exec(row.textContent)?.[0].length ?? 0;
    row.style.setProperty("--gb-indent", `${indent + 2}ch`);
    return row;
  });
  const pre = make("pre", "", rows, { "aria-label": caption });
  const copy = makeButton("gb-button", t("lessons.copy"), {}, () => copyFrom(copy, pre.textContent ?? ""));
  return make("figure", "", [make("figcaption", "", copies ? [caption, copy] : caption), pre]);
}

defineWidget("lesson", (root, host) => {
  const runs = find(root, ".gb-runs", HTMLDetailsElement);
  const list = find(root, ".gb-questions");
  const write = (/** @type {string} */ selector, text = "") => setText(find(root, selector), text);
  /** @type {Record<string, any>} */ let shown = {}; // see `code_and_questions`

  /** Builds a question with its field or choices. @param {Question} question @param {number} i */
  function makeQuestion({ question, kind, choices }, i) {
    const number = { name: "answer", inputmode: "text", autocomplete: "off", maxlength: "40", "aria-label": t("lessons.number") };
    const fields = choices.map((text, n) =>
      make("label", "", [make("input", "", "", { type: "radio", name: "answer", value: String(n + 1) }), make("span", "", text)]));
    const check = make("button", "gb-button", t("lessons.check"), { type: "submit" });
    const content = [...(kind === "number" ? [make("input", "", "", number)] : []), ...fields, check];
    const form = make("form", "gb-answer", content, { "aria-labelledby": `lesson-question-${i + 1}` });
    form.hidden = kind === "goal";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = new FormData(form).get("answer");
      if (given) host.send({ question: i + 1, answer: kind === "choice" ? Number(given) : given }, "input");
    });
    const asked = make("p", "gb-lesson-question", question, { id: `lesson-question-${i + 1}` });
    const verdict = make("p", "gb-verdict", "", { role: "status" });
    return make("li", "", [asked, form, verdict, make("details", "gb-solution", [make("summary"), make("p")])]);
  }

  /** @param {{open?: string | null, idea?: Listing[], code?: Listing[], questions?: Question[], show?: string, place?: string}} data */
  function draw(data) {
    const before = shown;
    if (data === before) return;
    shown = data;
    root.hidden = !data.open;
    if (!data.open) return;
    const questions = data.questions ?? [];
    const isSame = data.open === before.open;
    if (!isSame) runs.open = false;
    write(".gb-code-title", t("lessons.code"));
    write(".gb-runs summary", t("lessons.runs"));
    if (data.idea !== before.idea) find(root, ".gb-idea").replaceChildren(...(data.idea ?? []).map((each) => makeListing(each, true)));
    if (data.code !== before.code) find(root, ".gb-runs .gb-code").replaceChildren(...(data.code ?? []).map((each) => makeListing(each, false)));
    write(".gb-try-title", t("lessons.try"));
    const words = (/** @type {Question[]} */ all) => JSON.stringify(all.map(({ question, choices }) => [question, choices]));
    if (!isSame || words(questions) !== words(before.questions ?? [])) list.replaceChildren(...questions.map(makeQuestion));
    questions.forEach((question, i) => {
      const item = list.children[i];
      const verdict = find(item, ".gb-verdict");
      const solution = find(item, "details", HTMLDetailsElement);
      setText(verdict, question.feedback);
      verdict.dataset.verdict = question.verdict || "none";
      if (isSame && question.verdict === "right" && before.questions?.[i]?.verdict !== "right") solution.open = true;
      setText(find(solution, "summary"), data.show ?? "");
      setText(find(solution, "p"), question.answer);
    });
    if (questions.length && questions.every(({ verdict }) => verdict === "right")) progress.keep(data.open, 2);
    write(".gb-lesson-go", `${data.place} →`);
  }

  find(root, ".gb-lesson-go").addEventListener("click", () => host.send({ open: true }));
  return { draw };
});
