// Paints a moment in the film: the camera's view of the model, a veil over everything that the computation has not
// reached, and the moving parts.

import { clipped } from "../canvas.js";
import { t } from "../i18n.js";
import { percent } from "../numbers.js";
import { paint } from "../flow/paint.js";
import { bottom, centre, middle, right, thickness } from "../flow/scene.js";
import { box, write } from "../flow/shapes.js";
import { boxOf, fitted, frontOf, lineOf } from "./camera.js";
import { between, visits, within } from "./time.js";

/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {import("../flow/scene.js").Scene} Scene */
/** @typedef {import("./camera.js").Box} Box */
/** @typedef {import("./camera.js").View} View */
/** @typedef {[token: string, p: number][]} Next */
/**
 * @typedef {object} Film
 * @property {{name: string, act: number, seconds: number, view: string[], more: string[]}[]} beats
 * @property {Record<string, {title: string, says: string, act: string, more?: string}>} words  texts by beat
 * @property {boolean} plays  whether it plays when it opens
 * @property {number} clicks  how often it was opened by a click
 * @property {{starts: string[], ending: string, apart: string[], next: Next[]}} stories  next: next tokens after each start and
 *   the ending, and after the ending alone; empty if the model cannot read them
 * @property {number[]} asked  positions of the tokens that the query visits in act 2
 * @property {{layer: number, token: string, p: string}[]} guesses
 * @property {{pieces: [token: string, start: number, p: number][], chosen: number, number: number | null, written: string, writes: boolean}} draw
 * @property {string} text  the end of the text, up to the followed token
 *
 * @typedef {object} Moment
 * @property {Film} film
 * @property {number} beat
 * @property {number} share  elapsed fraction of the beat
 * @property {Box} area  the area for the displayed parts, in stage px
 * @property {number} width  the stage's width in px
 * @property {number} height
 * @property {boolean} isNarrow
 */

const CAMERA = 0.18; // fraction of a beat during which the camera moves
const SLOW = { rows: 0.5, written: 0.5, layers: 0.25, draw: 0.35 };
const NAMES = 96; // stage px for token names that the camera does not show
const TALL = 44; // height in px of a row that the query visits
const LOW = 8;
const PINNED = ["answer", "mix", "add", "neurons"]; // beats with the names pinned to the left edge
const UNSEEN = -1e5; // left of the first column

/** Enlarges a size in stage px on a large screen. @param {{width: number}} moment @param {number} size */
const large = ({ width }, size) => size * Math.max(1, Math.min(1.5, width / 1280));

/** Returns the row heights in the film: rows that the query visits are tall. @param {Scene} scene @param {Film} film */
export function filmHeights({ data }, film) {
  return data.tokens.map((_, row) => (film.asked.includes(data.start + row) ? TALL : LOW));
}

/** @param {Context} ctx @param {Scene} scene @param {Moment} moment */
export function paintFilm(ctx, scene, moment) {
  const { film, beat, width, height } = moment;
  const { name } = film.beats[beat];
  const view = viewAt(scene, moment);
  ctx.clearRect(0, 0, width, height);
  ctx.save();
  ctx.scale(view.scale, view.scale);
  ctx.translate(-view.x, -view.y);
  paint(ctx, scene);
  veil(ctx, scene, frontier(scene, moment));
  const px = 1 / view.scale; // one stage pixel
  /** @type {Record<string, (ctx: Context, scene: Scene, moment: Moment, px: number) => void>} */
  const moving = { ending: paintStories, differ: paintStories, blind: paintStories, rows: paintEntry, answer: paintAnswers, mix: paintMixing, add: paintHeads, layers: paintGuesses, draw: paintDraw, written: paintWritten };
  moving[name]?.(ctx, scene, moment, px);
  ctx.restore();
  if (PINNED.includes(name)) pinNames(ctx, scene, moment, view);
}

/**
 * Returns the area in which the camera places the parts that a beat shows.
 * @param {Moment} moment @param {number} beat @returns {Box}
 */
