// Paints the flow's scene onto a canvas.

import { band, clipped, disc, fill, stroke, write } from "../canvas.js";
import { t } from "../i18n.js";
import { isExact, percent } from "../labels.js";
import { BAR, HEAD, OF_HEAD, centre, firstSeen, middle, right, thickness } from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */

/** @param {Scene} scene */
export function paint(scene) {
  const { ctx, width, height } = scene;
  ctx.clearRect(0, 0, width, height);
  ctx.imageSmoothingEnabled = false;
  ctx.textBaseline = "middle";
  const inside = [paintLanes, paintNorms, paintRail, paintWeights, paintMix, paintStrips, paintMarks];
  for (const each of [paintBlock, ...inside, paintNext, paintNames, paintTokens]) each(scene);
}

/** Paints the frame of the open layer and the closed layers. @param {Scene} scene */
function paintBlock({ ctx, place, colours, height, bottom }) {
  fill(ctx, [place.open.x, 1, place.close.x - place.open.x, height - 2, 12], colours.surface);
  for (const [name, { x, w }] of Object.entries(place)) {
    const edge = Math.min(2, w / 4);
    if (name.startsWith("layer")) fill(ctx, [x - edge, HEAD - 26, w + 2 * edge, bottom - HEAD + 34, 4], colours.surface);
  }
}

/** Paints each row's path, emphasised for the selected row and those it attends to. @param {Scene} scene */
function paintLanes(scene) {
  const { ctx, data, place, chosen } = scene;
  const { muted, attention } = scene.colours;
  data.tokens.forEach((_, row) => {
    const [y, h, own] = [middle(scene, row), thickness(scene, row), row === chosen];
    const attended = row < chosen ? Math.min(1, 2.5 * data.row[row]) : 0;
    const [plain, read] = own ? [0.3, 0.55] : [0.06, 0.05 + 0.5 * attended];
    const start = right(place.pre);

    /** @param {number} from @param {number} to @param {string} colour @param {number} alpha @param {number} [third] third of the lane: 0 is the middle one */
    const lane = (from, to, colour, alpha, third) => {
      const [at, high] = third === undefined ? [y, h] : [y + (third * h) / 3, h > 9 ? h / 3 - 2 : h / 3];
      fill(ctx, [from, at - high / 2, to - from, high], colour, alpha);
    };
    lane(right(place.tokens) + 6, place.pre.x, muted, plain);
    lane(start, place.q.x, own ? attention : muted, own ? 0.55 : 0.06, -1);
    lane(start, place.k.x, attention, read, 0);
    lane(start, place.v.x, attention, read, 1);
    if (own) lane(place.q.x, place.weights.x, attention, 0.45, -1);
    lane(place.k.x, place.weights.x, attention, own ? 0.5 : 0.05 + 0.4 * attended, 0);
    lane(right(place.z), place.att.x, own ? attention : muted, own ? 0.45 : 0.06);
    if (place.mid) lane(right(place.att), place.mid.x, muted, plain);
    for (const [from, to] of [["out", "post"], ["post", "fin"]]) lane(right(place[from]), place[to].x, muted, plain);
    const wide = own ? h + 8 : h;
    const input = place.mid ? right(place.mid) : normX(scene, "norm2"); // parallel branches: input from the rail
    if (place.gate) {
      lane(input, place.gate.x, muted, plain, -0.75);
      lane(input, place.up.x, muted, plain, 0.75);
      lane(right(place.up), place.ff.x, muted, plain);
    } else fill(ctx, band([input, y, h], [place.ff.x, y, wide]), muted, plain);
    fill(ctx, band([right(place.ff), y, wide], [place.out.x, y, h]), muted, plain);
  });
}

/** Paints the head's attention weights, row by row beside the tokens; keys are collapsed like the rows. @param {Scene} scene */
function paintWeights(scene) {
  const { ctx, data, place, tops, heights, bottom, colours, chosen, weights } = scene;
  const scale = place.weights.w / (bottom - HEAD);
  const count = data.tokens.length;
  const x = (/** @type {number} */ key) => place.weights.x + (tops[key] - HEAD) * scale;
  for (let row = 0; row < count; row += 1) {
    const h = thickness(scene, row);
    const y = middle(scene, row) - h / 2;
    const first = firstSeen(data, row);
    fill(ctx, [x(first), y, (tops[row] + heights[row] - tops[first]) * scale, h], colours.card);
    for (let key = 0; key <= row; key += 1) {
      const weight = weights[row * count + key] / 255;
      const w = heights[key] * scale;
      if (weight >= 0.004) fill(ctx, [x(key), y, w > 3 ? w - 0.75 : w, h], colours.attention, Math.sqrt(weight) * (row === chosen ? 1 : 0.62));
    }
  }
}

