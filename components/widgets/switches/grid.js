// Maps the switches' places in the grid to parts of a model. A part is a key such as "h3.2", "a3" or "f3". Row 0 stands
// for whole columns and column 0 for whole layers; the other columns are attention, each head, and the feed-forward
// network.

/** @typedef {{n_layer: number, n_head: number}} Size */
/** @typedef {[number, number]} Place row and column */

/** Returns the last column. @param {Size} size */
export const lastColumn = ({ n_head }) => n_head + 2;

/** Returns whether a place has a switch, which head numbers do not. @param {Size} size @param {Place} place */
export const hasSwitch = (size, [row, column]) => row > 0 || column === 1 || column === lastColumn(size);

/** Returns whether the switch affects a single head. @param {Size} size @param {Place} place */
export const isHead = (size, [row, column]) => row > 0 && column > 1 && column < lastColumn(size);

/** @param {Size} size @param {Place} place @returns {string[]} */
export function partsOf(size, [row, column]) {
  const kind = column === 1 ? "a" : "f";
  if (row === 0) return Array.from({ length: size.n_layer }, (_, layer) => kind + layer);
  if (column === 0) return [`a${row - 1}`, `f${row - 1}`];
  return isHead(size, [row, column]) ? [`h${row - 1}.${column - 2}`] : [kind + (row - 1)];
}

/**
 * Returns the place after an arrow key, skipping places without a switch.
 * @param {Size} size @param {Place} from @param {number} rows @param {number} columns @returns {Place}
 */
export function moved(size, from, rows, columns) {
  const last = lastColumn(size);
  const row = Math.max(0, Math.min(size.n_layer, from[0] + rows));
  const step = row === 0 && columns ? columns * last : columns;
  const column = Math.max(row === 0 ? 1 : 0, Math.min(last, from[1] + step));
  return hasSwitch(size, [row, column]) ? [row, column] : from;
}

/** Parses factors by part from text such as "h3.2=0,a1=0.5". @param {string} edits */
export const readFactors = (edits) =>
  new Map(edits.split(",").filter(Boolean).map((edit) => /** @type {[string, number]} */ ([edit.split("=")[0], Number(edit.split("=")[1])])));

/** @param {Map<string, number>} factors */
export const writeFactors = (factors) => [...factors].map(([part, factor]) => `${part}=${factor}`).join(",");