function areaOf(moment, beat) {
  const { film, area } = moment;
  if (!PINNED.includes(film.beats[beat].name)) return area;
  const names = large(moment, NAMES);
  return { ...area, x: area.x + names, w: area.w - names };
}

/** @param {Scene} scene @param {Moment} moment @param {number} beat */
function viewOf(scene, moment, beat) {
  const { view } = moment.film.beats[beat];
  const parts = moment.isNarrow && view.includes("line") ? ["line"] : view;
  const isFront = parts.includes("front") || parts.includes("text");
  return fitted(boxOf(scene, parts, moment.area), areaOf(moment, beat), isFront ? 0 : undefined);
}

/** @param {Scene} scene @param {Moment} moment @returns {View} */
function viewAt(scene, moment) {
  const { film, beat, share, width, height } = moment;
  const slow = SLOW[/** @type {keyof typeof SLOW} */ (film.beats[beat].name)] ?? CAMERA;
  const part = within(share, 0.04, slow + 0.04);
  const [a, b] = [viewOf(scene, moment, Math.max(0, beat - 1)), viewOf(scene, moment, beat)];
  const scale = 1 / between(1 / a.scale, 1 / b.scale, part);
  const mid = (/** @type {"x" | "y"} */ side, /** @type {number} */ size) =>
    between(a[side] + size / 2 / a.scale, b[side] + size / 2 / b.scale, part) - size / 2 / scale;
  return { x: mid("x", width), y: mid("y", height), scale };
}

/** Returns the x in the picture that the computation has reached. @param {Scene} scene @param {Moment} moment */
function frontier({ place, width }, { film, beat, share }) {
  const end = right(place.mid ?? place.att);
  const reached = [
    ["rows", UNSEEN, place.tokens.x, right(place.pre) + 4, 0.5, 0.95],
    ["ask", right(place.pre) + 4, right(place.pre) + 4, right(place.k) + 4, 0.25, 0.8],
    ["answer", right(place.k) + 4, right(place.k) + 4, right(place.k) + 4, 0, 1],
    ["mix", right(place.k) + 4, right(place.k) + 4, right(place.z) + 4, 0.1, 0.9],
    ["add", right(place.z) + 4, right(place.z) + 4, end + 4, 0.3, 0.8],
    ["neurons", end + 4, end + 4, right(place.post) + 4, 0.2, 0.85],
    ["layers", right(place.post) + 4, right(place.post) + 4, place.fin.x - 2, 0.3, 0.85],
    ["next", place.fin.x - 2, place.fin.x - 2, width + 40, 0.2, 0.8],
  ];
  const { name } = film.beats[beat];
  const found = /** @type {[string, number, number, number, number, number] | undefined} */ (reached.find(([each]) => each === name));
  if (!found) return beat < film.beats.findIndex((each) => each.name === "rows") ? UNSEEN : width + 1e5;
  const [, before, from, to, begins, ends] = found;
  return share < begins ? before : between(from, to, within(share, begins, ends));
}

/** Covers everything that the computation has not reached yet. @param {Context} ctx @param {Scene} scene @param {number} x */
function veil(ctx, { colours, width, height }, x) {
  if (x > width + 20) return;
  ctx.globalAlpha = 0.94;
  ctx.fillStyle = colours.card;
  ctx.fillRect(Math.max(-10, x), -10, width + 20, height + 20);
  ctx.globalAlpha = 1;
}

/**
 * Returns a font whose size is in stage px.
 * @param {Scene} scene @param {"token" | "note"} kind @param {number} size @param {number} px
 */
const fontOf = ({ fonts }, kind, size, px, weight = 400) => `${weight} ${size * px}px ${fonts[kind].replace(/^\S+ /, "")}`;

/** Replaces the mark for a leading space with the space itself. @param {string} token */
const spoken = (token) => token.replace(/^·/, " ");

/** Returns the picture's rows that the query visits. @param {Scene} scene @param {Film} film */
const askedRows = ({ data }, { asked }) => asked.map((position) => position - data.start).filter((row) => row >= 0 && row < data.tokens.length);

