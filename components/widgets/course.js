// A row of lessons or challenges, of which one is open: its title and text, the list of all, and the way to its neighbours.

import { find, make, modified, setText } from "./dom.js";
import { t } from "./i18n.js";
import { PROGRESS, challenges, lessons } from "../storage.js";
import { defineWidget } from "./runtime.js";

/** @typedef {{title: string, says?: string, part: string, words?: string}} Item  words: synonyms in all languages */
/**
 * @typedef {{open?: string | null, title?: string, says?: string, items?: Item[], has_film?: boolean}} Course  open: the open
 *   item's key; null if none is open, undefined until known. items: those of the same part are adjacent
 */

const WORDS = {
  lessons: { name: "lessons.name", place: "lessons.place", list: "lessons.list", levels: ["lessons.seen", "lessons.answered"] },
  challenges: { name: "challenges.name", place: "challenges.place", list: "challenges.list", levels: ["challenges.seen", "challenges.solved"] },
};
// Elements that handle the arrow keys themselves.
const TYPING = "input, textarea, select, pre, [contenteditable], [role=listbox], [role=slider]";

/**
 * Returns whether an item matches a search for its number, its topic's number after "#", or words that all occur in it.
 * @param {string} query @param {Item} item @param {number} n the item's number @param {number} topic
 */
export function fits(query, item, n, topic) {
  const number = /^\s*(#?)\s*(\d+)\s*$/.exec(query);
  if (number) return Number(number[2]) === topic || (!number[1] && Number(number[2]) === n);
  const text = [item.title, item.says, item.part, item.words].filter(Boolean).join(" ").toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

defineWidget("course", (root, host) => {
  const { list, keys, topics } = /** @type {{list: "lessons" | "challenges", keys: string[], topics: number[]}} */ (host.options);
  const [words, kept] = [WORDS[list], { lessons, challenges }[list]];
  const [back, on, film, items, summary] = [".gb-back", ".gb-on", ".gb-film-link", "ol", "summary"].map((name) => find(root, name));
  const contents = find(root, "details", HTMLDetailsElement);
  const search = find(root, "input", HTMLInputElement);
  /** @type {Course} */ let shown = {};
  let asked = ""; // the last requested item
  const at = () => keys.indexOf(shown.open ?? "");

  /** @param {string | undefined} key */
  function go(key) {
    if (!key || key === asked) return;
    asked = key;
    host.send({ open: key });
  }

  /** Names an arrow, beside it where there is room. @param {HTMLElement} button @param {string} text */
  function name(button, text) {
    button.setAttribute("aria-label", text);
    setText(find(button, "span"), text);
  }

  function writeList() {
    const { done } = kept.read();
    const found = (shown.items ?? []).map((item, i) => ({ ...item, i })).filter((item) => fits(search.value, item, item.i + 1, topics[item.i]));
    items.replaceChildren();
    for (const [n, { title, part, i }] of found.entries()) {
      if (part !== found[n - 1]?.part) items.append(make("li", "gb-part", part));
      const level = done[keys[i]] || 0;
      const texts = [make("b", "", String(i + 1)), make("span", "", title), make("small", "", level ? t(words.levels[level - 1]) : "")];
      if (topics.length) texts.push(make("i", "", `#${topics[i]}`));
      const link = make("a", "", texts, { href: `?${list.slice(0, -1)}=${keys[i]}`, "data-key": keys[i], "data-level": String(level) });
      if (keys[i] === shown.open) link.setAttribute("aria-current", "step");
      items.append(make("li", "", [link]));
    }
    const count = (/** @type {number} */ least) => keys.filter((key) => (done[key] || 0) >= least).length;
    const values = { n: at() + 1, total: keys.length, seen: count(1), done: count(2) };
    setText(summary, t(words.place, values));
    setText(find(root, ".gb-note"), found.length ? [t(words.list, values), topics.length ? t("lessons.topic") : ""].join(" ") : t("lessons.none"));
  }

  /** @param {Course} data */
  function draw(data) {
    const before = shown.open;
    shown = data;
    root.hidden = typeof data.open !== "string";
    if (data.open === null) go(keys.includes(kept.read().last) ? kept.read().last : keys[0]);
    if (typeof data.open !== "string") return;
    asked = data.open;
    setText(find(root, "h2"), data.title ?? "");
    setText(find(root, ".gb-course-says"), data.says ?? "");
    search.placeholder = t("lessons.find");
    search.setAttribute("aria-label", t("lessons.find"));
    items.setAttribute("aria-label", t(words.name));
    find(root, ".gb-turn").hidden = list !== "lessons";
    name(back, t("lessons.previous"));
    name(on, t("lessons.next"));
    back.toggleAttribute("disabled", at() === 0);
    on.toggleAttribute("disabled", at() === keys.length - 1);
    film.textContent = `▶ ${t("lessons.film")}`;
    film.hidden = !data.has_film;
    if (data.open !== before) kept.keep(data.open, 1);
    writeList();
  }

  search.addEventListener("input", writeList);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") items.querySelector("a")?.click();
  });
  items.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || modified(event) || event.shiftKey) return; // opens in another browser tab
    event.preventDefault();
    contents.open = false;
    go(link.dataset.key);
  });
  back.addEventListener("click", () => go(keys[at() - 1]));
  on.addEventListener("click", () => go(keys[at() + 1]));
  film.addEventListener("click", () => host.send({}, "input"));
  document.addEventListener(PROGRESS, writeList, { signal: host.gone });
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (list !== "lessons" || !step || modified(event) || event.shiftKey || !root.offsetParent || at() < 0) return;
    if (!(event.target instanceof Element && event.target.closest(TYPING))) go(keys[at() + step]);
  }, { signal: host.gone });
  return { draw };
});
