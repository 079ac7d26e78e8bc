/**
 * The course's navigation, with the lesson's title and sentence.
 * @typedef {object} LessonHead
 * @property {number | null} [index]  the lesson's 0-based index; null if none is open, undefined until known
 * @property {Lesson[]} [lessons]  lessons in the same part are adjacent
 * @property {boolean} [has_film]  whether the film shows this lesson
 *
 * options: keys: keys of all lessons; topics: their topic numbers
 */

import { find, make, modified } from "../dom.js";
import { t } from "../i18n.js";
import { lessons as progress } from "../../storage.js";
import { defineWidget } from "../runtime.js";

/** @typedef {{title: string, says: string, part: string, words: string}} Lesson  words: synonyms in all languages */

/**
 * Returns whether a lesson matches a search for its number, its topic's number after "#", or words that all occur in it.
 * @param {string} query @param {Lesson} lesson @param {number} n the lesson's number @param {number} topic
 */
export function fits(query, lesson, n, topic) {
  const number = /^\s*(#?)\s*(\d+)\s*$/.exec(query);
  if (number) return Number(number[2]) === topic || (!number[1] && Number(number[2]) === n);
  const text = `${lesson.title} ${lesson.says} ${lesson.part} ${lesson.words}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/**
 * @param {HTMLDetailsElement} root @param {import("../runtime.js").Host} host
 * @param {(index: number) => void} go opens a lesson
 */
export function contents(root, host, go) {
  /** @type {string[]} */ const keys = host.options.keys;
  const search = find(root, "input", HTMLInputElement);
  const list = find(root, "ol");
  const note = find(root, ".gb-topic");
  /** @type {number[]} */ const topics = host.options.topics;
  /** @type {Lesson[]} */ let lessons = [];
  /** @type {number[]} */ let levels = [];
  let open = -1;

  function write() {
    list.replaceChildren();
    lessons.forEach((lesson, i) => {
      if (!fits(search.value, lesson, i + 1, topics[i])) return;
      const [item, state] = [make("li"), ["", t("lessons.seen"), t("lessons.answered")][levels[i]]];
      const link = make("a", "", "", { href: `?lesson=${keys[i]}`, "data-index": String(i), "data-level": String(levels[i]) });
      if (i === open) link.setAttribute("aria-current", "step");
      link.append(make("b", "", String(i + 1)), make("span", "", lesson.title), make("small", "", [lesson.part, state].filter(Boolean).join(" · ")));
      link.append(make("i", "", `#${topics[i]}`));
      item.append(link);
      list.append(item);
    });
    note.textContent = t(list.children.length ? "lessons.topic" : "lessons.none");
  }

  search.addEventListener("input", write);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && list.children.length) find(list, "a").click();
  });
  list.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || modified(event) || event.shiftKey) return; // opens in another browser tab
    event.preventDefault();
    root.open = false;
    go(Number(link.dataset.index));
  });

  return {
    /** @param {Lesson[]} all @param {number[]} reached levels by lesson: 1 seen, 2 answered @param {number} index the open lesson */
    draw(all, reached, index) {
      [lessons, levels, open] = [all, reached, index];
      const count = (/** @type {number} */ least) => levels.filter((level) => level >= least).length;
      const values = { part: lessons[index]?.part ?? "", n: index + 1, seen: count(1), answered: count(2), total: lessons.length };
      find(root, "summary").replaceChildren(make("b", "", t("lessons.place", values)), make("span", "", t("lessons.list", values)));
      search.placeholder = t("lessons.find");
      search.setAttribute("aria-label", t("lessons.find"));
      write();
    },
  };
}

// Elements that handle the arrow keys themselves.
const TYPING = "input, textarea, select, pre, [contenteditable], [role=listbox], [role=slider]";

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const [parts, back, on, film] = [".gb-parts", ".gb-back", ".gb-on", ".gb-lesson-film"].map((name) => find(root, name));
  /** @type {string[]} */ const keys = host.options.keys;
  const leaving = new AbortController();
  const list = contents(find(root, ".gb-contents", HTMLDetailsElement), host, go);
  /** @type {LessonHead} */ let shown = {};
  let asked = -1; // the last requested lesson
  /** @type {LessonHead["lessons"]} */ let named; // the lessons named on the page

  /** @param {number} to */
  function go(to) {
    if (to < 0 || to >= keys.length || to === asked) return;
    asked = to;
    host.send({ lesson: to });
  }

  /** Builds the parts, each with the titles of its lessons. Only those of the open part are visible. */
  function makeParts() {
    const lessons = (named = shown.lessons) ?? [];
    parts.replaceChildren();
    lessons.forEach(({ part, title }, i) => {
      if (part !== lessons[i - 1]?.part) {
        const group = make("li");
        group.append(make("a", "gb-part", part, { href: `?lesson=${keys[i]}` }), make("ol", "gb-steps"));
        parts.append(group);
      }
      const item = make("li");
      item.append(make("a", "gb-step", title, { href: `?lesson=${keys[i]}` }));
      parts.lastElementChild?.lastElementChild?.append(item);
    });
  }

  function mark() {
    if (typeof shown.index !== "number") return;
    const { done } = progress.read();
    const levels = keys.map((key) => done[key] || 0);
    const steps = parts.querySelectorAll(".gb-step");
    levels.forEach((level, i) => {
      const step = /** @type {HTMLElement} */ (steps[i]);
      const state = ["", t("lessons.seen"), t("lessons.answered")][level];
      step.dataset.level = String(level);
      step.title = `${i + 1} · ${shown.lessons?.[i].title}${state ? ` (${state})` : ""}`;
      step.setAttribute("aria-label", step.title);
      if (i === shown.index) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
    });
    list.draw(shown.lessons ?? [], levels, shown.index);
  }

  /** @param {LessonHead} data */
  function draw(data) {
    const before = shown;
    const { index } = (shown = data);
    root.hidden = index === undefined || index === null;
    if (index === null) go(Math.max(keys.indexOf(progress.read().last), 0)); // the last open lesson, or the first
    if (index === undefined || index === null) return;
    asked = index;
    const lesson = data.lessons?.[index];
    find(root, "nav").setAttribute("aria-label", t("lessons.name"));
    if (data.lessons !== named) makeParts();
    find(root, "h2").textContent = `${index + 1} · ${lesson?.title}`;
    find(root, ".gb-lesson-says").textContent = lesson?.says ?? "";
    back.textContent = `← ${t("lessons.previous")}`;
    on.textContent = `${t("lessons.next")} →`;
    back.toggleAttribute("disabled", index === 0);
    on.toggleAttribute("disabled", index === keys.length - 1);
    film.textContent = `▶ ${t("lessons.film")}`;
    film.hidden = !data.has_film;
    if (index !== before.index) progress.keep(keys[index], 1);
    mark();
  }

  parts.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || modified(event) || event.shiftKey) return; // opens in another browser tab
    event.preventDefault();
    go(keys.indexOf(new URL(link.href).searchParams.get("lesson") ?? ""));
  });
  back.addEventListener("click", () => go((shown.index ?? 0) - 1));
  on.addEventListener("click", () => go((shown.index ?? 0) + 1));
  film.addEventListener("click", () => host.send({}, "input"));
  progress.onChange(mark, leaving.signal);
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