// Act 1

/**
 * Paints two sentences with the same ending, and the predictions after each and after the ending alone.
 * @param {Context} ctx @param {Scene} scene @param {Moment} moment
 */
function paintStories(ctx, scene, moment) {
  const { film, beat, share, area, isNarrow } = moment;
  const { name } = film.beats[beat];
  const front = frontOf(area);
  const { starts, ending, next } = film.stories;
  const largest = isNarrow ? 16 : Math.min(large(moment, 28), area.w / 32);
  const end = front.x + (isNarrow ? Math.min(area.w - 8, 30 * largest * 0.6) : area.w * 0.6);
  ctx.font = fontOf(scene, "token", largest, 1);
  const longest = Math.max(...starts.map((start) => ctx.measureText(`${start} ${ending}`).width));
  const size = largest * Math.min(1, (end - front.x - 8) / longest);
  [...starts.map((start) => `${start} `), ""].forEach((start, i) => {
    const y = front.y + area.h * [0.2, 0.5, 0.8][i] - (isNarrow ? 18 : 0);
    if (i === 2 && name !== "blind") return;
    const written = name === "ending" ? within(share, 0.05 + 0.1 * i, 0.6) : i === 2 ? within(share, 0.05, 0.25) : 1;
    storyLine(ctx, scene, moment, { start, end, y, size, written, i });
    const grown = name === "differ" ? within(share, 0.15 + 0.15 * i, 0.5 + 0.15 * i) : name === "blind" ? (i === 2 ? within(share, 0.25, 0.5) : 1) : 0;
    const shown = next[i]?.slice(0, isNarrow ? 1 : 3) ?? [];
    const [x, w] = isNarrow ? [end - 27 * largest * 0.6, 27 * largest * 0.6] : [end + 32, Math.min(360, area.w * 0.4 - 40)];
    const high = Math.min(large(moment, 30), area.h / 14);
    if (grown) shown.forEach(([token, p], n) => bar(ctx, scene, { token, p, x, y: isNarrow ? y + 28 : y + (n - (shown.length - 1) / 2) * (high + 4), w, high, grown, isBest: n === 0 }));
  });
}

/** @param {Context} ctx @param {Scene} scene @param {Moment} moment @param {{start: string, end: number, y: number, size: number, written: number, i: number}} line */
function storyLine(ctx, scene, { film, beat, share }, { start, end, y, size, written, i }) {
  const { colours } = scene;
  const { ending, apart } = film.stories;
  const { name } = film.beats[beat];
  const font = fontOf(scene, "token", size, 1);
  ctx.font = font;
  /** @param {string} text */
  const wide = (text) => ctx.measureText(text).width;
  const whole = start + ending;
  const left = end - wide(whole);
  const shown = Math.round(whole.length * written);
  const begins = whole.length - ending.length;
  if (shown > begins && written === 1) {
    ctx.fillStyle = colours.accent;
    ctx.globalAlpha = 0.18;
    box(ctx, left + wide(start) - 5, y - size * 0.8, wide(ending) + 10, size * 1.6, 6);
    ctx.fill();
  }
  write(ctx, whole.slice(0, shown), left, y, { font, colour: colours.text });
  if (name !== "blind" || i === 2) return;
  const at = left + wide(start.slice(0, start.indexOf(apart[i])));
  const back = within(share, 0.55, 0.85); // moves from the sentence's end back to the word that differs
  if (!back) return;
  const [from, to] = [end - wide(whole.slice(-1)), at + wide(apart[i]) / 2];
  ctx.strokeStyle = colours.accent;
  ctx.lineWidth = 2.5;
  ctx.globalAlpha = 1;
  ctx.beginPath();
  const high = y - size * 0.9;
  for (let step = 0; step <= 40 * back; step += 1) {
    const t = step / 40;
    const [x, lift] = [between(from, to, t), Math.sin(Math.PI * t) * Math.min(48, size * 1.8)];
    if (step) ctx.lineTo(x, high - lift);
    else ctx.moveTo(x, high - lift);
  }
  ctx.stroke();
  if (back < 1) return;
  write(ctx, apart[i], at, y, { font: fontOf(scene, "token", size, 1, 700), colour: colours.accent });
}

