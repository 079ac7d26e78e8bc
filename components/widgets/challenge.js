// The verdict on an answer to a challenge, its hint and the way to the next one.

import { challenges as progress } from "../storage.js";
import { copyText, find, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";

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
function mount(root, host) {
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
  on.addEventListener("click", () => host.send({ open: shown.next }));
  return { draw };
}

defineWidget("challenge", mount);
