// The list of all lessons by part, with a search by words or number.

import { find, make, modified } from "../dom.js";
import { t } from "../i18n.js";

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
