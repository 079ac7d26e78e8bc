// The size of the letters in the box: the largest at which the text fits without scrolling.

const LINE = { px: 44, smallest: 36 }; // a text in a single line
const SIZES = [
  { name: "two", px: 44, lines: 2 },
  { name: "medium", px: 32, lines: 3 },
];
const LINE_ON_PHONES = { px: 24, smallest: 24 };
const SIZES_ON_PHONES = [
  { name: "two", px: 24, lines: 3 },
  { name: "medium", px: 22, lines: 4 },
];
const WRAPPED = 1.08; // lines end before the box does
const LONGEST = 600; // characters that are measured

/**
 * Returns the name of the size, as in composer.css, and the size of a single line in px.
 * @param {string} text @param {number} width the box's inner width in px @param {boolean} isPhone
 * @param {(line: string) => number} measure returns a line's width in units of the size of its letters
 */
export function fit(text, width, isPhone, measure) {
  const { px, smallest } = isPhone ? LINE_ON_PHONES : LINE;
  if (text.length > LONGEST) return { name: "small", px };
  const lengths = text.split("\n").map(measure);
  const fitting = Math.min(px, Math.floor(width / Math.max(1, lengths[0])));
  if (lengths.length === 1 && fitting >= smallest) return { name: "line", px: fitting };
  const count = (size = 0) => lengths.reduce((sum, ems) => sum + Math.max(1, Math.ceil((WRAPPED * ems * size) / width)), 0);
  return { name: (isPhone ? SIZES_ON_PHONES : SIZES).find((size) => count(size.px) <= size.lines)?.name ?? "small", px };
}

/** Returns a function that measures a line in units of the size of its letters. @param {string} family */
export function ruler(family) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  context.fontKerning = "none";
  context.font = `100px ${family}`;
  return (/** @type {string} */ line) => context.measureText(line).width / 100;
}
