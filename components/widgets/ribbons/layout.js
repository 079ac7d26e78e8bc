// Layout of the nodes and ribbons in a flow.

const ROW = 30; // height of the smallest node in px
const GAP = 8; // px between two nodes

/**
 * @typedef {[column: number, from: number, to: number, width: number]} Edge  between neighbouring columns; width in px
 * @typedef {{y: number, height: number}} Place  a node's middle and height
 * @typedef {{from: number, to: number, width: number}} Ribbon  y of the middle at both ends, and the width, in px
 */

/**
 * @param {number[][]} sizes  px of ribbons at each node, by column
 * @param {Edge[]} edges
 * @returns {{places: Place[][], ribbons: Ribbon[], writes: Ribbon[], height: number}}  writes: from the last column into the target
 */
export function arrange(sizes, edges) {
  const columns = sizes.map((column) => column.map((size) => Math.max(ROW, size + 8)));
  const tall = (/** @type {number[]} */ column) => column.reduce((sum, size) => sum + size + GAP, -GAP);
  const height = Math.max(...columns.map(tall));
  const places = columns.map((column) => {
    let y = (height - tall(column)) / 2;
    return column.map((size) => {
      const place = { y: y + size / 2, height: size };
      y += size + GAP;
      return place;
    });
  });

  /**
   * Returns the middle of each edge at one end, placing edges side by side at their node.
   * @param {(edge: Edge) => [column: number, node: number]} at
   */
  function shared(at) {
    /** @type {Map<string, number>} */ const sums = new Map();
    edges.forEach((edge) => sums.set(`${at(edge)}`, (sums.get(`${at(edge)}`) ?? 0) + edge[3]));
    /** @type {Map<string, number>} */ const used = new Map();
    return edges.map((edge) => {
      const [column, node] = at(edge);
      const begun = used.get(`${at(edge)}`) ?? 0;
      used.set(`${at(edge)}`, begun + edge[3]);
      return places[column][node].y - (sums.get(`${at(edge)}`) ?? 0) / 2 + begun + edge[3] / 2;
    });
  }

  const starts = shared(([column, from]) => [column, from]);
  const ends = shared(([column, , to]) => [column + 1, to]);
  const into = sizes[sizes.length - 1];
  let y = height / 2 - into.reduce((sum, size) => sum + size, 0) / 2;
  const writes = into.map((width, i) => {
    y += width;
    return { from: places[places.length - 1][i].y, to: y - width / 2, width };
  });
  return { places, ribbons: edges.map(([, , , width], e) => ({ from: starts[e], to: ends[e], width })), writes, height };
}

/** Returns a ribbon's outline from x0 to x1. @param {Ribbon} ribbon @param {number} x0 @param {number} x1 */
export function outline({ from, to, width }, x0, x1) {
  const [half, bend] = [width / 2, (x0 + x1) / 2];
  const f = (/** @type {number} */ value) => value.toFixed(1);
  const edge = (/** @type {number} */ by) => [from + by, to + by].map(f);
  const [[a, b], [c, d]] = [edge(-half), edge(half)];
  return `M${f(x0)} ${a}C${f(bend)} ${a} ${f(bend)} ${b} ${f(x1)} ${b}V${d}C${f(bend)} ${d} ${f(bend)} ${c} ${f(x0)} ${c}Z`;
}
