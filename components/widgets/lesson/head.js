/**
 * The navigation of the course, the title of the lesson and its sentence.
 * @typedef {object} LessonHead
 * @property {number | null} [index]  of the lesson, from 0; null: none is open; undefined: nothing is known yet
 * @property {string} [title]
 * @property {string} [says]
 * @property {string[]} [titles]  of all lessons
 * @property {string} [progress]  with places for {seen}, {answered} and {total}
 * @property {Record<string, string>} [labels]
 *
 * options: keys: of all lessons
 */

import { find, make, modified, setCount } from "../dom.js";
import { defineWidget } from "../runtime.js";
import { fill } from "../text.js";
import { keepProgress, onProgress, readProgress } from "./progress.js";

const TYPING = "input, textarea, select, pre, [contenteditable], [role=listbox], [role=slider]"; // these use the arrow keys themselves

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const { t } = host;
  const [steps, back, on, progress] = [".gb-steps", ".gb-back", ".gb-on", ".gb-progress"].map((name) => find(root, name));
  /** @type {string[]} */ const keys = host.options.keys;
  const leaving = new AbortController();
  /** @type {LessonHead} */ let shown = {};
  let asked = -1; // the lesson that was asked for last

  /** @param {number} to */
  function go(to) {
    if (to < 0 || to >= keys.length || to === asked) return;
    asked = to;
    host.send({ lesson: to });
  }

  function makeStep() {
    const link = make("a", "gb-step", String(steps.children.length + 1), { href: `?lesson=${steps.children.length + 1}` });
    const item = make("li");
    item.append(link);
    return item;
  }

  function mark() {
    if (typeof shown.index !== "number") return;
    const { done } = readProgress();
    const levels = keys.map((key) => done[key] || 0);
    levels.forEach((level, i) => {
      const step = find(steps.children[i], "a");
      const state = ["", t("seen"), t("answered")][level];
      step.dataset.level = String(level);
      step.title = `${i + 1} · ${shown.titles?.[i]}${state ? ` (${state})` : ""}`;
      step.setAttribute("aria-label", step.title);
      if (i === shown.index) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
    });
    const count = (/** @type {number} */ least) => levels.filter((level) => level >= least).length;
    progress.textContent = fill(shown.progress ?? "", { seen: count(1), answered: count(2), total: keys.length });
  }

  /** @param {LessonHead} data */
  function draw(data) {
    const before = shown.index;
    const { index } = (shown = data);
    root.hidden = index === undefined || index === null;
    if (index === null) go(Math.max(keys.indexOf(readProgress().last), 0)); // the last one that was open, or the first
    if (index === undefined || index === null) return;
    asked = index;
    find(root, "nav").setAttribute("aria-label", t("name"));
    setCount(steps, keys.length, makeStep);
    find(root, "h2").textContent = `${index + 1} · ${data.title}`;
    find(root, ".gb-lesson-says").textContent = data.says ?? "";
    back.textContent = `← ${t("previous")}`;
    on.textContent = `${t("next")} →`;
    back.toggleAttribute("disabled", index === 0);
    on.toggleAttribute("disabled", index === keys.length - 1);
    if (index !== before) keepProgress(keys[index], 1);
    mark();
  }

  steps.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link?.parentElement || modified(event) || event.shiftKey) return; // another tab of the browser
    event.preventDefault();
    go([...steps.children].indexOf(link.parentElement));
  });
  back.addEventListener("click", () => go((shown.index ?? 0) - 1));
  on.addEventListener("click", () => go((shown.index ?? 0) + 1));
  onProgress(mark, leaving.signal);
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || modified(event) || event.shiftKey || !root.offsetParent || typeof shown.index !== "number") return;
    if (event.target instanceof Element && event.target.closest(TYPING)) return;
    go(shown.index + step);
  };
  document.addEventListener("keydown", keyed, { signal: leaving.signal });
  return { draw, destroy: () => leaving.abort() };
}

defineWidget("lesson/head", mount);
