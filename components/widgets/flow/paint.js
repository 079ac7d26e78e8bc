// Paints the flow's scene onto a canvas.

import { box, ribbon, write } from "../canvas.js";
import { t } from "../i18n.js";
import { paintNames, paintNext, paintTokens } from "./captions.js";
import { HEAD, OF_HEAD, bottom, centre, firstSeen, middle, right, thickness } from "./scene.js";

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

// Marks between the columns

const NORM_LABEL = 48; // minimum total height of the rows in px at which the name fits
const PRE_NORMS = ["norm1", "norm2"];
const POST_NORMS = ["after1", "after2"];

/** Returns a norm's x within its gap. @param {Scene} scene @param {string} name */
export function normX({ place, data }, name) {
  const shift = { norm1: data.is_rotary ? -8 : 0, norm2: data.is_parallel ? 10 : 0 }[name] ?? 0; // leaves room for other signs
  return centre(place[name]) + shift;
}

/** Paints a bar across all rows for each norm except the last. @param {Context} ctx @param {Scene} scene */
export function paintNorms(ctx, scene) {
  const { data, place, colours, fonts } = scene;
  const norms = [...(data.has_pre_norm ? PRE_NORMS : []), ...POST_NORMS];
  for (const name of norms.filter((each) => place[each])) {
    const x = normX(scene, name);
    ctx.fillStyle = colours.muted;
    ctx.globalAlpha = 0.35;
    box(ctx, x - 2, HEAD - 2, 4, bottom(scene) - HEAD + 4, 2);
    ctx.fill();
    ctx.globalAlpha = 1;
    if (bottom(scene) - HEAD < NORM_LABEL) continue;
    const ink = { font: fonts.note, colour: colours.muted };
    if (/\p{Script=Han}/u.test(t("flow.norm"))) {
      [...t("flow.norm")].forEach((sign, i) => write(ctx, sign, x + 5, HEAD + 8 + 12 * i, ink)); // upright, like a vertical line of Chinese
      continue;
    }
    ctx.save();
    ctx.translate(x + 9, HEAD + 2);
    ctx.rotate(Math.PI / 2);
    write(ctx, t("flow.norm"), 0, 0, ink);
    ctx.restore();
  }
}

/**
 * Paints the selected row's residual stream around attention and around the feed-forward network.
 * @param {Context} ctx @param {Scene} scene
 */
export function paintRail(ctx, scene) {
  const { place, data } = scene;
  const low = bottom(scene) + 20;
  if (!data.is_parallel) {
    for (const [from, plus] of [["pre", "plus1"], ["mid", "plus2"]]) passage(ctx, scene, right(place[from]), centre(place[plus]), low, t("flow.stream"));
    return;
  }
  const x1 = centre(place.plus2);
  const into = place.norm2.x + 24;
  passage(ctx, scene, right(place.att), x1 - 6, low, t("flow.short.att"));
  passage(ctx, scene, right(place.pre), x1 + 3, low + 22, t("flow.stream"));
  branch(ctx, scene, into, normX(scene, "norm2") - 2, low + 22); // the feed-forward network reads the same vector
}

/** Paints a line from a strip, below the rows and up to an addition. @param {Context} ctx @param {Scene} scene @param {number} from @param {number} x1 @param {number} rail y @param {string} name */
function passage(ctx, scene, from, x1, rail, name) {
  const { colours, fonts, chosen } = scene;
  const y = middle(scene, chosen);
  const x0 = from + 9;
  line(ctx, colours.muted);
  ctx.moveTo(from, y);
  ctx.arcTo(x0, y, x0, rail, 7);
  ctx.arcTo(x0, rail, x1, rail, 10);
  ctx.arcTo(x1, rail, x1, y, 10);
  ctx.lineTo(x1, y + 9);
  ctx.stroke();
  ctx.globalAlpha = 1;
  ctx.font = fonts.name;
  const [x, room] = [(x0 + x1) / 2, ctx.measureText(name).width + 16];
  ctx.fillStyle = colours.surface;
  ctx.fillRect(x - room / 2, rail - 8, room, 16);
  write(ctx, name, x, rail, { font: fonts.name, colour: colours.muted, align: "center" });
}

