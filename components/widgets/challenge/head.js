/**
 * The path through the challenges, with the title and goal of the open one.
 * @typedef {object} ChallengeHead
 * @property {string | null} [open]  the key; null if none is open, undefined until known
 * @property {string} [title]
 * @property {string} [goal]
 * @property {{name: string, items: {key: string, title: string}[]}[]} [groups]
 */

import { find, make, modified, setText } from "../dom.js";
import { t } from "../i18n.js";
import { challenges as progress } from "../../storage.js";
import { defineWidget } from "../runtime.js";

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const nav = find(root, "nav");
  const leaving = new AbortController();
  /** @type {ChallengeHead} */ let shown = {};
  /** @type {ChallengeHead["groups"]} */ let built;
  let asked = ""; // the last requested challenge

  /** @param {string} key */
  function go(key) {
    if (key === asked) return;
    asked = key;
    host.send({ challenge: key });
  }

  const items = () => (shown.groups ?? []).flatMap((group) => group.items);

  function build() {
    built = shown.groups;
    nav.replaceChildren(
      ...(built ?? []).map(({ name, items }) => {
        const group = make("div");
        const list = make("ol");
        for (const { key, title } of items) {
          const item = make("li");
          item.append(make("a", "gb-step", title, { href: `?challenge=${key}`, "data-key": key }));
          list.append(item);
        }
        group.append(make("span", "", name), list);
        return group;
      }),
    );
  }

  function mark() {
    const { done } = progress.read();
    for (const { key } of items()) {
      const link = find(nav, `a[data-key="${key}"]`);
      const level = done[key] || 0;
      const state = ["", t("challenges.seen"), t("challenges.solved")][level];
      link.dataset.level = String(level);
      link.title = state;
      if (key === shown.open) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    }
    const n = items().filter(({ key }) => done[key] === 2).length;
    setText(find(root, ".gb-challenge-solved"), t("challenges.progress", { n, total: items().length }));
  }

  /** @param {ChallengeHead} data */
  function draw(data) {
    const before = shown.open;
    shown = data;
    const { open } = data;
    root.hidden = typeof open !== "string";
    if (open === null) {
      const { last } = progress.read();
      const known = items().map(({ key }) => key);
      go(known.includes(last) ? last : known[0]);
    }
    if (typeof open !== "string") return;
    asked = open;
    nav.setAttribute("aria-label", t("challenges.name"));
    if (data.groups !== built) build();
    setText(find(root, "h2"), data.title ?? "");
    setText(find(root, ".gb-challenge-goal"), data.goal ?? "");
    if (open !== before) progress.keep(open, 1);
    mark();
  }

  nav.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link?.dataset.key || modified(event) || event.shiftKey) return; // opens in another browser tab
    event.preventDefault();
    go(link.dataset.key);
  });
  progress.onChange(mark, leaving.signal);
  return { draw, destroy: () => leaving.abort() };
}

defineWidget("challenge/head", mount);