/**
 * Paints the bar for a next token. @param {Context} ctx @param {Scene} scene
 * @param {{
 *   token: string, p: number, x: number, y: number, w: number, high: number, grown: number, isBest: boolean,
 * }} bar
 */
function bar(ctx, scene, { token, p, x, y, w, high, grown, isBest }) {
  const { colours } = scene;
  ctx.fillStyle = colours.before;
  ctx.globalAlpha = isBest ? 0.85 : 0.4;
  box(ctx, x, y - high / 2, Math.max(2, (w - 56) * p * grown), high, 4);
  ctx.fill();
  const font = fontOf(scene, "token", Math.min(27, high * 0.62), 1, isBest ? 600 : 400);
  write(ctx, spoken(token).trim(), x + 8, y + 1, { font, colour: colours.text, alpha: grown });
  write(ctx, percent(p), x + w, y + 1, { font, colour: colours.text, align: "right", alpha: grown });
}

// Act 2

/** Paints the text turning into the picture's rows. @param {Context} ctx @param {Scene} scene @param {Moment} moment */
function paintEntry(ctx, scene, moment) {
  const { film, share, area, isNarrow } = moment;
  const { data, place, colours, chosen } = scene;
  if (share > 0.5) return;
  const front = frontOf(area);
  const size = isNarrow ? 16 : large(moment, 24);
  let [x, y] = [front.x + 16, front.y + area.h * 0.4];
  data.tokens.slice(0, chosen + 1).forEach((token, row) => {
    const word = spoken(token);
    ctx.font = fontOf(scene, "token", size, 1);
    const wide = ctx.measureText(word).width;
    if (x + wide > front.x + area.w - 16) [x, y] = [front.x + 16, y + 1.7 * size];
    const moved = within(share, 0.14 + 0.004 * row, 0.42 + 0.004 * row);
    const to = right(place.tokens);
    const at = [between(x + wide, to, moved), between(y, middle(scene, row), moved)];
    const font = fontOf(scene, "token", between(size, 13, moved), 1, row === chosen ? 600 : 400);
    const isLow = !film.asked.includes(data.start + row); // the row is too low for a name
    const alpha = Math.min(within(share, 0, 0.1), isLow ? 1 - moved : 1);
    if (alpha > 0) write(ctx, word, at[0], at[1], { font, colour: row === chosen ? colours.accent : colours.text, align: "right", alpha });
    x += wide;
  });
}

/**
 * Paints the query visiting each key. Each score appears only after the visit; at the end, the scores become weights.
 * @param {Context} ctx @param {Scene} scene @param {Moment} moment @param {number} px
 */
