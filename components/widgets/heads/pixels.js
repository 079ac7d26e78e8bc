// Builds the images for all heads from the received pixel rows.

/**
 * Converts pixel rows, each with row + 1 levels per head, to one image per head.
 * @param {Uint8Array} data the rows in order
 * @param {number} count number of heads
 * @param {number} side a picture's side
 * @returns {Uint8Array[]} side x side levels for each head; 0 above the diagonal
 */
export function headPictures(data, count, side) {
  const pictures = Array.from({ length: count }, () => new Uint8Array(side ** 2));
  let at = 0;
  for (let row = 0; at < data.length; row += 1) {
    for (const levels of pictures) {
      levels.set(data.subarray(at, at + row + 1), row * side);
      at += row + 1;
    }
  }
  return pictures;
}

/** @param {Uint8Array[]} parts */
export function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const [GAP, EDGE, BESIDE, TALLEST] = [4, 26, 360, 560]; // px: gap between cells, margin for the numbers, room for the enlarged head, maximum total height

/**
 * Computes the positions of the cells in a grid of layers x heads, in px.
 * @param {number} room width in px @param {number} layers @param {number} heads
 */
export function gridLayout(room, layers, heads) {
  const across = (room - (room > 700 ? BESIDE : 0) - EDGE) / heads;
  let cell = Math.max(14, Math.min(84, Math.floor(Math.min(across, Math.max(14, TALLEST / layers)))));
  if (EDGE + cell * heads > room) cell = Math.max(8, Math.floor((room - EDGE) / heads));
  return { edge: EDGE, cell, inner: cell - (cell > 24 ? GAP : 1), width: EDGE + cell * heads, height: EDGE + cell * layers };
}
