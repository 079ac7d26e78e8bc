// Paints the flow's scene onto a canvas.

import { HEAD } from "./layout.js";
import { paintNames, paintNext, paintTokens } from "./captions.js";
import { normX, paintMarks, paintNorms, paintRail } from "./marks.js";
import { bottom, centre, firstSeen, middle, OF_HEAD, right, thickness } from "./scene.js";
import { box, ribbon, write } from "../canvas.js";

/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {import("./scene.js").Scene} Scene */

/** @param {Context} ctx @param {Scene} scene */
export function paint(ctx, scene) {
  ctx.clearRect(0, 0, scene.width, scene.height);
  ctx.imageSmoothingEnabled = false;
  ctx.textBaseline = "middle";
  const inside = [paintLanes, paintNorms, paintRail, paintWeights, paintMix];
  for (const each of [paintBlock, ...inside, paintStrips, paintMarks, paintNext, paintNames, paintTokens]) each(ctx, scene);
}

/** Paints the frame of the open layer and the closed layers. @param {Context} ctx @param {Scene} scene */
function paintBlock(ctx, scene) {
  const { place, colours, height } = scene;
  ctx.fillStyle = colours.surface;
  box(ctx, place.open.x, 1, place.close.x - place.open.x, height - 2, 12);
  ctx.fill();
  for (const [name, { x, w }] of Object.entries(place)) {
    if (!name.startsWith("layer")) continue;
    const edge = Math.min(2, w / 4);
    box(ctx, x - edge, HEAD - 26, w + 2 * edge, bottom(scene) + 8 - HEAD + 26, 4);
    ctx.fill();
  }
}

/**
 * Paints each row's path, emphasised for the selected row and those it attends to.
 * @param {Context} ctx @param {Scene} scene
 */
function paintLanes(ctx, scene) {
  const { data, place, colours, chosen } = scene;
  data.tokens.forEach((_, row) => {
    const [y, h, own] = [middle(scene, row), thickness(scene, row), row === chosen];
    const attended = row < chosen ? Math.min(1, 2.5 * data.row[row]) : 0;
    const plain = own ? 0.3 : 0.06;
    const start = right(place.pre);

    /** @param {number} from @param {number} to @param {string} colour @param {number} alpha @param {number} [third] third of the lane: 0 is the middle one */
    const lane = (from, to, colour, alpha, third) => {
      const [at, high] = third === undefined ? [y, h] : [y + (third * h) / 3, h > 9 ? h / 3 - 2 : h / 3];
      ribbon(ctx, [from, at, high], [to, at, high], colour, alpha);
    };
    lane(right(place.tokens) + 6, place.pre.x, colours.muted, plain);
    lane(start, place.q.x, own ? colours.head : colours.muted, own ? 0.55 : 0.06, -1);
    lane(start, place.k.x, colours.head, own ? 0.55 : 0.05 + 0.5 * attended, 0);
    lane(start, place.v.x, colours.head, own ? 0.55 : 0.05 + 0.5 * attended, 1);
    if (own) lane(place.q.x, place.weights.x, colours.head, 0.45, -1);
    lane(place.k.x, place.weights.x, colours.head, own ? 0.5 : 0.05 + 0.4 * attended, 0);
    lane(right(place.z), place.att.x, own ? colours.head : colours.muted, own ? 0.45 : 0.06);
    if (place.mid) lane(right(place.att), place.mid.x, colours.muted, plain);
    for (const [from, to] of [["out", "post"], ["post", "fin"]]) lane(right(place[from]), place[to].x, colours.muted, plain);
    const wide = own ? h + 8 : h;
    const input = place.mid ? right(place.mid) : normX(scene, "norm2"); // parallel branches: input from the rail
    if (place.gate) {
      lane(input, place.gate.x, colours.muted, plain, -0.75);
      lane(input, place.up.x, colours.muted, plain, 0.75);
      lane(right(place.up), place.ff.x, colours.muted, plain);
    } else ribbon(ctx, [input, y, h], [place.ff.x, y, wide], colours.muted, plain);
    ribbon(ctx, [right(place.ff), y, wide], [place.out.x, y, h], colours.muted, plain);
  });
}

