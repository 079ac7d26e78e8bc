/**
 * Sampling one token: the cumulative distribution from 0 to 1, and the random number.
 * @typedef {object} Draw
 * @property {string} [text]  the sentence above it; without it, the widget is hidden
 * @property {[number, string, boolean][]} [pieces]  each piece's end in 0..1, description, and whether it is several tokens
 * @property {number} [number]  the random number, in 0..1
 * @property {number} [place]  index of the piece on which the number falls
 * @property {string} [mark]  the number's label
 */

import { find, make, setCount, setText } from "./dom.js";
import { defineWidget } from "./runtime.js";

defineWidget("draw", (root) => {
  const strip = find(root, ".gb-pieces");
  const arrow = find(root, ".gb-fell");
  const says = find(root, ".gb-ends p");
  const boxes = /** @type {HTMLCollectionOf<HTMLElement>} */ (strip.children);
  /** @type {[number, string, boolean][]} */ let pieces = [];
  let drawn = 0;
  let described = -1; // the piece whose description is shown; -1 for the drawn one

  /** @param {number} i */
  function tell(i) {
    described = i;
    [...boxes].forEach((box, j) => box.classList.toggle("gb-told", i === j));
    setText(says, pieces[i < 0 ? drawn : i]?.[1] ?? "");
  }

  /** @param {Draw} data */
  function draw({ text = "", pieces: given = [], number = 0, place = 0, mark = "" }) {
    root.hidden = !text;
    if (!text) return;
    [pieces, drawn] = [given, place];
    setText(find(root, ".gb-says"), text);
    root.classList.toggle("gb-no-strip", pieces.length === 0);
    strip.setAttribute("aria-label", `${text} ${mark}`);
    setCount(strip, pieces.length, () => make("i"));
    pieces.forEach(([end, , isSeveral], i) => {
      const width = end - (pieces[i - 1]?.[0] ?? 0);
      boxes[i].style.width = `${100 * width}%`;
      boxes[i].style.setProperty("--p", Math.min(1, 1.6 * width).toFixed(3));
      boxes[i].classList.toggle("gb-drawn", i === drawn);
      boxes[i].classList.toggle("gb-several", isSeveral);
    });
    arrow.style.setProperty("--at", `${100 * number}%`);
    setText(find(arrow, "span"), mark);
    tell(-1);
  }

  strip.addEventListener("pointermove", ({ target }) => tell([...boxes].findIndex((box) => box === target)));
  for (const end of ["pointerleave", "blur"]) strip.addEventListener(end, () => tell(-1));
  strip.addEventListener("keydown", (event) => {
    const from = described < 0 ? drawn : described;
    const last = boxes.length - 1;
    const to = { ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(last, from + 1), Home: 0, End: last, Escape: -1 }[event.key];
    if (to === undefined) return;
    tell(to);
    setText(find(root, ".gb-spoken"), says.textContent ?? "");
    event.preventDefault();
  });
  return { draw };
});
