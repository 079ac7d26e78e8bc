// A text, and the features that are active at one of its words.

import { bytes } from "./labels.js";
import { find, make, roving, setAll, setCount, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";

/**
 * @typedef {[layer: number, feature: number]} Place
 * @typedef {object} Features
 * @property {string[]} [tokens]
 * @property {number} [selected]  a position
 * @property {{place: Place, name: string, value: number, says: string}[]} [features]
 * @property {Place | null} [chosen]
 * @property {Record<string, string>} [tints]  tints by "layer.feature": base64 with one byte per token from `first` on
 * @property {number} [first]
 */

defineWidget("features", (root, host) => {
  const [text, list] = [find(root, ".gb-features-text"), find(root, ".gb-features-list")];
  const words = /** @type {HTMLCollectionOf<HTMLElement>} */ (text.children);
  const rows = /** @type {HTMLCollectionOf<HTMLElement>} */ (list.children);
  /** @type {Features} */ let shown = {};
  /** @type {Place | null} */ let pointed = null;
  let inSight = ""; // the selected word to which the text was last scrolled

  /** Tints the text for the feature under the pointer, or else for the chosen feature. */
  function tint() {
    const place = pointed ?? shown.chosen ?? shown.features?.[0]?.place;
    const data = place && shown.tints?.[place.join(".")];
    const levels = data ? bytes(data) : [];
    const { first = 0 } = shown;
    [...words].forEach((word, i) => {
      const level = (levels[i - first] ?? 0) / 255;
      if (level) word.style.setProperty("--tint", level.toFixed(3));
      else word.style.removeProperty("--tint");
    });
  }

  function makeRow() {
    const track = make("span", "gb-track", [make("span", "", [make("i", "gb-after")])]);
    return make("div", "", [make("span", "gb-feature-name"), track], { role: "option", tabindex: "-1" });
  }

  /** @param {Features} data */
  function draw(data) {
    shown = data;
    const { tokens = [], selected = -1, features = [], chosen } = data;
    text.setAttribute("aria-label", t("concepts.text"));
    list.setAttribute("aria-label", t("concepts.list"));
    setCount(text, tokens.length, () => make("span", "", "", { role: "option", tabindex: "-1" }));
    tokens.forEach((token, i) => {
      setText(words[i], token);
      words[i].setAttribute("aria-selected", String(i === selected));
    });
    enterText(selected);
    scroll(selected);
    setCount(list, features.length, makeRow);
    features.forEach(({ place, name, value, says }, i) => {
      const [label, track] = /** @type {HTMLCollectionOf<HTMLElement>} */ (rows[i].children);
      setText(label, name);
      track.style.setProperty("--after", value.toFixed(4));
      setAll(rows[i], { title: says, "aria-label": says, "aria-selected": String(place.join() === chosen?.join()) });
    });
    enter();
    tint();
  }

  /** Scrolls the text to the selected word if it is longer than its box. @param {number} selected */
  function scroll(selected) {
    const word = words[selected];
    const place = `${selected} of ${words.length}`;
    if (!word || place === inSight) return;
    inSight = place;
    const [top, bottom] = [word.offsetTop, word.offsetTop + word.offsetHeight];
    if (top < text.scrollTop || bottom > text.scrollTop + text.clientHeight) text.scrollTop = top - text.clientHeight / 2;
  }

  /** @param {EventTarget | null} target */
  function look(target) {
    const index = [...rows].findIndex((row) => target instanceof Node && row.contains(target));
    pointed = shown.features?.[index]?.place ?? null;
    tint();
  }

  const enterText = roving(text, words, (index) => host.send({ index }, "input"));
  for (const type of ["pointerover", "focusin"]) list.addEventListener(type, ({ target }) => look(target));
  for (const type of ["pointerleave", "focusout"]) list.addEventListener(type, () => look(null));
  const enter = roving(list, rows, (i) => {
    const feature = shown.features?.[i];
    if (feature) host.send({ place: feature.place });
  });
  return { draw };
});
