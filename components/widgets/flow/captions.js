// Texts in the flow: input tokens on the left, next tokens on the right, column names above.

import { box, clipped, ribbon, write } from "../canvas.js";
import { t } from "../i18n.js";
import { isExact, percent } from "../labels.js";
import { BAR, HEAD, OF_HEAD, bottom, centre, group, middle, right, thickness } from "./scene.js";

/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {import("./scene.js").Scene} Scene */

const NAMED = ["tok", "pos", "pre", "q", "k", "weights", "v", "z", "att", "mid", "gate", "up", "ff", "out", "post", "fin"];

/** Paints the tokens at the left edge of the visible area. @param {Context} ctx @param {Scene} scene */
export function paintTokens(ctx, scene) {
  const { data, place, colours, fonts, heights, chosen, scrolled } = scene;
  const edge = right(place.tokens) + scrolled;
  if (scrolled) {
    ctx.fillStyle = colours.card;
    ctx.fillRect(scrolled, 0, place.tokens.w + 8, scene.height);
  }
  data.tokens.forEach((token, row) => {
    const y = middle(scene, row);
    if (heights[row] < 12) {
      ctx.fillStyle = colours.muted;
      ctx.globalAlpha = 0.45;
      ctx.fillRect(edge - 10, y - 0.75, 10, 1.5);
      ctx.globalAlpha = 1;
      return;
    }
    ctx.font = fonts.token;
    const text = clipped(ctx, token, place.tokens.w - 14);
    const weight = row <= chosen ? (data.row?.[row] ?? 0) : 0;
    const colour = row > chosen ? colours.muted : colours.text;
    write(ctx, text, edge, y + 0.5, { font: fonts.token, colour, align: "right", alpha: row === chosen ? 1 : 0.6 + 0.4 * Math.min(1, 4 * weight) });
    if (row !== chosen) return;
    const room = ctx.measureText(text).width + 12;
    ctx.strokeStyle = colours.text;
    ctx.lineWidth = 2;
    box(ctx, edge - room + 6, y - 11.5, room, 23, 6);
    ctx.stroke();
  });
  const after = data.total - data.start - data.tokens.length;
  const quiet = { font: fonts.note, colour: colours.muted, align: /** @type {const} */ ("right") };
  if (data.start) write(ctx, t("flow.before", { n: data.start }), edge, HEAD - 14, quiet);
  if (after > 0) write(ctx, t("flow.after", { n: after }), edge, bottom(scene) + 14, quiet);
}

/** @param {Context} ctx @param {Scene} scene */
export function paintNext(ctx, scene) {
  const { data, place, colours, fonts, chosen } = scene;
  const { x, w } = place.next;
  const most = data.next[0][1];
  ctx.font = fonts.token;
  const rooms = data.next.map(([, p]) => ctx.measureText(percent(p)).width + 8);
  const total = data.next.reduce((sum, [, p]) => sum + p, 0);
  const h = thickness(scene, chosen);
  let start = middle(scene, chosen) - h / 2;
  data.next.forEach(([token, p], n) => {
    const y = scene.barsTop + n * BAR + BAR / 2;
    const share = (h * p) / total;
    ribbon(ctx, [right(place.fin), start + share / 2, share], [x, y, Math.max(1, (18 * p) / most)], colours.after, 0.35);
    start += share;
    ctx.fillStyle = colours.before;
    ctx.globalAlpha = 0.75;
    box(ctx, x, y - 11, Math.max(1.5, ((w - Math.max(...rooms)) * p) / most), 22, 3);
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.font = fonts.token;
    write(ctx, clipped(ctx, token, w - rooms[n] - 8), x + 7, y + 0.5, { font: n === data.chosen ? fonts.strong : fonts.token, colour: colours.text });
    write(ctx, percent(p), x + w - 2, y + 0.5, { font: fonts.token, colour: n ? colours.muted : colours.text, align: "right" });
  });
}

/** Paints the columns' names above them, with the sizes of their vectors or their purposes. @param {Context} ctx @param {Scene} scene */
export function paintNames(ctx, scene) {
  const { data, place, colours, fonts } = scene;
  for (const name of NAMED.filter((name) => place[name])) {
    const colour = OF_HEAD.includes(name) ? colours.head : colours.text;
    write(ctx, t(`flow.short.${name}`), centre(place[name]), isExact() ? HEAD - 30 : HEAD - 14, { font: fonts.name, colour, align: "center" });
  }
  if (isExact()) paintSizes(ctx, scene);
  else paintPurposes(ctx, scene);
  if (data.kv_heads < data.n_head) paintSharing(ctx, scene);
  write(ctx, t("flow.short.embedding"), place.tok.x, 21, { font: fonts.title, colour: colours.text });
  write(ctx, t("flow.short.next"), place.next.x, scene.barsTop - 16, { font: fonts.title, colour: colours.text });
  for (let layer = 0; layer < data.n_layer; layer += 1) {
    const column = place[`layer${layer}`];
    if (!column || column.w < 7) continue;
    write(ctx, String(layer), centre(column), HEAD - 14, { font: fonts.shape, colour: colours.muted, align: "center" });
  }
}

/** Paints what the open layer's two parts do. @param {Context} ctx @param {Scene} scene */
function paintPurposes(ctx, { data, place, colours, fonts }) {
  const parts = /** @type {const} */ ([[data.ahead ? "flow.looks_ahead" : "flow.looks_back", place.q, place.att, colours.head], ["flow.alone", place.gate ?? place.ff, place.out, colours.text]]);
  for (const [key, first, last, colour] of parts) {
    write(ctx, t(key), (first.x + right(last)) / 2, HEAD - 38, { font: fonts.name, colour, align: "center" });
    ctx.fillStyle = colour;
    ctx.fillRect(first.x, HEAD - 28, right(last) - first.x, 1);
  }
}

/** Paints the vectors' sizes below the columns' names. @param {Context} ctx @param {Scene} scene */
function paintSizes(ctx, { data, place, colours, fonts }) {
  const names = NAMED.filter((name) => place[name]);
  const shape = (/** @type {string} */ name) => {
    if (name === "weights") return `${data.total}×${data.total}`;
    return data.strips[name] ? `${data.total}×${data.strips[name].width}` : "";
  };
  ctx.font = fonts.shape;
  const wide = names.map((name) => ctx.measureText(shape(name)).width);
  const tight = names.some((name, i) => i > 0 && (wide[i] + wide[i - 1]) / 2 + 6 > centre(place[name]) - centre(place[names[i - 1]]));
  for (const name of names) {
    const x = centre(place[name]);
    const size = tight && name !== "weights" ? shape(name).replace(/^\d+/, "") : shape(name);
    write(ctx, size, x, HEAD - 14, { font: fonts.shape, colour: colours.muted, align: "center" });
  }
}

/** Paints a dot in each head's colour above the queries, keys and values that it uses. @param {Context} ctx @param {Scene} scene */
function paintSharing(ctx, scene) {
  const { data, place, headColours } = scene;
  const shared = group(data);
  for (const [name, heads] of /** @type {[string, number[]][]} */ ([["q", [data.head]], ["k", shared], ["v", shared]])) {
    const step = Math.min(8, place[name].w / heads.length);
    heads.forEach((head, i) => {
      ctx.fillStyle = headColours[head];
      ctx.beginPath();
      ctx.arc(centre(place[name]) + (i - (heads.length - 1) / 2) * step, HEAD - 4, Math.min(3, step / 2), 0, 7);
      ctx.fill();
    });
  }
}
