// Canvases in device pixels, images made from numbers, and colours: of the theme and of numbers.

/** Returns a colour or typeface from the theme. @param {Element} root @param {string} name */
export const themed = (root, name) => getComputedStyle(root).getPropertyValue(`--gb-${name}`).trim();

/** Returns colours and typefaces from the theme, by name. @param {Element} root @param {string[]} names @returns {Record<string, string>} */
export const theme = (root, names) => Object.fromEntries(names.map((name) => [name, themed(root, name)]));

/** Returns 256 pixels of ImageData that run evenly through CSS colours. @param {string[]} colours */
function mapThrough(colours) {
  const context = contextOf(Object.assign(document.createElement("canvas"), { width: 256, height: 1 }), { willReadFrequently: true });
  const gradient = context.createLinearGradient(0, 0, 256, 0);
  colours.forEach((colour, i) => gradient.addColorStop(i / (colours.length - 1), colour));
  context.fillStyle = gradient;
  context.fillRect(0, 0, 256, 1);
  return new Uint32Array(context.getImageData(0, 0, 256, 1).data.buffer);
}

/** Returns the diverging map, from negative to positive. @param {Element} root */
export const divergingMap = (root) => mapThrough(Array.from({ length: 9 }, (_, i) => themed(root, `div-${i}`)));

/** Returns the map from the surface colour to another. @param {Element} root @param {string} colour */
export const mapTo = (root, colour) => mapThrough([themed(root, "surface"), colour]);

/** Clears the canvas; the context draws in CSS pixels. @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
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

/** Places an element over a canvas, or hides it. @param {HTMLElement} node @param {Record<string, number | undefined> | undefined} box px */
export function frame(node, box) {
  node.hidden = !box;
  for (const [side, length] of Object.entries(box ?? {})) node.style.setProperty(side, `${length}px`);
}

/** @param {HTMLCanvasElement} canvas @param {CanvasRenderingContext2DSettings} [settings] */
export function contextOf(canvas, settings) {
  const context = canvas.getContext("2d", settings);
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
/** @typedef {string | number[]} Shape  a path in the notation of SVG, or a box: x, y, width, height, radius of its corners */

/** @param {Shape} shape */
function pathOf(shape) {
  if (typeof shape === "string") return new Path2D(shape);
  const [x, y, w, h, radius = 0] = shape;
  const path = new Path2D();
  path.roundRect(x, y, w, h, radius);
  return path;
}

/** @param {Context} ctx @param {Shape} shape @param {string} colour */
export function fill(ctx, shape, colour, alpha = 1) {
  ctx.globalAlpha = alpha;
  ctx.fillStyle = colour;
  if (typeof shape === "string" || shape[4]) ctx.fill(pathOf(shape));
  else ctx.fillRect(shape[0], shape[1], shape[2], shape[3]); // much faster, for pictures with thousands of them
  ctx.globalAlpha = 1;
}

/** @param {Context} ctx @param {Shape} shape @param {string} colour @param {number} width */
export function stroke(ctx, shape, colour, width, alpha = 1) {
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.stroke(pathOf(shape));
  ctx.globalAlpha = 1;
}

/** @param {number} x @param {number} y @param {number} radius @returns {Shape} */
export const disc = (x, y, radius) => [x - radius, y - radius, 2 * radius, 2 * radius, radius];

/** @typedef {[x: number, y: number, height: number]} End  y: of the middle */

/** Returns the outline of a band that bends from one place to another. @param {End} from @param {End} to */
export function band([x0, y0, h0], [x1, y1, h1]) {
  const bend = (x0 + x1) / 2;
  const [[a, b], [c, d]] = [-0.5, 0.5].map((side) => [y0 + side * h0, y1 + side * h1]);
  return `M${x0} ${a}C${bend} ${a} ${bend} ${b} ${x1} ${b}V${d}C${bend} ${d} ${bend} ${c} ${x0} ${c}Z`;
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
