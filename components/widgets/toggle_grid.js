/**
 * Rows and columns of switches.
 * @typedef {object} ToggleGrid
 * @property {string} [name]  the whole grid's name
 * @property {string[]} [rows]  labels beside the rows; a single row has none
 * @property {string[]} [columns]  labels above the columns; if missing, nothing is shown
 * @property {[number, number][]} [on]  row and column of each switch that is on
 * @property {[number, number][]} [marked]  row and column of each framed switch
 * @property {string} [cell]  a switch's name, with {row} and {column}
 */

import { find, make, makeButton } from "./dom.js";
import { MOVES } from "./roving.js";
import { defineWidget } from "./runtime.js";
import { fill } from "./text.js";

/** @type {import("./runtime.js").Mount} */
function mount(root, host) {
  let built = ""; // the names for which the buttons were made
  /** @type {HTMLButtonElement[][]} */ let buttons = [];

  /** @param {ToggleGrid} data */
  function draw({ name = "", rows = [], columns = [], on = [], marked = [], cell = "" }) {
    root.classList.toggle("gb-nothing", !columns.length);
    root.setAttribute("aria-label", name);
    const names = JSON.stringify([rows, columns, cell]);
    if (names !== built) build(rows, columns, cell);
    built = names;
    const has = (/** @type {[number, number][]} */ places, /** @type {number} */ row, /** @type {number} */ column) =>
      places.some(([r, c]) => r === row && c === column);
    buttons.forEach((line, row) =>
      line.forEach((button, column) => {
        button.setAttribute("aria-pressed", String(has(on, row, column)));
        button.classList.toggle("gb-marked", has(marked, row, column));
      }),
    );
  }

  /** @param {string[]} rows @param {string[]} columns @param {string} cell */
  function build(rows, columns, cell) {
    const single = rows.length === 1;
    root.style.setProperty("--columns", String(columns.length));
    root.classList.toggle("gb-single", single);
    root.replaceChildren();
    if (!single) root.append(make("span"), ...columns.map((column) => make("span", "", column)));
    buttons = rows.map((row, r) => {
      const line = columns.map((column, c) => {
        const title = fill(cell, { row, column });
        return makeButton("", single ? column : "", { "aria-label": title, title, "data-at": `${r},${c}` });
      });
      if (!single) root.append(make("span", "", row));
      root.append(...line);
      return line;
    });
  }

  /** @param {EventTarget | null} target @returns {[number, number] | null} */
  const placeOf = (target) =>
    target instanceof HTMLElement && target.dataset.at ? /** @type {[number, number]} */ (target.dataset.at.split(",").map(Number)) : null;

  root.addEventListener("click", ({ target }) => {
    const place = placeOf(target);
    if (!place) return;
    const button = find(root, `[data-at="${place}"]`);
    const on = button.getAttribute("aria-pressed") !== "true";
    // Don't wait for the response, so that a second click toggles it back.
    if (buttons.length > 1) button.setAttribute("aria-pressed", String(on));
    host.send({ row: place[0], column: place[1], on });
  });
  root.addEventListener("keydown", (event) => {
    const [place, move] = [placeOf(event.target), MOVES[event.key]];
    if (!place || !move) return;
    buttons[place[0] + move[0]]?.[place[1] + move[1]]?.focus();
    event.preventDefault();
  });
  return { draw };
}

defineWidget("toggle_grid", mount);