/** Paints a ribbon from each value to the weighted sum, as thick as the weight. @param {Scene} scene */
function paintMix(scene) {
  const { ctx, data, place, colours, fonts, heights, chosen } = scene;
  const end = thickness(scene, chosen);
  let y = middle(scene, chosen) - end / 2;
  for (let row = 0; row <= chosen; row += 1) {
    const weight = data.row[row];
    if (weight < 0.003) continue;
    const h = weight * end;
    const shape = band([right(place.v), middle(scene, row), Math.max(0.8, weight * 16)], [place.z.x, y + h / 2, Math.max(0.8, h)]);
    fill(ctx, shape, colours.attention, 0.3 + 0.5 * Math.sqrt(weight));
    if (weight > 0.08 && heights[row] > 9 && row !== chosen) {
      const [text, x, top] = [`${Math.round(100 * weight)}%`, right(place.v) + 6, middle(scene, row) - 11];
      Object.assign(ctx, { font: fonts.shape, textAlign: "left", strokeStyle: colours.surface, lineWidth: 4 });
      ctx.strokeText(text, x, top);
      write(ctx, text, x, top, { font: fonts.shape, colour: colours.text });
    }
    y += h;
  }
}

/** Paints the vectors, one strip per row and column. @param {Scene} scene */
function paintStrips(scene) {
  const { ctx, data, place, colours, heights, chosen } = scene;
  for (const [name, image] of Object.entries(scene.images)) {
    if (!place[name]) continue;
    const { x, w } = place[name];
    const isLayer = name.startsWith("layer");
    data.tokens.forEach((_, row) => {
      const own = row === chosen;
      const h = thickness(scene, row) + (own && name === "ff" ? 8 : 0);
      const y = middle(scene, row) - h / 2;
      fill(ctx, [x, y, w, h], colours.card);
      const quiet = isLayer ? 0.35 : heights[row] > 9 ? 0.22 : 0.3;
      const attended = (name === "k" || name === "v") && row < chosen ? Math.min(1, 4 * data.row[row]) : 0;
      ctx.globalAlpha = own ? 1 : quiet + (1 - quiet) * attended;
      ctx.drawImage(image, 0, row, image.width, 1, x, y, w, h);
      ctx.globalAlpha = 1;
      if (own && !isLayer) stroke(ctx, [x, y, w, h], OF_HEAD.includes(name) ? colours.attention : colours.text, 1.25);
    });
  }
}

// Marks between the columns

const NORM_LABEL = 48; // minimum total height of the rows in px at which the name fits

/** Returns a norm's x within its gap. @param {Scene} scene @param {string} name */
function normX({ place, data }, name) {
  const shift = { norm1: data.is_rotary ? -8 : 0, norm2: data.is_parallel ? 10 : 0 }[name] ?? 0; // leaves room for other signs
  return centre(place[name]) + shift;
}

