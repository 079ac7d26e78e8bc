// Layout of the lines in a tree of branches.

/**
 * @typedef {object} Lane
 * @property {number | null} parent  index of its parent lane
 * @property {number} start  position of its fork, in tokens
 * @property {number} end  position of its end, in tokens
 * @property {number} reached  last position that the current text shares with it; below `start` if there is none
 * @property {boolean} here  whether the current text ends on it
 * @property {string} label
 * @property {object} sent  payload sent when it is chosen
 */

export const ROW = 28; // px
const [EDGE, BEND] = [10, 8]; // px

/** Returns a row's vertical middle in px. @param {number} row */
const y = (row) => ROW * (row + 0.5);

/** Returns a function that maps a token position to px. @param {Lane[]} lanes @param {number} width */
function scale(lanes, width) {
  const deepest = Math.max(1, ...lanes.map((lane) => lane.end));
  return (/** @type {number} */ depth) => EDGE + (depth / deepest) * (width - 2 * EDGE);
}

/**
 * Returns three paths per lane: the whole lane, the part that the text follows, and the tip; "" if one is missing.
 * @param {Lane[]} lanes @param {number} width px
 */
export function lanePaths(lanes, width) {
  const x = scale(lanes, width);
  return lanes.map((lane, row) => {
    const to = (/** @type {number} */ end) => {
      if (lane.parent === null) return `M${x(0)} ${y(row)}H${x(end)}`;
      const from = x(lane.start);
      const bend = Math.min(BEND, Math.max(0, x(lane.end) - from));
      const corner = `Q${from} ${y(row)} ${from + bend} ${y(row)}`;
      return `M${from} ${y(lane.parent)}V${y(row) - BEND}${corner}H${Math.max(from + bend, x(end))}`;
    };
    return {
      whole: to(lane.end),
      reached: lane.reached >= lane.start ? to(lane.reached) : "",
      tip: lane.here ? `M${x(Math.max(lane.reached, lane.start))} ${y(row)}h0` : "",
    };
  });
}
