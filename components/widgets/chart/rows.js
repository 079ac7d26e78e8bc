// A button over each row of a bar chart: the whole row is clickable, also with the arrow keys, Enter and Space. A click
// survives a redraw between pointer down and up.

import { make, makeButton, modified, setCount } from "../dom.js";

/**
 * @typedef {HTMLElement & {layout: any, data: any, _fullLayout: any, on: (event: string, listener: (event: any) => void) => void}} Plot
 *
 * @typedef {object} Rows
 * @property {string} name  of the chart, for screen readers
 * @property {string[]} names  of the rows from the top, for screen readers and as tooltips
 * @property {object[]} sent  payload of each row
 * @property {object} common  payload of all rows
 */

/** @param {Plot} plot @param {(payload: object) => void} send */
export function createRows(plot, send) {
  const list = make("div", "gb-rows", "", { role: "group" });
  const buttons = /** @type {HTMLCollectionOf<HTMLButtonElement>} */ (list.children);
  const indexOf = (/** @type {EventTarget | null} */ target) => [...buttons].findIndex((button) => button === target);
  /** @type {Rows | null} */ let rows = null;
  let current = 0;
  let placed = "";

  /** @param {number} to */
  function turn(to) {
    buttons[current]?.setAttribute("tabindex", "-1");
    current = Math.max(0, Math.min(buttons.length - 1, to));
    buttons[current]?.setAttribute("tabindex", "0");
  }

  /** @param {Rows | null} given */
  function draw(given) {
    rows = given;
    list.hidden = !rows;
    if (!rows) return;
    if (!list.isConnected) plot.after(list);
    list.setAttribute("aria-label", rows.name);
    setCount(list, rows.names.length, () => makeButton("", "", { tabindex: "-1" }));
    rows.names.forEach((name, i) => buttons[i].setAttribute("aria-label", name));
    turn(current);
  }

  /** Aligns the buttons with the bars, whose place depends on the legend's height. */
  function place() {
    if (!rows || !plot._fullLayout) return;
    const { t, h } = plot._fullLayout._size;
    const tall = h / rows.names.length;
    const shape = `${t} ${tall} ${buttons.length}`;
    if (shape === placed) return;
    placed = shape;
    [...buttons].forEach((button, i) => Object.assign(button.style, { top: `${t + i * tall}px`, height: `${tall}px` }));
  }

  list.addEventListener("click", ({ target }) => {
    const row = indexOf(target);
    if (rows && row >= 0) send({ ...rows.common, ...rows.sent[row] });
  });
  list.addEventListener("pointerover", ({ target }) => {
    if (target instanceof HTMLElement) target.title = target.getAttribute("aria-label") ?? "";
  });
  list.addEventListener("focusin", ({ target }) => turn(indexOf(target)));
  list.addEventListener("keydown", (event) => {
    const to = { ArrowUp: current - 1, ArrowDown: current + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || modified(event)) return;
    turn(to);
    buttons[current].focus();
    event.preventDefault();
  });
  return { draw, place };
}
