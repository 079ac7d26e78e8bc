// Places a button over each row in a bar chart, so that the whole row responds to clicks, arrow keys, Enter and Space. A
// click still counts if the chart is redrawn between pointer down and up.

import { make, makeButton, setCount } from "../dom.js";
import { roving } from "../roving.js";

/**
 * @typedef {HTMLElement & {layout: any, data: any, _fullLayout: any, on: (event: string, listener: (event: any) => void) => void}} Plot
 *
 * @typedef {object} Rows
 * @property {string} name  the chart's name for screen readers
 * @property {string[]} names  the rows' names from top to bottom, for screen readers and as tooltips
 * @property {object[]} sent  each row's payload
 * @property {object} common  payload common to all rows
 */

/** @param {Plot} plot @param {(payload: object) => void} send */
export function createRows(plot, send) {
  const list = make("div", "gb-rows", "", { role: "group" });
  const buttons = /** @type {HTMLCollectionOf<HTMLButtonElement>} */ (list.children);
  const enter = roving(list, buttons, (row) => rows && send({ ...rows.common, ...rows.sent[row] }));
  /** @type {Rows | null} */ let rows = null;
  let placed = "";

  /** @param {Rows | null} given */
  function draw(given) {
    rows = given;
    list.hidden = !rows;
    if (!rows) return;
    if (!list.isConnected) plot.after(list);
    list.setAttribute("aria-label", rows.name);
    setCount(list, rows.names.length, () => makeButton("", "", { tabindex: "-1" }));
    rows.names.forEach((name, i) => buttons[i].setAttribute("aria-label", name));
    enter();
  }

  /** Aligns the buttons with the bars, whose position depends on the legend's height. */
  function place() {
    if (!rows || !plot._fullLayout) return;
    const { t, h } = plot._fullLayout._size;
    const tall = h / rows.names.length;
    const shape = `${t} ${tall} ${buttons.length}`;
    if (shape === placed) return;
    placed = shape;
    [...buttons].forEach((button, i) => Object.assign(button.style, { top: `${t + i * tall}px`, height: `${tall}px` }));
  }

  list.addEventListener("pointerover", ({ target }) => {
    if (target instanceof HTMLElement) target.title = target.getAttribute("aria-label") ?? "";
  });
  return { draw, place };
}
