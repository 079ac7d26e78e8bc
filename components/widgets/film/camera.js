// Where the camera of the film looks.

/** @typedef {import("./scene.js").Box} Box */

/** The smallest box around some parts. @param {Record<string, Box>} boxes @param {string[]} parts @returns {Box} */
export function around(boxes, parts) {
  const found = parts.flatMap((part) => boxes[part] ?? []);
  const x = Math.min(...found.map((box) => box.x));
  const y = Math.min(...found.map((box) => box.y));
  const right = Math.max(...found.map((box) => box.x + box.w));
  const bottom = Math.max(...found.map((box) => box.y + box.h));
  return { x, y, w: right - x, h: bottom - y };
}

/** The box widened to an aspect ratio, with a margin. @param {Box} box @param {number} aspect width over height @param {number} [least] height */
export function fitted({ x, y, w, h }, aspect, margin = 24, least = 0) {
  const [width, height] = [w + 2 * margin, Math.max(least, h + 2 * margin)];
  const [fullWidth, fullHeight] = [Math.max(width, height * aspect), Math.max(height, width / aspect)];
  return { x: x + w / 2 - fullWidth / 2, y: y + h / 2 - fullHeight / 2, w: fullWidth, h: fullHeight };
}