/** Paints a line from the stream up into the feed-forward network. @param {Context} ctx @param {Scene} scene @param {number} x @param {number} to @param {number} rail y */
function branch(ctx, scene, x, to, rail) {
  const y = middle(scene, scene.chosen);
  line(ctx, scene.colours.muted);
  ctx.moveTo(x - 10, rail);
  ctx.arcTo(x, rail, x, y, 10);
  ctx.arcTo(x, y, to, y, 7);
  ctx.lineTo(to, y);
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** @param {Context} ctx @param {string} colour */
function line(ctx, colour) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.globalAlpha = 0.6;
  ctx.beginPath();
}

/** Paints a sign in the selected row wherever vectors are added, multiplied or rotated. @param {Context} ctx @param {Scene} scene */
export function paintMarks(ctx, scene) {
  const { place, data } = scene;
  for (const plus of ["plus1", "plus2"]) if (place[plus]) cross(ctx, scene, centre(place[plus]), 9);
  if (place.pos) cross(ctx, scene, (right(place.tok) + place.pos.x) / 2, 6);
  if (place.gate) {
    cross(ctx, scene, (right(place.gate) + place.up.x) / 2, 8, Math.PI / 4);
    equals(ctx, scene, (right(place.up) + place.ff.x) / 2, 8);
  }
  if (data.is_rotary) for (const part of ["q", "k"]) turn(ctx, scene, place[part].x - 8, 6.5);
}

/**
 * Paints a disc for a sign and returns its centre.
 * @param {Context} ctx @param {Scene} scene @param {number} x @param {number} radius
 */
function disc(ctx, scene, x, radius) {
  const { colours, chosen } = scene;
  const y = middle(scene, chosen);
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 7);
  ctx.fillStyle = colours.card;
  ctx.fill();
  ctx.strokeStyle = colours.muted;
  ctx.lineWidth = 1.5;
  ctx.stroke();
  ctx.strokeStyle = colours.text;
  ctx.beginPath();
  return y;
}

/** Paints a plus sign or, rotated, a times sign. @param {Context} ctx @param {Scene} scene @param {number} x @param {number} radius */
function cross(ctx, scene, x, radius, angle = 0) {
  const y = disc(ctx, scene, x, radius);
  for (const turned of [angle, angle + Math.PI / 2]) {
    const [dx, dy] = [Math.cos(turned) * radius * 0.5, Math.sin(turned) * radius * 0.5];
    ctx.moveTo(x - dx, y - dy);
    ctx.lineTo(x + dx, y + dy);
  }
  ctx.stroke();
}

/** @param {Context} ctx @param {Scene} scene @param {number} x @param {number} radius */
function equals(ctx, scene, x, radius) {
  const y = disc(ctx, scene, x, radius);
  for (const dy of [-2, 2]) {
    ctx.moveTo(x - radius * 0.45, y + dy);
    ctx.lineTo(x + radius * 0.45, y + dy);
  }
  ctx.stroke();
}

/**
 * Paints a circular arrow for the rotation by position.
 * @param {Context} ctx @param {Scene} scene @param {number} x @param {number} radius
 */
function turn(ctx, scene, x, radius) {
  const y = disc(ctx, scene, x, radius);
  const r = radius * 0.55;
  ctx.lineWidth = 1.25;
  ctx.arc(x, y, r, -2.6, 1.6);
  ctx.moveTo(x + 2.6, y + r - 2.4);
  ctx.lineTo(x - 0.4, y + r);
  ctx.lineTo(x + 2.2, y + r + 2.4);
  ctx.stroke();
}