/**
 * Paints the head's attention weights, row by row beside the tokens; keys are collapsed like the rows.
 * @param {Context} ctx @param {Scene} scene
 */
function paintWeights(ctx, scene) {
  const { data, place, tops, heights, colours, chosen, weights } = scene;
  const scale = place.weights.w / (bottom(scene) - HEAD);
  const count = data.tokens.length;
  for (let row = 0; row < count; row += 1) {
    const h = thickness(scene, row);
    const y = middle(scene, row) - h / 2;
    ctx.fillStyle = colours.card;
    ctx.globalAlpha = 1;
    const first = firstSeen(data, row);
    ctx.fillRect(place.weights.x + (tops[first] - HEAD) * scale, y, (tops[row] + heights[row] - tops[first]) * scale, h);
    ctx.fillStyle = colours.head;
    for (let key = 0; key <= row; key += 1) {
      const weight = weights[row * count + key] / 255;
      if (weight < 0.004) continue;
      ctx.globalAlpha = Math.sqrt(weight) * (row === chosen ? 1 : 0.62);
      const w = heights[key] * scale;
      ctx.fillRect(place.weights.x + (tops[key] - HEAD) * scale, y, w > 3 ? w - 0.75 : w, h);
    }
  }
  ctx.globalAlpha = 1;
}

/** Paints a ribbon from each value to the weighted sum, as thick as the weight. @param {Context} ctx @param {Scene} scene */
function paintMix(ctx, scene) {
  const { data, place, colours, fonts, heights, chosen } = scene;
  const end = thickness(scene, chosen);
  let y = middle(scene, chosen) - end / 2;
  for (let row = 0; row <= chosen; row += 1) {
    const weight = data.row[row];
    if (weight < 0.003) continue;
    const [h0, h1] = [Math.max(0.8, weight * 16), weight * end];
    const to = /** @type {[number, number, number]} */ ([place.z.x, y + h1 / 2, Math.max(0.8, h1)]);
    ribbon(ctx, [right(place.v), middle(scene, row), h0], to, colours.head, 0.3 + 0.5 * Math.sqrt(weight));
    if (weight > 0.08 && heights[row] > 9 && row !== chosen) {
      const [text, x, top] = [`${Math.round(100 * weight)}%`, right(place.v) + 6, middle(scene, row) - 11];
      ctx.font = fonts.shape;
      ctx.textAlign = "left";
      ctx.strokeStyle = colours.surface;
      ctx.lineWidth = 4;
      ctx.strokeText(text, x, top);
      write(ctx, text, x, top, { font: fonts.shape, colour: colours.text });
    }
    y += h1;
  }
}

/** Paints the vectors, one strip per row and column. @param {Context} ctx @param {Scene} scene */
function paintStrips(ctx, scene) {
  for (const name of Object.keys(scene.images)) if (scene.place[name]) paintStrip(ctx, scene, name);
}

/** @param {Context} ctx @param {Scene} scene @param {string} name */
function paintStrip(ctx, scene, name) {
  const { data, images, place, colours, heights, chosen } = scene;
  const { x, w } = place[name];
  const attended = name === "k" || name === "v";
  const layer = name.startsWith("layer");
  data.tokens.forEach((_, row) => {
    const own = row === chosen;
    const h = thickness(scene, row) + (own && name === "ff" ? 8 : 0);
    const y = middle(scene, row) - h / 2;
    ctx.fillStyle = colours.card;
    ctx.fillRect(x, y, w, h);
    const quiet = layer ? 0.35 : heights[row] > 9 ? 0.22 : 0.3;
    ctx.globalAlpha = own ? 1 : attended && row < chosen ? quiet + (1 - quiet) * Math.min(1, 4 * data.row[row]) : quiet;
    ctx.drawImage(images[name], 0, row, images[name].width, 1, x, y, w, h);
    ctx.globalAlpha = 1;
    if (!own || layer) return;
    ctx.strokeStyle = OF_HEAD.includes(name) ? colours.head : colours.text;
    ctx.lineWidth = 1.25;
    ctx.strokeRect(x, y, w, h);
  });
}