function paintAnswers(ctx, scene, moment, px) {
  const { film, share, isNarrow } = moment;
  const { data, place, images, colours, chosen } = scene;
  const rows = askedRows(scene, film).reverse(); // from the token itself backwards
  const [y, w, h] = [middle(scene, chosen), place.q.w, thickness(scene, chosen)];
  const left = right(place.k) + 14;
  visits(rows.length).forEach(({ leaves, arrives, answers, lands }, i) => {
    const to = middle(scene, rows[i]);
    const weight = data.row[rows[i]];
    if (share > leaves && share < answers) {
      const moved = within(share, leaves, arrives);
      const [x, top] = [between(place.q.x, place.k.x, moved), between(y, to, moved) - h / 2];
      ctx.drawImage(images.q, 0, chosen, images.q.width, 1, x, top, w, h);
      ctx.strokeStyle = colours.accent;
      ctx.lineWidth = 2.5;
      ctx.strokeRect(x, top, w, h);
      if (moved === 1) ctx.strokeRect(x - 4, top - 4, w + 8, h + 8); // the query has arrived
    }
    if (share <= answers) return;
    const moved = within(share, answers, lands);
    const grown = within(share, 0.74, 0.88);
    const long = Math.max(2, (place.weights.w - 10) * weight * grown);
    ctx.fillStyle = colours.head;
    ctx.globalAlpha = 1;
    if (grown) {
      box(ctx, left, to - 12, long, 24, 4);
      ctx.fill();
      const font = fontOf(scene, "note", isNarrow ? 15 : large(moment, 20), px, 600);
      write(ctx, percent(weight), left + long + 7, to + 1, { font, colour: colours.text, alpha: grown });
      return;
    }
    ctx.beginPath();
    ctx.arc(between(right(place.k), left + 10, moved), to, 4 + 6 * Math.sqrt(weight), 0, 7);
    ctx.fill();
  });
  const others = 1 - rows.reduce((sum, row) => sum + data.row[row], 0);
  if (others < 0.005) return;
  const note = t("film.others", { p: percent(others) });
  write(ctx, note, left, bottom(scene) + 16 * px, { font: fontOf(scene, "note", large(moment, 14), px), colour: colours.muted, alpha: within(share, 0.8, 0.9) });
}

/** Paints the values flowing into the mix, each as thick as its weight. @param {Context} ctx @param {Scene} scene @param {Moment} moment */
function paintMixing(ctx, scene, { film, share }) {
  const { data, place, images, chosen } = scene;
  const end = thickness(scene, chosen);
  for (const row of askedRows(scene, film)) {
    const moved = within(share, 0.4, 0.85);
    if (!moved || moved === 1) continue;
    const h = Math.max(1, between(thickness(scene, row), end * data.row[row], moved));
    const x = between(place.v.x, place.z.x, moved);
    const y = between(middle(scene, row), middle(scene, chosen), moved);
    ctx.globalAlpha = Math.min(1, 0.25 + 2 * data.row[row]);
    ctx.drawImage(images.v, 0, row, images.v.width, 1, x, y - h / 2, place.v.w, h);
    ctx.globalAlpha = 1;
  }
}

/**
 * Paints the results from all heads flowing into one vector.
 * @param {Context} ctx @param {Scene} scene @param {Moment} moment
 */
function paintHeads(ctx, scene, { share }) {
  const { place, headColours, chosen } = scene;
  const moved = within(share, 0.15, 0.5);
  if (moved === 1) return;
  const step = Math.min(16, 180 / headColours.length);
  headColours.forEach((colour, head) => {
    if (head === scene.data.head) return;
    const off = (head - (headColours.length - 1) / 2) * step;
    ctx.globalAlpha = within(share, 0.02, 0.12);
    ctx.fillStyle = colour;
    const y = middle(scene, chosen) + off * (1 - moved);
    ctx.fillRect(between(place.z.x, place.att.x, moved), y - step / 2 + 1, place.z.w * 0.8, step - 2);
  });
  ctx.globalAlpha = 1;
}

/** Paints the token names at the left edge, level with their rows. @param {Context} ctx @param {Scene} scene @param {Moment} moment @param {View} view */
function pinNames(ctx, scene, moment, view) {
  const { film, beat, share, area, height, isNarrow } = moment;
  const names = large(moment, NAMES);
  const { data, colours, chosen } = scene;
  const shown = PINNED.includes(film.beats[Math.max(0, beat - 1)].name) ? 1 : within(share, 0.04, CAMERA);
  const first = boxOf(scene, film.beats[beat].view, area).x;
  ctx.fillStyle = colours.card;
  ctx.globalAlpha = 0.92 * shown;
  ctx.fillRect(0, 0, area.x + names - 8, height);
  ctx.globalAlpha = 0.92 * within(share, 0.04, CAMERA);
  ctx.fillRect(0, 0, (first - 8 - view.x) * view.scale, height);
  const size = isNarrow ? 13 : large(moment, 17);
  for (const row of askedRows(scene, film)) {
    const y = (middle(scene, row) - view.y) * view.scale;
    ctx.font = fontOf(scene, "token", size, 1, row === chosen ? 700 : 400);
    const text = clipped(ctx, data.tokens[row], names - 8);
    write(ctx, text, area.x + names - 14, y, { font: ctx.font, colour: row === chosen ? colours.accent : colours.text, align: "right", alpha: shown });
  }
}

