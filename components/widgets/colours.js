// The theme's colours, colour maps for numbers, and a colour for each head.

/** Returns a colour or typeface from the theme. @param {Element} root @param {string} name */
export const themed = (root, name) => getComputedStyle(root).getPropertyValue(`--gb-${name}`).trim();

/**
 * Returns a head's hue; hues are evenly spaced and avoid the selection's orange.
 * @param {number} head @param {number} count number of heads @param {boolean} dark
 */
export function headColour(head, count, dark) {
  const hue = (100 + (275 * (head + 0.5)) / count) % 360;
  return `oklch(${dark ? 0.77 : 0.56} 0.14 ${hue.toFixed(1)})`;
}

/** Packs a pixel of ImageData into one number. @param {number} r @param {number} g @param {number} b */
const pixel = (r, g, b) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** Interpolates 256 pixels through the given colours, each [r, g, b]. @param {number[][]} points */
export function between(points) {
  const last = points.length - 1;
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * last;
    const i = Math.min(last - 1, Math.floor(at));
    const [r, g, b] = points[i].map((from, c) => Math.round(from + (points[i + 1][c] - from) * (at - i)));
    return pixel(r, g, b);
  });
}

/** @type {CanvasRenderingContext2D | null} */
let probe = null;

/** Converts a CSS colour to [r, g, b]. @param {string} colour */
function rgb(colour) {
  probe ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  if (!probe) throw new Error("no canvas");
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

/** Returns the 256 pixels of the diverging map, from negative to positive. @param {Element} root */
export const divergingMap = (root) => between(Array.from({ length: 9 }, (_, i) => rgb(themed(root, `div-${i}`))));

/** Interpolates 256 pixels from the surface colour to another. @param {Element} root @param {string} colour */
export const mapTo = (root, colour) => between([themed(root, "surface"), colour].map(rgb));
