// Canvases in device pixels, images made from numbers, and colours: of the theme and of numbers.

/** Returns a colour or typeface from the theme. @param {Element} root @param {string} name */
export const themed = (root, name) => getComputedStyle(root).getPropertyValue(`--gb-${name}`).trim();

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

/**
 * Sizes and clears a canvas, and returns a context that draws in CSS pixels.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
export function sizedContext(canvas, width, height) {
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = contextOf(canvas);
  context.scale(ratio, ratio);
  return context;
}

/** @param {HTMLCanvasElement} canvas */
export function contextOf(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("no canvas");
  return context;
}

/**
 * Returns an image with one pixel per number. colourAt: returns the pixel at an index, row by row; 0 is transparent.
 * @param {number} width @param {number} height @param {(index: number) => number} colourAt
 */
export function picture(width, height, colourAt) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = contextOf(canvas);
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i += 1) pixels[i] = colourAt(i);
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Truncates a text with … to a width in pixels. @param {CanvasRenderingContext2D} context @param {string} text @param {number} room */
export function clipped(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** @typedef {CanvasRenderingContext2D} Context */

/**
 * Paints a filled band that bends from one place to another.
 * @param {Context} ctx @param {[x: number, y: number, height: number]} from
 * @param {[x: number, y: number, height: number]} to @param {string} colour @param {number} alpha
 */
export function ribbon(ctx, [x0, y0, h0], [x1, y1, h1], colour, alpha) {
  const bend = (x0 + x1) / 2;
  ctx.globalAlpha = alpha;
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x0, y0 - h0 / 2);
  ctx.bezierCurveTo(bend, y0 - h0 / 2, bend, y1 - h1 / 2, x1, y1 - h1 / 2);
  ctx.lineTo(x1, y1 + h1 / 2);
  ctx.bezierCurveTo(bend, y1 + h1 / 2, bend, y0 + h0 / 2, x0, y0 + h0 / 2);
  ctx.fill();
  ctx.globalAlpha = 1;
}

/** @typedef {{font: string, colour: string, align?: CanvasTextAlign, alpha?: number}} Ink */

/** @param {Context} ctx @param {string} text @param {number} x @param {number} y @param {Ink} ink */
export function write(ctx, text, x, y, { font, colour, align = "left", alpha = 1 }) {
  ctx.font = font;
  ctx.textAlign = align;
  ctx.fillStyle = colour;
  ctx.globalAlpha = alpha;
  ctx.fillText(text, x, y);
  ctx.globalAlpha = 1;
}

/** Traces the path of a box with rounded corners. @param {Context} ctx @param {number} x @param {number} y @param {number} w @param {number} h @param {number} radius */
export function box(ctx, x, y, w, h, radius) {
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, radius);
}
