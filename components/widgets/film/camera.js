// The film's camera: boxes in the picture, and the views in which they fill an area on the stage.

import { HEAD } from "../flow/layout.js";
import { bottom } from "../flow/scene.js";

/** @typedef {import("../flow/scene.js").Scene} Scene */
/** @typedef {{x: number, y: number, w: number, h: number}} Box */
/**
 * @typedef {{x: number, y: number, scale: number}} View  x, y: the point of the picture at the stage's upper left corner;
 *   scale: stage px per picture px
 */

const MARGIN = 20; // picture px around the displayed parts
const [LEAST, MOST] = [0.1, 3]; // limits on the scale
const LINE = { w: 420, h: 190 };
const GUESSES = 110; // stage px for the layers' predictions

/**
 * Returns the box to the left of the picture where texts are written. It is as large as the area, so its scale is 1.
 * @param {Box} area @returns {Box}
 */
export const frontOf = (area) => ({ x: -area.w - 80, y: 0, w: area.w, h: area.h });

/** Returns the box for the probabilities laid end to end, to the right of the picture. @param {Scene} scene @returns {Box} */
export const lineOf = (scene) => ({ x: scene.width + 70, y: scene.barsTop, ...LINE });

/**
 * Returns the box around some parts of the picture.
 * @param {Scene} scene @param {string[]} parts @param {Box} area stage px @returns {Box}
 */
export function boxOf(scene, parts, area) {
  const { place } = scene;
  const boxes = parts.flatMap((part) => {
    if (part === "front" || part === "text") return [frontOf(area)];
    if (part === "line") return [lineOf(scene)];
    if (part === "machine") return [{ x: 0, y: 0, w: scene.width, h: bottom(scene) + (GUESSES * scene.width) / area.w }];
    if (part === "next") return [{ ...place.next, y: scene.barsTop - 30, h: 238 }];
    return place[part] ? [{ ...place[part], y: HEAD - 44, h: bottom(scene) + 34 - (HEAD - 44) }] : [];
  });
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  return { x, y, w: Math.max(...boxes.map((box) => box.x + box.w)) - x, h: Math.max(...boxes.map((box) => box.y + box.h)) - y };
}


/**
 * Returns the view in which a box fills an area on the stage.
 * @param {Box} box @param {Box} area stage px @param {number} [margin] @returns {View}
 */
export function fitted(box, area, margin = MARGIN) {
  const wanted = Math.min(area.w / (box.w + 2 * margin), area.h / (box.h + 2 * margin));
  const scale = Math.max(LEAST, Math.min(MOST, wanted));
  const [middle, level] = [area.x + area.w / 2, area.y + area.h / 2];
  return { x: box.x + box.w / 2 - middle / scale, y: box.y + box.h / 2 - level / scale, scale };
}
