// Canvases in device pixels, and images made from numbers.

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