/** Paints a bar across all rows for each norm except the last. @param {Scene} scene */
function paintNorms(scene) {
  const { ctx, data, place, colours, fonts, bottom } = scene;
  const ink = { font: fonts.note, colour: colours.muted };
  const names = [...(data.has_pre_norm ? ["norm1", "norm2"] : []), "after1", "after2"];
  for (const name of names.filter((each) => place[each])) {
    const x = normX(scene, name);
    fill(ctx, [x - 2, HEAD - 2, 4, bottom - HEAD + 4, 2], colours.muted, 0.35);
    if (bottom - HEAD < NORM_LABEL) continue;
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

/** Paints the selected row's residual stream around attention and around the feed-forward network. @param {Scene} scene */
function paintRail(scene) {
  const { ctx, place, data, bottom, colours, fonts, chosen } = scene;
  const low = bottom + 20;
  const y = middle(scene, chosen);

  /** Paints a line from a strip, below the rows and up to an addition. @param {number} from @param {number} to @param {number} rail y @param {string} name */
  const passage = (from, to, rail, name) => {
    const x = from + 9;
    const path = `M${from} ${y}H${x - 7}Q${x} ${y} ${x} ${y + 7}V${rail - 10}Q${x} ${rail} ${x + 10} ${rail}H${to - 10}Q${to} ${rail} ${to} ${rail - 10}V${y + 9}`;
    stroke(ctx, path, colours.muted, 2, 0.6);
    ctx.font = fonts.name;
    const [room, at] = [ctx.measureText(name).width + 16, (x + to) / 2];
    fill(ctx, [at - room / 2, rail - 8, room, 16], colours.surface);
    write(ctx, name, at, rail, { font: fonts.name, colour: colours.muted, align: "center" });
  };
  if (!data.is_parallel) {
    for (const [from, plus] of [["pre", "plus1"], ["mid", "plus2"]]) passage(right(place[from]), centre(place[plus]), low, t("flow.stream"));
    return;
  }
  const end = centre(place.plus2);
  passage(right(place.att), end - 6, low, t("flow.short.att"));
  passage(right(place.pre), end + 3, low + 22, t("flow.stream"));
  const [x, rail] = [place.norm2.x + 24, low + 22]; // the feed-forward network reads the same vector
  stroke(ctx, `M${x - 10} ${rail}Q${x} ${rail} ${x} ${rail - 10}V${y + 7}Q${x} ${y} ${x + 7} ${y}H${normX(scene, "norm2") - 2}`, colours.muted, 2, 0.6);
}

const SIGNS = {
  plus: "M-0.5 0H0.5M0 -0.5V0.5",
  times: "M-0.35 -0.35L0.35 0.35M0.35 -0.35L-0.35 0.35",
  equals: "M-0.45 -0.25H0.45M-0.45 0.25H0.45",
  turn: "M-0.47 -0.28A0.55 0.55 0 1 1 0 0.55M0.38 0.2L-0.06 0.55L0.35 0.9",
};

/** Paints a sign in the selected row wherever vectors are added, multiplied or rotated. @param {Scene} scene */
function paintMarks(scene) {
  const { ctx, place, data, colours, chosen } = scene;
  const y = middle(scene, chosen);
  const sign = (/** @type {number} */ x, /** @type {number} */ radius, /** @type {keyof typeof SIGNS} */ name) => {
    fill(ctx, disc(x, y, radius), colours.card);
    stroke(ctx, disc(x, y, radius), colours.muted, 1.5);
    ctx.save();
    ctx.translate(x, y);
    ctx.scale(radius, radius);
    stroke(ctx, SIGNS[name], colours.text, 1.4 / radius);
    ctx.restore();
  };
  for (const plus of ["plus1", "plus2"]) if (place[plus]) sign(centre(place[plus]), 9, "plus");
  if (place.pos) sign((right(place.tok) + place.pos.x) / 2, 6, "plus");
  if (place.gate) {
    sign((right(place.gate) + place.up.x) / 2, 8, "times");
    sign((right(place.up) + place.ff.x) / 2, 8, "equals");
  }
  if (data.is_rotary) for (const part of ["q", "k"]) sign(place[part].x - 8, 6.5, "turn");
}

// Texts: input tokens on the left, next tokens on the right, column names above

const NAMED = ["tok", "pos", "pre", "q", "k", "weights", "v", "z", "att", "mid", "gate", "up", "ff", "out", "post", "fin"];

/** Paints the tokens at the left edge of the visible area. @param {Scene} scene */
function paintTokens(scene) {
  const { ctx, data, place, colours, fonts, heights, chosen, scrolled, height, bottom } = scene;
  const edge = right(place.tokens) + scrolled;
  if (scrolled) fill(ctx, [scrolled, 0, place.tokens.w + 8, height], colours.card);
  data.tokens.forEach((token, row) => {
    const y = middle(scene, row);
    if (heights[row] < 12) return fill(ctx, [edge - 10, y - 0.75, 10, 1.5], colours.muted, 0.45);
    ctx.font = fonts.token;
    const text = clipped(ctx, token, place.tokens.w - 14);
    const alpha = row === chosen ? 1 : 0.6 + 0.4 * Math.min(1, row < chosen ? 4 * data.row[row] : 0);
    write(ctx, text, edge, y + 0.5, { font: fonts.token, colour: row > chosen ? colours.muted : colours.text, align: "right", alpha });
    const room = ctx.measureText(text).width + 12;
    if (row === chosen) stroke(ctx, [edge - room + 6, y - 11.5, room, 23, 6], colours.text, 2);
  });
  const after = data.total - data.start - data.tokens.length;
  const quiet = { font: fonts.note, colour: colours.muted, align: /** @type {const} */ ("right") };
  if (data.start) write(ctx, t("flow.before", { n: data.start }), edge, HEAD - 14, quiet);
  if (after > 0) write(ctx, t("flow.after", { n: after }), edge, bottom + 14, quiet);
}

/** @param {Scene} scene */
function paintNext(scene) {
  const { ctx, data, place, colours, fonts, chosen } = scene;
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
    fill(ctx, band([right(place.fin), start + share / 2, share], [x, y, Math.max(1, (18 * p) / most)]), colours.after, 0.35);
    start += share;
    fill(ctx, [x, y - 11, Math.max(1.5, ((w - Math.max(...rooms)) * p) / most), 22, 3], colours.before, 0.75);
    ctx.font = fonts.token;
    write(ctx, clipped(ctx, token, w - rooms[n] - 8), x + 7, y + 0.5, { font: n === data.chosen ? fonts.strong : fonts.token, colour: colours.text });
    write(ctx, percent(p), x + w - 2, y + 0.5, { font: fonts.token, colour: n ? colours.muted : colours.text, align: "right" });
  });
}

