// An image of numbers: one row per token, one column per token or number, with labels, frames and hit testing.

import { clipped, picture, sizedContext, stroke, theme, write } from "./canvas.js";

/**
 * @typedef {{rows: number, columns: number, at: (row: number, column: number) => number, scale: number, signed: boolean}} Numbers
 *   at: returns a number in 0..scale, or -scale..scale if signed; NaN leaves the cell empty
 * @typedef {ReturnType<typeof matrixLayout>} Layout
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

/** Returns the cells' origin (side, top), a cell's size (wide, cell), and the total size, in px. @param {number} rows @param {number} columns @param {boolean} tokens whether the columns are tokens @param {number} room px */
export function matrixLayout(rows, columns, tokens, room) {
  const side = Math.min(TOKEN_ROOM, room / 4);
  const top = tokens ? side : 18;
  const left = room - side;
  const cell = Math.max(2, Math.min(26, left / Math.max(rows, tokens ? columns : 1)));
  const wide = tokens ? cell : Math.max(2, Math.min(14, left / columns));
  return { side, top, wide, cell, width: side + wide * columns + 2, height: top + cell * rows + 2 };
}

/**
 * Sizes the canvas, draws on it, and returns the layout of the cells.
 * @param {HTMLCanvasElement} canvas @param {HTMLCanvasElement} image  one pixel per number
 * @param {string[]} rowLabels @param {string[] | null} columnLabels  null if the columns are not tokens
 * @param {[row: number, column: number]} selected  column: -1 for none @param {number} room px
 */
export function drawMatrix(canvas, image, rowLabels, columnLabels, [row, column], room) {
  const { width: columns, height: rows } = image;
  const layout = matrixLayout(rows, columns, columnLabels !== null, room);
  const { side, top, wide, cell } = layout;
  const { line, text, mono } = theme(canvas, ["line", "text", "mono"]);
  const ctx = sizedContext(canvas, layout.width, layout.height);
  ctx.imageSmoothingEnabled = false;
  ctx.textBaseline = "middle";
  ctx.drawImage(image, side, top, wide * columns, cell * rows);
  stroke(ctx, [side - 0.5, top - 0.5, wide * columns + 1, cell * rows + 1], line, 1);

  /** @param {string} label @param {boolean} strong @param {number} room @param {number} x @param {number} y @param {CanvasTextAlign} align */
  const add = (label, strong, room, x, y, align) => {
    ctx.font = `${strong ? "600 " : ""}${LABEL}px ${mono}`;
    write(ctx, clipped(ctx, label, room), x, y, { font: ctx.font, colour: text, align });
  };
  for (const i of shownLabels(rows, cell, row)) add(rowLabels[i], i === row, side - 8, side - 6, top + (i + 0.5) * cell, "right");
  ctx.rotate(-Math.PI / 2);
  if (columnLabels) for (const i of shownLabels(columns, wide, column)) add(columnLabels[i], i === column, top - 8, 6 - top, side + (i + 0.5) * wide, "left");
  ctx.rotate(Math.PI / 2);
  stroke(ctx, [side - 0.5, top + row * cell - 0.5, wide * columns + 1, cell + 1], text, 1);
  if (column >= 0) stroke(ctx, [side + column * wide - 1, top + row * cell - 1, wide + 2, cell + 2], text, 2);
  return layout;
}

/** Returns the row and column under the pointer, with column -1 for a row label, or null outside the rows. @param {Layout} layout @param {MouseEvent} event */
export function cellAt({ side, top, wide, cell, width, height }, { offsetX, offsetY }) {
  if (offsetY < top || offsetY >= height - 2 || offsetX >= width - 2) return null;
  return [Math.floor((offsetY - top) / cell), Math.max(-1, Math.floor((offsetX - side) / wide))];
}
