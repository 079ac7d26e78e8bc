// An image of numbers: one row per token, one column per token or number, with labels, frames and hit testing.

import { clipped, picture, sizedContext, themed } from "./canvas.js";

/**
 * @typedef {object} Numbers
 * @property {number} rows
 * @property {number} columns
 * @property {(row: number, column: number) => number} at  in 0..scale, or -scale..scale if signed; NaN leaves the cell empty
 * @property {number} scale
 * @property {boolean} signed
 *
 * @typedef {object} Matrix
 * @property {HTMLCanvasElement} image  one pixel per number
 * @property {number} rows
 * @property {number} columns
 * @property {string[]} rowLabels
 * @property {string[] | null} columnLabels  null if the columns are not tokens
 * @property {number} row  the selected row
 * @property {number} column  the selected column; -1 for none
 *
 * @typedef {{side: number, top: number, wide: number, cell: number, width: number, height: number, rows: number, columns: number}} Layout
 *   px: the cells' origin (side, top), a cell's size (wide, cell), and the total size
 */

const TOKEN_ROOM = 84; // px for the tokens on the left
const LABEL = 11; // px for a label

/** @param {Numbers} numbers @param {Uint32Array} map 256 pixels */
export function numbersPicture({ rows, columns, at, scale, signed }, map) {
  return picture(columns, rows, (i) => {
    const share = Math.max(signed ? -1 : 0, Math.min(1, at(Math.floor(i / columns), i % columns) / scale));
    return Number.isNaN(share) ? 0 : map[Math.round(signed ? 127.5 + 127.5 * share : 255 * share)];
  });
}

/**
 * Returns the indices of the visible labels: every n-th and the selected one, which displaces labels too close to it.
 * @param {number} count @param {number} step px @param {number} selected -1 for none
 */
export function shownLabels(count, step, selected) {
  const every = Math.ceil(LABEL / step);
  const all = Array.from({ length: count }, (_, i) => i);
  return all.filter((i) => i === selected || (i % every === 0 && (selected < 0 || Math.abs(i - selected) >= every)));
}

/** @param {number} rows @param {number} columns @param {boolean} tokens whether the columns are tokens @param {number} room px @param {number} largest px @returns {Layout} */
export function matrixLayout(rows, columns, tokens, room, largest) {
  const side = Math.min(TOKEN_ROOM, room / 4);
  const top = tokens ? side : 18;
  const left = Math.min(room, largest) - side;
  const cell = Math.max(2, Math.min(26, left / Math.max(rows, tokens ? columns : 1)));
  const wide = tokens ? cell : Math.max(2, Math.min(14, left / columns));
  return { side, top, wide, cell, width: side + wide * columns + 2, height: top + cell * rows + 2, rows, columns };
}

/**
 * Sizes the canvas, draws on it, and returns the layout of the cells.
 * @param {HTMLCanvasElement} canvas @param {Matrix} matrix @param {number} room px @param {number} largest px
 */
export function drawMatrix(canvas, matrix, room, largest) {
  const { image, rows, columns, rowLabels, columnLabels, row, column } = matrix;
  const layout = matrixLayout(rows, columns, columnLabels !== null, room, largest);
  const { side, top, wide, cell } = layout;
  const ctx = sizedContext(canvas, layout.width, layout.height);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(image, side, top, wide * columns, cell * rows);
  ctx.strokeStyle = themed(canvas, "line");
  ctx.strokeRect(side - 0.5, top - 0.5, wide * columns + 1, cell * rows + 1);
  const [text, mono] = ["text", "mono"].map((name) => themed(canvas, name));
  ctx.textBaseline = "middle";

  /** @param {string} label @param {boolean} strong @param {number} length @param {number} x @param {number} y */
  const write = (label, strong, length, x, y) => {
    ctx.fillStyle = text;
    ctx.font = `${strong ? "600 " : ""}${LABEL}px ${mono}`;
    ctx.fillText(clipped(ctx, label, length), x, y);
  };
  ctx.textAlign = "right";
  for (const i of shownLabels(rows, cell, row)) write(rowLabels[i], i === row, side - 8, side - 6, top + (i + 0.5) * cell);
  ctx.textAlign = "left";
  for (const i of columnLabels ? shownLabels(columns, wide, column) : []) {
    ctx.save();
    ctx.translate(side + (i + 0.5) * wide, top - 6);
    ctx.rotate(-Math.PI / 2);
    write(columnLabels?.[i] ?? "", i === column, top - 8, 0, 0);
    ctx.restore();
  }
  ctx.strokeStyle = text;
  if (row >= 0) ctx.strokeRect(side - 0.5, top + row * cell - 0.5, wide * columns + 1, cell + 1);
  ctx.lineWidth = 2;
  if (row >= 0 && column >= 0) ctx.strokeRect(side + column * wide - 1, top + row * cell - 1, wide + 2, cell + 2);
  return layout;
}

/**
 * Returns the row and column under the pointer, with column -1 for a row label, or null outside the rows.
 * @param {HTMLCanvasElement} canvas @param {Layout | null} layout @param {MouseEvent} event
 * @returns {[number, number] | null}
 */
export function cellAt(canvas, layout, event) {
  if (!layout) return null;
  const box = canvas.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - layout.side) / layout.wide);
  const row = Math.floor((event.clientY - box.top - layout.top) / layout.cell);
  if (row < 0 || row >= layout.rows || column >= layout.columns || event.clientX < box.left) return null;
  return [row, Math.max(-1, column)];
}
