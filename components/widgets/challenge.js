// The path through the challenges with the open one's title and goal, and the verdict on an answer.

import { challenges as progress } from "../storage.js";
import { copyText, find, make, modified, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";

/**
 * @typedef {object} ChallengeHead
 * @property {string | null} [open]  the key; null if none is open, undefined until known
 * @property {string} [title]
 * @property {string} [goal]
 * @property {{name: string, items: {key: string, title: string}[]}[]} [groups]
 */

/** @type {import("./runtime.js").Mount} */
function head(root, host) {
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

defineWidget("challenge/head", head);

/**
 * @typedef {object} ChallengeFoot
 * @property {string | null} [open]  the challenge's key; without it, nothing is shown
 * @property {string} [verdict]
 * @property {boolean} [solved]
 * @property {boolean} [tried]  whether there is an answer yet
 * @property {number | null} [score]  for goals that can be exceeded
 * @property {string} [attempts]  a sentence
 * @property {string} [learned]
 * @property {string} [hint]
 * @property {string | null} [next]  the key; null after the last
 */

const COPIED_MS = 2000; // how long "copied" is shown

/** @type {import("./runtime.js").Mount} */
function foot(root, host) {
  const hint = find(root, "details", HTMLDetailsElement);
  const [again, link, on] = [".gb-again", ".gb-copy-link", ".gb-on"].map((name) => find(root, name));
  /** @type {ChallengeFoot} */ let shown = {};

  /** @param {ChallengeFoot} data */
  function draw(data) {
    if (data.open !== shown.open) hint.open = false;
    shown = data;
    root.hidden = !data.open;
    if (!data.open) return;
    const solved = data.solved === true;
    root.classList.toggle("gb-solved", solved);
    root.classList.toggle("gb-wrong", !solved && data.tried === true);
    setText(find(root, ".gb-standing"), data.verdict ?? "");
    setText(find(root, ".gb-learned"), solved ? (data.learned ?? "") : "");
    setText(find(hint, "summary"), t("challenges.hint"));
    setText(find(hint, "p"), data.hint ?? "");
    hint.hidden = solved;
    setText(again, t("challenges.again"));
    setText(link, t("challenges.link"));
    setText(on, `${t("challenges.next")} →`);
    on.hidden = !data.next;
    if (solved) progress.keep(data.open, 2, data.score);
    const best = progress.read().best[data.open];
    setText(find(root, ".gb-attempts"), [data.attempts, best ? t("challenges.record", { n: best }) : ""].filter(Boolean).join(" · "));
  }

  async function copyLink() {
    const address = new URL(`?challenge=${shown.open}`, location.href).href;
    if (!(await copyText(address))) return prompt(t("challenges.link"), address);
    setText(link, t("challenges.copied"));
    setTimeout(host.redraw, COPIED_MS);
  }

  again.addEventListener("click", () => host.send({ again: true }));
  link.addEventListener("click", copyLink);
  on.addEventListener("click", () => host.send({ challenge: shown.next }));
  return { draw };
}

defineWidget("challenge/foot", foot);
