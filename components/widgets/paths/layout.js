// Layout of the nodes and ribbons in the concept flow.

const ROW = 30; // height of the smallest node in px
const GAP = 10; // px between two nodes
const WIDTH_ALL = 150; // total width in px of all ribbons into the target

/**
 * @typedef {{y: number, height: number}} Place  a node's middle and height
 * @typedef {{column: number, from: number, to: number, width: number}} Band  its ends' middles and its width, in px
 */

/**
 * @param {number[][]} adds  contributions of each column's nodes to the logit
 * @param {[column: number, from: number, to: number, size: number][]} edges  between neighbouring columns
 * @returns {{places: Place[][], bands: Band[], writes: Band[], height: number}}  writes: bands from the last column into the target
 */
export function arrange(adds, edges) {
  const last = adds.length - 1;
  const total = adds[last].reduce((sum, each) => sum + Math.abs(each), 0) || 1;
  const unit = WIDTH_ALL / total;
  const sizes = adds.map((column) => column.map((each) => Math.max(ROW, Math.abs(each) * unit + 8)));
  const tall = (/** @type {number[]} */ column) => column.reduce((sum, size) => sum + size + GAP, -GAP);
  const height = Math.max(...sizes.map(tall));
  const places = sizes.map((column) => {
    let y = (height - tall(column)) / 2;
    return column.map((size) => {
      const place = { y: y + size / 2, height: size };
      y += size + GAP;
      return place;
    });
  });
  const widths = edges.map(([, , , size]) => Math.max(0, size) * unit);

  /**
   * Returns the middle of each edge at one end, placing edges side by side at their node.
   * @param {(edge: [number, number, number, number]) => string} at
   * @param {(edge: [number, number, number, number]) => Place} place
   */
  function shared(at, place) {
    /** @type {Map<string, number>} */ const sums = new Map();
    edges.forEach((edge, e) => sums.set(at(edge), (sums.get(at(edge)) ?? 0) + widths[e]));
    /** @type {Map<string, number>} */ const used = new Map();
    return edges.map((edge, e) => {
      const begun = used.get(at(edge)) ?? 0;
      used.set(at(edge), begun + widths[e]);
      return place(edge).y - (sums.get(at(edge)) ?? 0) / 2 + begun + widths[e] / 2;
    });
  }

  const starts = shared(([column, from]) => `${column} ${from}`, ([column, from]) => places[column][from]);
  const ends = shared(([column, , to]) => `${column} ${to}`, ([column, , to]) => places[column + 1][to]);
  const into = adds[last].map((each) => Math.abs(each) * unit);
  let y = height / 2 - into.reduce((sum, each) => sum + each, 0) / 2;
  const writes = into.map((width, i) => {
    y += width;
    return { column: last, from: places[last][i].y, to: y - width / 2, width };
  });
  return { places, bands: edges.map(([column], e) => ({ column, from: starts[e], to: ends[e], width: widths[e] })), writes, height };
}
