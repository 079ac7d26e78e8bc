// The flow's shapes on a canvas: ribbons, texts and boxes.

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