/** Paints the columns' names above them, with the sizes of their vectors or their purposes. @param {Scene} scene */
function paintNames(scene) {
  const { ctx, data, place, colours, fonts, barsTop } = scene;
  const size = { font: fonts.shape, colour: colours.muted, align: /** @type {const} */ ("center") };
  for (const name of NAMED.filter((each) => place[each])) {
    const [x, colour] = [centre(place[name]), OF_HEAD.includes(name) ? colours.attention : colours.text];
    write(ctx, t(`flow.short.${name}`), x, isExact() ? HEAD - 30 : HEAD - 14, { font: fonts.name, colour, align: "center" });
    if (isExact()) write(ctx, name === "weights" ? `${data.total}×${data.total}` : `×${data.strips[name].width}`, x, HEAD - 14, size);
  }
  if (!isExact()) paintPurposes(scene);
  const shared = data.n_head / data.kv_heads;
  if (shared > 1) for (const [name, count] of /** @type {const} */ ([["q", 1], ["k", shared], ["v", shared]])) paintHeads(scene, name, count);
  write(ctx, t("flow.short.embedding"), place.tok.x, 21, { font: fonts.title, colour: colours.text });
  write(ctx, t("flow.short.next"), place.next.x, barsTop - 16, { font: fonts.title, colour: colours.text });
  for (const [name, column] of Object.entries(place)) {
    if (name.startsWith("layer") && column.w >= 7) write(ctx, name.slice(5), centre(column), HEAD - 14, size);
  }
}

/** Paints what the open layer's two parts do. @param {Scene} scene */
function paintPurposes({ ctx, data, place, colours, fonts }) {
  const parts = /** @type {const} */ ([[data.ahead ? "flow.looks_ahead" : "flow.looks_back", place.q, place.att, colours.attention], ["flow.alone", place.gate ?? place.ff, place.out, colours.text]]);
  for (const [key, first, last, colour] of parts) {
    write(ctx, t(key), (first.x + right(last)) / 2, HEAD - 38, { font: fonts.name, colour, align: "center" });
    fill(ctx, [first.x, HEAD - 28, right(last) - first.x, 1], colour);
  }
}

/** Paints a dot above a column for each head that uses it. @param {Scene} scene @param {string} name @param {number} count */
function paintHeads({ ctx, place, colours }, name, count) {
  const step = Math.min(8, place[name].w / count);
  for (let i = 0; i < count; i += 1) fill(ctx, disc(centre(place[name]) + (i - (count - 1) / 2) * step, HEAD - 4, Math.min(3, step / 2)), colours.attention);
}