// Act 3

/** Paints the vector running through all layers, with the predictions after some of them below. @param {Context} ctx @param {Scene} scene @param {Moment} moment @param {number} px */
function paintGuesses(ctx, scene, moment, px) {
  const { film, share, isNarrow } = moment;
  const { data, place, colours, chosen } = scene;
  const y = middle(scene, chosen);
  const xOf = (/** @type {number} */ layer) => centre(layer === data.layer ? place.post : place[`layer${layer}`]);
  const passed = within(share, 0.2, 0.85);
  const x = between(right(place.tokens), place.fin.x, passed);
  if (passed > 0 && passed < 1) {
    ctx.strokeStyle = colours.accent;
    ctx.lineWidth = 3 * px;
    ctx.beginPath();
    ctx.arc(x, y, 12 * px, 0, 7);
    ctx.stroke();
  }
  const slot = scene.width / film.guesses.length;
  const low = bottom(scene) + 36 * px;
  film.guesses.forEach(({ layer, token, p }, i) => {
    const from = xOf(layer);
    const shown = x >= from || share === 1 ? 1 : 0;
    if (!shown) return;
    const to = (i + 0.5) * slot;
    ctx.strokeStyle = colours.muted;
    ctx.globalAlpha = 0.5;
    ctx.lineWidth = px;
    ctx.beginPath();
    ctx.moveTo(from, bottom(scene) + 6);
    ctx.lineTo(to, low - 8 * px);
    ctx.stroke();
    const [small, strong] = isNarrow ? [10, 12] : [15, 24];
    const note = fontOf(scene, "note", small, px);
    write(ctx, t("film.layer", { n: layer }), to, low, { font: note, colour: colours.muted, align: "center" });
    ctx.font = fontOf(scene, "token", strong, px, 600);
    write(ctx, clipped(ctx, token, slot - 6 * px), to, low + (isNarrow ? 20 : 28) * px, { font: ctx.font, colour: colours.text, align: "center" });
    write(ctx, p, to, low + (isNarrow ? 38 : 52) * px, { font: note, colour: colours.muted, align: "center" });
  });
}

/** Returns the position of a token's bar, from which its piece of the line moves. @param {Scene} scene @param {string} token */
function barOf({ data, place, barsTop }, token) {
  const n = data.next.findIndex(([each]) => each === token);
  return { x: place.next.x, y: barsTop + (n < 0 ? data.next.length : n) * 26 + 13 };
}

