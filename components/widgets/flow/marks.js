// Marks between the flow's strips: norms, the residual stream around the branches, and operator signs.

import { HEAD } from "./layout.js";
import { bottom, centre, middle, right } from "./scene.js";
import { box, write } from "../canvas.js";
import { t } from "../i18n.js";

/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {import("./scene.js").Scene} Scene */

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
