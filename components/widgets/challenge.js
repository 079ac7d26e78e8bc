// The verdict on an answer to a challenge, its hint and the way to the next one.

import { challenges as progress } from "../storage.js";
import { copyFrom, find, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";

defineWidget("challenge", (root, host) => {
  const hint = find(root, "details", HTMLDetailsElement);
  const [again, link, on, standing] = [".gb-again", ".gb-copy-link", ".gb-on", ".gb-standing"].map((name) => find(root, name));
  /** @type {Record<string, any>} */ let shown = {}; // see `draw_foot`

  /** @param {Record<string, any>} data */
  function draw(data) {
    if (data.open !== shown.open) hint.open = false;
    shown = data;
    root.hidden = !data.open;
    if (!data.open) return;
    const solved = data.solved === true;
    root.classList.toggle("gb-solved", solved);
    standing.dataset.verdict = solved ? "right" : data.tried ? "wrong" : "none";
    setText(standing, data.verdict ?? "");
    setText(find(root, ".gb-learned"), solved ? (data.learned ?? "") : "");
    setText(find(hint, "summary"), t("challenges.hint"));
    setText(find(hint, "p"), data.hint ?? "");
    hint.hidden = solved;
    setText(again, t("challenges.again"));
    setText(link, t("share.link"));
    setText(on, `${t("challenges.next")} →`);
    on.hidden = !data.next;
    if (solved) progress.keep(data.open, 2, data.score);
    const best = progress.read().best[data.open];
    setText(find(root, ".gb-attempts"), [data.attempts, best ? t("challenges.record", { n: best }) : ""].filter(Boolean).join(" · "));
  }

  again.addEventListener("click", () => host.send({ again: true }));
  link.addEventListener("click", () => copyFrom(link, new URL(`?challenge=${shown.open}`, location.href).href));
  on.addEventListener("click", () => host.send({ open: shown.next }));
  return { draw };
});