/** Paints the probabilities laid end to end, and the random number that falls on one of them. @param {Context} ctx @param {Scene} scene @param {Moment} moment @param {number} px */
function paintDraw(ctx, scene, moment, px) {
  const { film, share, isNarrow } = moment;
  const { colours } = scene;
  const { pieces, chosen, number } = film.draw;
  const line = lineOf(scene);
  const [y, high] = [line.y + line.h * 0.55, 44];
  const size = (isNarrow ? 13 : large(moment, 17)) * px;
  if (number === null) return paintWinner(ctx, scene, pieces[0]?.[0] ?? "", share);
  ctx.fillStyle = colours.surface;
  ctx.globalAlpha = within(share, 0.2, 0.35);
  ctx.fillRect(line.x, y - high / 2, line.w, high);
  pieces.forEach(([token, start, p], i) => {
    const from = barOf(scene, token);
    const moved = within(share, 0.22 + 0.03 * i, 0.5 + 0.03 * i);
    if (!moved) return;
    const isDrawn = i === chosen && share > 0.8;
    const [x, level, w] = [between(from.x, line.x + start * line.w, moved), between(from.y, y, moved), Math.max(1.5, p * line.w - 1.5)];
    ctx.globalAlpha = share > 0.8 && !isDrawn ? 0.4 : 0.9;
    ctx.fillStyle = isDrawn ? colours.accent : colours.before;
    ctx.fillRect(x, level - high / 2, w, high);
    ctx.font = `500 ${size}px ${scene.fonts.token.replace(/^\S+ /, "")}`;
    const word = spoken(token).trim();
    if (ctx.measureText(word).width < w - 6) write(ctx, word, x + w / 2, level, { font: ctx.font, colour: isDrawn ? colours.card : colours.text, align: "center" });
  });
  ctx.globalAlpha = 1;
  const note = `${size}px ${scene.fonts.shape.replace(/^\S+ /, "")}`;
  for (const end of [0, 1]) write(ctx, end ? "100%" : "0%", line.x + end * line.w, y + high / 2 + size, { font: note, colour: colours.muted, align: end ? "right" : "left", alpha: within(share, 0.2, 0.35) });
  const fallen = within(share, 0.58, 0.8);
  if (!fallen) return;
  const [x, tip] = [line.x + number * line.w, between(line.y - 40, y - high / 2, fallen)];
  ctx.fillStyle = colours.accent;
  ctx.beginPath();
  ctx.moveTo(x, tip + (fallen === 1 ? high : 0));
  ctx.lineTo(x - 1.5, tip);
  ctx.lineTo(x - 9, tip - 16);
  ctx.lineTo(x + 9, tip - 16);
  ctx.lineTo(x + 1.5, tip);
  ctx.fill();
  write(ctx, percent(number), x, tip - 16 - size * 0.8, { font: `600 ${size}px ${scene.fonts.shape.replace(/^\S+ /, "")}`, colour: colours.accent, align: "center" });
}

/** Paints the top token winning at temperature 0. @param {Context} ctx @param {Scene} scene @param {string} token @param {number} share */
function paintWinner(ctx, scene, token, share) {
  const { x, y } = barOf(scene, token);
  ctx.strokeStyle = scene.colours.accent;
  ctx.lineWidth = 3;
  ctx.globalAlpha = within(share, 0.3, 0.6);
  box(ctx, x - 4, y - 14, scene.place.next.w + 8, 28, 5);
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** Paints the drawn token moving to the end of the text. @param {Context} ctx @param {Scene} scene @param {Moment} moment */
function paintWritten(ctx, scene, moment) {
  const { film, share, area, isNarrow } = moment;
  const { colours } = scene;
  const { pieces, chosen, number, written } = film.draw;
  const front = frontOf(area);
  const size = isNarrow ? 16 : large(moment, 26);
  const font = fontOf(scene, "token", size, 1);
  ctx.font = font;
  /** @param {string} each */
  const wide = (each) => ctx.measureText(each).width;
  const word = written.replace(/\s+/g, " ");
  let text = film.text;
  while (wide(text + word) > area.w - 40 && text.length > 2) text = `… ${text.replace(/^… /, "").slice(1)}`;
  const left = front.x + (area.w - wide(text + word)) / 2;
  const y = front.y + area.h * 0.45;
  write(ctx, text, left, y, { font, colour: colours.text });
  const line = lineOf(scene);
  const [, start, p] = pieces[chosen];
  const from = number === null ? barOf(scene, pieces[chosen][0]) : { x: line.x + (start + p / 2) * line.w, y: line.y + line.h * 0.55 };
  const moved = within(share, 0.08, 0.7);
  const arc = Math.sin(Math.PI * moved) * area.h * 0.2;
  const at = { x: between(from.x, left + wide(text), moved), y: between(from.y, y, moved) - arc };
  if (moved === 1) {
    ctx.fillStyle = colours.accent;
    ctx.globalAlpha = 0.18;
    box(ctx, at.x + wide(word) - wide(word.trimStart()) - 4, y - size * 0.8, wide(word.trim()) + 8, size * 1.6, 6);
    ctx.fill();
  }
  write(ctx, word, at.x, at.y, { font: fontOf(scene, "token", size, 1, 700), colour: colours.accent });
}
