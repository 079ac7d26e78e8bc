// Paints a moment of the film. Whatever stays moves from where the last beat has left it to where the next one needs it.

import { clipped, disc, divergingMap, fill, stroke, theme, write } from "../canvas.js";
import { archPath, marginPath } from "../arcs.js";
import { makeShape } from "../dom.js";
import { stripImage } from "../flow/scene.js";
import { t } from "../i18n.js";
import { bytes, percent } from "../labels.js";

/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {[token: string, p: number]} Likely */
/** @typedef {{x: number, y: number, w: number, high: number}} Bar */
/** @typedef {{alpha?: number, colour?: string, align?: CanvasTextAlign}} Look */
/** @typedef {ReturnType<typeof prepared>} Prepared */
/** @typedef {Prepared & Moment & {ctx: Context, unit: number}} Sized  unit: scale of lines and small texts */
/** @typedef {{x: number, y: number, w: number, size: number, at: number}} Place  a word's left edge and middle line; at: its first token */
/** @typedef {{beat: number, share: number, w: number, h: number}} Moment  share: elapsed fraction of the beat; w, h: the stage in px */
/**
 * @typedef {{
 *   beats: {name: string, chapter: number, seconds: number}[], chapters: string[],
 *   words: Record<string, {title: string, says: string}>, layer: number, head: number,
 *   text: {text: string, hidden: boolean, asked: number, cause: boolean}[], asked: string[], weights: number[][],
 *   strips: Record<string, {bins: number, data: string}>, neurons: string,
 *   stories: {starts: string[], ending: string, apart: string[], next: Likely[][]},
 *   guesses: {layer: number, token: string, p: number}[], next: Likely[],
 *   draw: {pieces: [token: string, start: number, p: number][], chosen: number, number: number | null},
 * }} Film  as made by `components/tabs/inside/film.py`. asked: the tokens that the query visits; the last one asks.
 *   weights: of each head, from the last asked token to each. strips: vectors of the asked tokens; `stack` has those after the
 *   guesses' layers.
 * @typedef {Sized & {of: ReturnType<typeof columns>, last: number, places: Place[]}} Stage  last: the asking token; places: of each
 *   token in the text and of the next word
 */

/** Decodes the film's pictures. @param {Film} film @param {Element} root */
export function prepared(film, root) {
  const map = divergingMap(root);
  const images = Object.fromEntries(Object.entries(film.strips).map(([name, strip]) => [name, stripImage(strip, map)]));
  const names = ["text", "muted", "line", "stage", "before", "primary", "accent", "attention", "serif", "sans"];
  return { ...film, images, neurons: bytes(film.neurons), theme: theme(root, names) };
}

/** @type {Record<string, (stage: Stage, share: number) => void>} */ const SCENES = {
  yours: paintText, cause: paintCause, ending: paintStories, differ: paintStories, blind: paintStories, rows: paintRows, ask: paintAsking,
  answer: paintAnswers, mix: paintMixing, add: paintHeads, neurons: paintNeurons, layers: paintLayers, next: paintNext, draw: paintDraw, written: paintWritten,
};
const CUTS = ["ending", "rows"]; // beats before which the picture fades out
const CUT = 0.12; // fraction of a beat

/** @param {Context} ctx @param {Prepared} film @param {Moment | null} moment null for an empty stage */
export function paintFilm(ctx, film, moment) {
  ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  if (!moment) return;
  const { beat, share, w, h } = moment;
  Object.assign(ctx, { imageSmoothingEnabled: false, textBaseline: "middle", lineCap: "round" });
  const isCut = CUTS.includes(film.beats[beat].name) && share < CUT;
  const isBefore = isCut && share < CUT / 2;
  const at = isBefore ? beat - 1 : beat;
  const sized = { ...film, ...moment, beat: at, ctx, unit: Math.max(0.7, Math.min(1.5, w / 1100, h / 420)) };
  const stage = { ...sized, of: columns(sized), last: film.asked.length - 1, places: laidOut(sized) };
  SCENES[film.beats[at].name](stage, isBefore ? 1 : share);
  if (isCut) fill(ctx, [0, 0, w, h], film.theme.stage, 1 - Math.abs(1 - (2 * share) / CUT));
}

/** Returns a text's width in the serif. @param {Sized} stage @param {string} text @param {number} size */
function widthOf({ ctx, theme }, text, size) {
  ctx.font = `${size}px ${theme.serif}`;
  return ctx.measureText(text).width;
}

/** Writes a word of the model's in the serif. @param {Stage} stage @param {string} text @param {number} x @param {number} y @param {number} size @param {Look & {weight?: number}} [look] */
function word({ ctx, theme }, text, x, y, size, { colour = theme.text, weight = 400, ...look } = {}) {
  write(ctx, text, x, y, { font: `${weight} ${size}px ${theme.serif}`, colour, ...look });
}

/** Writes a label or number in the sans. @param {Stage} stage @param {string} text @param {number} x @param {number} y @param {Look & {size?: number}} [look] */
function note({ ctx, theme, unit }, text, x, y, { colour = theme.muted, size = 15 * unit, ...look } = {}) {
  write(ctx, text, x, y, { font: `${Math.max(12, size)}px ${theme.sans}`, colour, align: "center", ...look });
}

/** Strokes part of a path, from its beginning. @param {Stage} stage @param {string} path @param {string} colour @param {number} width @param {number} grown @param {number} [alpha] */
function line({ ctx, w, h }, path, colour, width, grown, alpha = 1) {
  if (!grown) return;
  ctx.setLineDash(grown < 1 ? [grown * makeShape("path", { d: path }).getTotalLength(), 2 * (w + h)] : []);
  stroke(ctx, path, colour, width, alpha);
  ctx.setLineDash([]);
}

// 1. The visitor's text

const CJK = /^[\u2e80-\u9fff\uff00-\uffef]/;

/**
 * Lays out the text and the word after it, in centred lines of the largest size at which everything fits.
 * @param {Sized} stage @returns {Place[]} of each token and of the next word
 */
function laidOut(stage) {
  const { text, next, w, h } = stage;
  const tokens = [...text.map((each) => each.text), next[0]?.[0] ?? ""].map((token) => token.replace(/[^\S\n]/g, " "));
  /** @type {number[][]} */ const words = [];
  tokens.forEach((token, i) => {
    if (!i || i === text.length || /^\s/.test(token) || CJK.test(token)) words.push([]);
    words[words.length - 1].push(i);
  });
  const largest = Math.max(24, Math.min(56, w / 22));
  for (let size = largest; ; size -= 2) {
    const whole = widthOf(stage, tokens.join(""), size);
    if (whole > w - 48 && size > largest * 0.7 && (whole * 0.7 * largest) / size < w - 48) continue; // it fits on one line
    const widths = tokens.map((token) => widthOf(stage, token.replaceAll("\n", ""), size));
    const total = (/** @type {number[]} */ each) => each.reduce((sum, i) => sum + widths[i], 0);
    /** @type {number[][]} */ const lines = [];
    let room = 0;
    for (const each of words) {
      if (!lines.length || total(each) > room || tokens[each[0]].startsWith("\n")) {
        lines.push([]);
        room = w - 48;
      }
      room -= total(each);
      lines[lines.length - 1].push(...each);
    }
    const high = (lines.length > 2 ? 1.45 : 1.7) * size;
    if (size > 12 && (lines.length * high > 0.5 * h || widths.some((each) => each > w - 48))) continue;
    const top = Math.max(0.32 * h - ((lines.length - 1) * high) / 2, 1.6 * size);
    const lead = (/** @type {number} */ i) => (tokens[i].startsWith(" ") ? widthOf(stage, " ", size) : 0);
    return lines.flatMap((each, row) => {
      let x = (w - total(each) - lead(each[0])) / 2;
      return each.map((i) => {
        x += widths[i];
        return { x: x - widths[i] + lead(i), y: top + row * high, w: widths[i] - lead(i), size, at: i };
      });
    });
  }
}

/** Writes an asked token over its column. @param {Stage} stage @param {number} i @param {Look} [look] */
function name(stage, i, look) {
  const { of, asked } = stage;
  word(stage, asked[i].replace(/^·/, ""), of.x(i), of.y, of.sizes[i], { align: "center", ...look });
}

/**
 * Paints the text. Towards the columns, the asked tokens move over their columns and the others vanish.
 * @param {Stage} stage @param {number} shown 0..1 @param {number} [moved] towards the columns
 */
function paintWords(stage, shown, moved = 0) {
  const { ctx, text, theme, asked, of, places, last } = stage;
  text.forEach((each, i) => {
    const { x, y, w, size } = places[i];
    const isMoving = each.asked >= 0;
    const alpha = (each.hidden ? 0.25 : 1) * within(shown * (text.length + 3), i, i + 3) * (isMoving ? 1 : 1 - within(moved, 0, 0.5));
    const [toX, toY, toSize] = isMoving ? [of.x(each.asked), of.y, of.sizes[each.asked]] : [x + w / 2, y, size];
    const colour = each.asked === last && moved > 0.5 ? theme.accent : theme.text;
    word(stage, each.text.trim(), between(x + w / 2, toX, moved), between(y, toY, moved), between(size, toSize, moved), { alpha, align: "center", colour });
    if (each.hidden) fill(ctx, [x, y, w, 2], theme.text, alpha);
  });
  asked.forEach((_, i) => {
    if (!text.some((each) => each.asked === i)) name(stage, i, { alpha: within(moved, 0.5, 1) });
  });
}

/** Returns where the first bar of n next tokens is. @param {Stage} stage @param {number} top as a fraction of the height @returns {Bar} */
function barsAt({ w, h, unit }, top, n = 3) {
  const wide = Math.min(w - 48, 720 * unit);
  const high = Math.min(52 * unit, (h * (0.96 - top)) / n);
  return { x: (w - wide) / 2, y: h * top + high / 2, w: wide, high };
}

/** Paints the bar of one next token. @param {Stage} stage @param {Likely} next @param {Bar} place @param {number} grown @param {number} [alpha] */
function bar(stage, [token, p], { x, y, w, high }, grown, alpha = grown) {
  const { ctx, theme } = stage;
  const size = Math.min(34, high * 0.6, w / 12);
  const names = 0.34 * w;
  widthOf(stage, "", size); // sets the font
  word(stage, clipped(ctx, token.trim() || "␣", names - 16), x + names - 16, y, size, { alpha, align: "right" });
  const long = Math.max(3, (w - names - 4.4 * size) * p * grown);
  fill(ctx, [x + names, y - 0.55 * size, long, 1.1 * size, 4], theme.primary, alpha);
  note(stage, percent(p), x + names + long + 0.4 * size, y, { alpha, align: "left", colour: theme.text, size: 0.7 * size });
}

/** Paints the bars of the next tokens below each other. @param {Stage} stage @param {Bar} at  the first bar @param {(i: number) => [grown: number, alpha?: number]} look */
function bars(stage, at, look) {
  stage.next.forEach((each, i) => bar(stage, each, { ...at, y: at.y + i * at.high }, ...look(i)));
}

/** Paints the line on which the next word will stand. @param {Stage} stage @param {number} alpha */
function gap({ ctx, theme, places }, alpha) {
  const { x, y, w, size } = places[places.length - 1];
  fill(ctx, [x, y + 0.55 * size, Math.max(w, size), 3], theme.primary, alpha);
}

/** Paints the text, and the likeliest next tokens. @param {Stage} stage @param {number} share */
function paintText(stage, share) {
  paintWords(stage, within(share, 0, 0.4));
  gap(stage, within(share, 0.4, 0.5));
  bars({ ...stage, next: stage.next.slice(0, 3) }, barsAt(stage, 0.62), (i) => [within(share, 0.55 + 0.06 * i, 0.8 + 0.06 * i)]);
}

/** Paints an arch from the word that the prediction depends on. @param {Stage} stage @param {number} share */
function paintCause(stage, share) {
  const { ctx, text, theme, unit, places } = stage;
  paintText(stage, 1);
  const from = places.filter(({ at }) => text[at]?.cause);
  const to = places[places.length - 1];
  if (!from.length) return;
  const [first, last] = [from[0], from[from.length - 1]];
  const right = last.y === first.y ? last.x + last.w : first.x + first.w;
  const edge = Math.min(...places.map(({ x }) => x)); // of the text; an arch between two lines runs beside it
  const isOneLine = to.y === first.y;
  const shift = isOneLine ? 0 : edge;
  const start = { x: (first.x + right) / 2 - shift, y: first.y - 0.6 * first.size };
  const goal = { x: to.x + Math.max(to.w, to.size) / 2 - shift, y: to.y - 0.6 * to.size };
  const room = first.y === places[0].y ? start.y - 8 : 0.5 * first.size;
  const path = isOneLine ? archPath(start, goal, room) : marginPath(start, goal, -Math.min(40, edge - 6), 0.25 * to.size);
  word(stage, from.map(({ at }) => text[at].text).join("").trim(), first.x, first.y, first.size, { colour: theme.primary, alpha: within(share, 0.1, 0.25) });
  ctx.translate(shift, 0);
  line(stage, path, theme.primary, 5 * unit, within(share, 0.2, 0.6));
  ctx.translate(-shift, 0);
}

// 2. Two texts with the same ending

/** Paints the two texts, and the predictions after each and after the ending alone. @param {Stage} stage @param {number} share */
function paintStories(stage, share) {
  const { ctx, stories, w, h, beat, beats, theme, unit } = stage;
  const { starts, ending, apart, next } = stories;
  const { name } = beats[beat];
  const isBlind = name === "blind";
  const isNarrow = w < 700;
  const wide = isNarrow ? w - 48 : Math.min(w * 0.5, 760);
  const longest = Math.max(...starts.map((start) => widthOf(stage, `${start} ${ending}`, 40 * unit)));
  const size = 40 * unit * Math.min(1, wide / longest);
  const end = (isNarrow ? 24 : w * 0.08) + wide;
  const rows = isBlind ? 3 : 2;
  const width = (/** @type {string} */ each) => widthOf(stage, each, size);
  [...starts.map((start) => `${start} `), ""].slice(0, rows).forEach((start, i) => {
    const isAlone = i === 2; // the two texts make room for it
    const y = h * between((i + 0.55) / 2, (i + 0.6) / rows, isAlone ? 1 : isBlind ? within(share, 0, 0.2) : 0);
    const written = name === "ending" ? within(share, 0.15 + 0.1 * i, 0.8) : isAlone ? within(share, 0.2, 0.35) : 1;
    const whole = start + ending;
    const left = end - width(whole);
    if (written === 1) fill(ctx, [end - width(ending) - 6, y - 0.75 * size, width(ending) + 12, 1.5 * size, 8], theme.line);
    word(stage, whole.slice(0, Math.round(whole.length * written)), left, y, size);
    const grown = name === "ending" ? 0 : name === "differ" ? within(share, 0.1 + 0.2 * i, 0.45 + 0.2 * i) : isAlone ? within(share, 0.35, 0.55) : 1;
    const high = Math.min(44 * unit, (h / rows) * 0.24);
    const shown = next[i]?.slice(0, isNarrow ? 1 : 3) ?? [];
    if (grown) {
      shown.forEach((each, n) => {
        const beside = { x: end + 24, w: w * 0.94 - end - 24, high, y: y + (n - (shown.length - 1) / 2) * high };
        bar(stage, each, isNarrow ? { x: 12, w: w - 24, high, y: y + 1.1 * size + high / 2 } : beside, grown);
      });
    }
    if (!isBlind || isAlone) return;
    const back = within(share, 0.6, 0.85);
    const at = left + width(start.slice(0, start.indexOf(apart[i])));
    const [from, to] = [end - 0.3 * size, at + width(apart[i]) / 2].map((x) => ({ x, y: y - 0.8 * size }));
    line(stage, archPath(from, to, Math.min(1.6 * size, h / rows - 1.6 * size, from.y - 4)), theme.primary, 3 * unit, back);
    word(stage, apart[i], at, y, size, { colour: theme.primary, alpha: within(back, 0.8, 1) });
  });
}

// 3. Attention: a column for each asked token, with its vectors below its name

/** @param {Sized} stage */
function columns(stage) {
  const { asked, w, h, unit } = stage;
  const wide = Math.min((w - 24) / asked.length, 260 * unit);
  const left = (w - asked.length * wide) / 2;
  const y = 0.34 * h;
  const largest = Math.min(40 * unit, wide * 0.3);
  const strip = { w: wide * 0.78, h: Math.min(30 * unit, 0.07 * h) };
  const first = y + 0.7 * largest;
  const rows = (h - first - strip.h / 2 - 30 * unit) / 2.4; // a label fits below the last one
  return {
    x: (/** @type {number} */ i) => left + (i + 0.5) * wide,
    y, // of the names
    sizes: asked.map((token) => largest * Math.min(1, (wide - 12) / widthOf(stage, token.replace(/^·/, ""), largest))),
    strip,
    stream: first + 0.45 * rows, // y of the stream's vectors, of keys and values, and of queries and outputs
    keys: first + 1.4 * rows,
    queries: first + 2.4 * rows,
  };
}

/**
 * Paints a vector, centred. @param {Stage} stage @param {string} name of the strip @param {number} row @param {number} x @param {number} y
 * @param {{alpha?: number, w?: number, h?: number, label?: string, frame?: string}} [look]
 */
function vector(stage, name, row, x, y, { alpha = 1, w = stage.of.strip.w, h = stage.of.strip.h, label = "", frame } = {}) {
  const { ctx, unit } = stage;
  const image = stage.images[name];
  ctx.globalAlpha = alpha;
  ctx.drawImage(image, 0, row, image.width, 1, x - w / 2, y - h / 2, w, h);
  if (frame) stroke(ctx, [x - w / 2 - 2, y - h / 2 - 2, w + 4, h + 4, 4], frame, 2.5 * unit, alpha);
  ctx.globalAlpha = 1;
  note(stage, label, x, y + h / 2 + 13 * unit, { alpha });
}

/**
 * Paints a vector of each asked token on its way from one height to another.
 * @param {Stage} stage @param {string} name @param {number} from @param {number} to @param {(i: number) => number} moved @param {string} [label]
 */
function vectors(stage, name, from, to, moved, label) {
  stage.asked.forEach((_, i) => vector(stage, name, i, stage.of.x(i), between(from, to, moved(i)), { alpha: moved(i), label }));
}

/** Paints the words over their columns, and the stream's vectors. @param {Stage} stage @param {number} [alpha] */
function paintColumns(stage, alpha = 1) {
  paintWords(stage, 1, 1);
  vectors(stage, "pre", stage.of.stream, stage.of.stream, () => alpha);
}

/** Paints arches from the asked tokens to the one that asks. @param {Stage} stage @param {number} head @param {number} grown @param {number} [alpha] */
function arches(stage, head, grown, alpha = 1) {
  const { weights, theme, unit, of, last } = stage;
  const y = of.y - 0.7 * of.sizes[last];
  const off = 5 * unit * (head - stage.head); // the heads' arches stand beside each other
  weights[head].forEach((weight, i) => {
    const [from, to] = [of.x(i), of.x(last)].map((x) => ({ x: x + off, y }));
    const [reach, top] = [60 * unit, y - 64 * unit];
    const own = `M${to.x - 6} ${y}C${to.x - reach} ${top} ${to.x + reach} ${top} ${to.x + 6} ${y}`;
    line(stage, i === last ? own : archPath(from, to, y - 8 - Math.abs(off)), theme.attention, (1 + 9 * weight) * unit, grown, alpha * (0.25 + 0.75 * weight));
  });
}

/** Paints the text turning into columns of vectors. @param {Stage} stage @param {number} share */
function paintRows(stage, share) {
  paintWords(stage, 1, within(share, 0.2, 0.5));
  vectors(stage, "pre", stage.of.y, stage.of.stream, (i) => within(share, 0.5 + 0.05 * i, 0.7 + 0.05 * i));
}

/** Paints the query and the keys. @param {Stage} stage @param {number} share */
function paintAsking(stage, share) {
  const { of, last, theme } = stage;
  paintColumns(stage);
  vectors(stage, "k", of.stream, of.keys, (i) => within(share, 0.5 + 0.05 * i, 0.75 + 0.05 * i), t("flow.short.k"));
  const alpha = within(share, 0.1, 0.4);
  vector(stage, "q", last, of.x(last), between(of.stream, of.queries, alpha), { alpha, frame: theme.attention, label: t("flow.short.q") });
}

/** Writes the weight of an asked token where its column ends. @param {Stage} stage @param {number} i @param {number} alpha */
function paintWeight(stage, i, alpha) {
  const { weights, head, theme, unit, of } = stage;
  const weight = weights[head][i];
  note(stage, percent(weight), of.x(i), of.queries, { alpha, colour: theme.text, size: (17 + 13 * weight) * unit });
}

/** Paints the query visiting each key; at the end, the scores become shares. @param {Stage} stage @param {number} share */
function paintAnswers(stage, share) {
  const { ctx, asked, weights, head, theme, unit, of, last, w } = stage;
  const grown = within(share, 0.74, 0.9);
  const low = of.queries + of.strip.h / 2 + 14 * unit;
  paintColumns(stage, between(1, 0.4, within(share, 0, 0.1)));
  let at = of.x(last);
  visits(asked.length).forEach(({ leaves, arrives, answers, lands }, n) => {
    const i = last - n;
    at = between(at, of.x(i), within(share, leaves, arrives));
    const isMet = share >= arrives && share < lands;
    vector(stage, "k", i, of.x(i), of.keys, { label: t("flow.short.k"), frame: isMet ? theme.attention : "" });
    const radius = (4 + 8 * Math.sqrt(weights[head][i])) * unit;
    fill(ctx, disc(of.x(i), low, radius), theme.attention, within(share, answers, lands) * (1 - grown));
    paintWeight(stage, i, grown);
  });
  vector(stage, "q", last, at, of.queries, { alpha: 1 - within(share, 0.7, 0.76), frame: theme.attention });
  arches(stage, head, grown);
  const others = 1 - weights[head].reduce((sum, weight) => sum + weight, 0);
  if (others > 0.005) note(stage, t("film.others", { p: percent(others) }), w / 2, low, { alpha: within(share, 0.85, 0.95) });
}

/** Paints the values flowing into the mix, each as tall as its share. @param {Stage} stage @param {number} share */
function paintMixing(stage, share) {
  const { asked, weights, head, theme, of, last } = stage;
  paintColumns(stage);
  arches(stage, head, 1);
  const [gone, moved, flown] = [1 - within(share, 0, 0.12), within(share, 0.1, 0.35), within(share, 0.45, 0.8)];
  vectors(stage, "k", of.keys, of.keys, () => gone);
  asked.forEach((_, i) => {
    const weight = weights[head][i];
    vector(stage, "v", i, of.x(i), between(of.stream, of.keys, moved), { alpha: moved, label: `${t("flow.short.v")} · ${percent(weight)}` });
    paintWeight(stage, i, gone);
    if (!flown || flown === 1) return;
    const h = between(1, Math.max(0.06, weight), flown) * of.strip.h;
    vector(stage, "v", i, between(of.x(i), of.x(last), flown), between(of.keys, of.queries, flown), { h, alpha: 0.9 });
  });
  vector(stage, "z", last, of.x(last), of.queries, { alpha: within(share, 0.75, 0.85), frame: theme.attention, label: t("flow.short.z") });
}

/** Paints the results of all heads flowing into the asking token's vector. @param {Stage} stage @param {number} share */
function paintHeads(stage, share) {
  const { ctx, weights, head, theme, of, last } = stage;
  paintColumns(stage);
  const n = weights.length;
  const x = of.x(last);
  const moved = within(share, 0.6, 0.85);
  const [y, step] = [between(of.queries, of.stream, moved), of.strip.w / n];
  vectors(stage, "v", of.keys, of.keys, () => 1 - within(share, 0, 0.15), t("flow.short.v"));
  weights.forEach((_, each) => {
    const [isOwn, delay] = [each === head, (0.25 * each) / n];
    arches(stage, each, isOwn ? 1 : within(share, 0.1 + delay, 0.3 + delay), isOwn ? 1 : 0.6);
    const shown = isOwn ? 1 : within(share, 0.2 + delay, 0.35 + delay);
    const spread = 1 - within(share, 0.45, 0.6); // the outputs are placed side by side
    const left = x + (each - (n - 1) / 2) * step * (1 + 0.35 * spread) - step / 2 + 1;
    fill(ctx, [left, y - of.strip.h / 2, step - 2, of.strip.h], theme.attention, shown * (1 - within(share, 0.8, 0.88)) * (isOwn ? 1 : 0.55));
  });
  vector(stage, "z", last, x, of.queries, { alpha: 1 - within(share, 0, 0.2), frame: theme.attention });
  vector(stage, "mid", last, x, of.stream, { alpha: within(share, 0.8, 0.9), frame: theme.attention });
}

// 4. Layer after layer to the next token

/** Returns where the neurons are, and the vector that they read. @param {Stage} stage */
const aside = ({ w, h }) =>
  w < h
    ? { x: w / 2, y: 0.1 * h, left: 24, top: 0.34 * h, wide: w - 48, high: 0.6 * h }
    : { x: 0.2 * w, y: 0.4 * h, left: 0.42 * w, top: 0.1 * h, wide: 0.5 * w, high: 0.8 * h };

/** Paints the neurons that respond to the token. @param {Stage} stage @param {number} share @param {number} [alpha] */
function paintNeurons(stage, share, alpha = 1) {
  const { ctx, asked, neurons, weights, head, theme, unit, of, last, w, h } = stage;
  const place = aside(stage);
  const [moved, gone] = [within(share, 0, 0.2), 1 - within(share, 0, 0.1)];
  const [x, y] = [between(of.x(last), place.x, moved), between(of.y, place.y, moved)];
  asked.slice(0, last).forEach((_, i) => {
    name(stage, i, { alpha: gone });
    vector(stage, "pre", i, of.x(i), of.stream, { alpha: gone });
  });
  weights.forEach((_, each) => arches(stage, each, 1, gone * (each === head ? 1 : 0.6)));
  word(stage, asked[last].replace(/^·/, ""), x, y, of.sizes[last], { colour: theme.accent, align: "center", alpha });
  const level = y + of.stream - of.y;
  vector(stage, "mid", last, x, level, { alpha });
  vector(stage, "post", last, x, level, { alpha: alpha * within(share, 0.8, 0.92) });
  const across = Math.max(1, Math.round(Math.sqrt((neurons.length * place.wide) / place.high)));
  const cell = Math.min(place.wide / across, place.high / Math.ceil(neurons.length / across));
  const lit = within(share, 0.25, 0.7) * 1.001;
  const path = w < h ? `M${x} ${level + of.strip.h}V${place.top - 6}` : `M${x + of.strip.w / 2 + 8} ${level}H${place.left - 12}`;
  line(stage, path, theme.muted, 2 * unit, within(share, 0.15, 0.25), 0.6 * alpha);
  neurons.forEach((value, i) => {
    const [column, row] = [i % across, Math.floor(i / across)];
    const isLit = column / across < lit;
    const at = disc(place.left + (column + 0.5) * cell, place.top + (row + 0.5) * cell, 0.36 * cell);
    fill(ctx, at, isLit && value > 24 ? theme.text : theme.muted, alpha * moved * (isLit ? 0.12 + 0.88 * (value / 255) : 0.12));
  });
}

/** Returns where the guess after a layer stands. @param {Stage} stage @param {number} i */
function guessAt({ w, h, unit, guesses }, i) {
  const high = Math.min(72 * unit, (0.94 * h) / guesses.length);
  const wide = Math.min(w - 32, 1000 * unit);
  const left = (w - wide) / 2;
  const y = (h - guesses.length * high) / 2 + (i + 0.5) * high;
  const strip = { w: 0.2 * wide, h: 0.42 * high, x: left + 0.1 * wide };
  const label = w < 560 ? { x: left, y: y + 0.42 * high } : { x: left + 0.23 * wide, y }; // below the strip on a narrow stage
  return { y, strip, label, bar: { x: left + 0.28 * wide, y, w: 0.72 * wide, high } };
}

/** Paints the vector after a layer, from the height of the one above to its own. @param {Stage} stage @param {number} i @param {number} alpha @param {number} [moved] */
function paintLayer(stage, i, alpha, moved = 1) {
  const { guesses, theme, layer: followed } = stage;
  const { layer } = guesses[i];
  const { y, strip, label } = guessAt(stage, i);
  vector(stage, "stack", i, strip.x, between(guessAt(stage, Math.max(0, i - 1)).y, y, moved), { ...strip, alpha });
  note(stage, t("film.layer", { n: layer }), label.x, label.y, { alpha, align: "left", colour: layer === followed ? theme.attention : theme.muted });
}

/** Paints the vector running through the layers, with what the model would predict after some of them. @param {Stage} stage @param {number} share */
function paintLayers(stage, share) {
  const { guesses, theme, unit, of, last } = stage;
  if (share < 0.15) paintNeurons(stage, 1, 1 - within(share, 0, 0.12));
  const passed = share >= 0.9 ? guesses.length : Math.max(0, (share - 0.12) / 0.75) * guesses.length;
  guesses.forEach(({ token, p }, i) => {
    const { y, strip, bar: place } = guessAt(stage, i);
    const shown = within(passed, i, i + 0.6);
    const from = guessAt(stage, i - 1).y + strip.h / 2;
    if (i) line(stage, `M${strip.x} ${from}V${y - strip.h / 2}`, theme.muted, 2 * unit, shown, 0.6);
    paintLayer(stage, i, shown, shown);
    bar(stage, [token, p], place, within(passed, i + 0.3, i + 0.9));
  });
  const [place, at, moved] = [aside(stage), guessAt(stage, 0), within(share, 0.04, 0.14)];
  vector(stage, "post", last, between(place.x, at.strip.x, moved), between(place.y + of.stream - of.y, at.y, moved), {
    w: between(of.strip.w, at.strip.w, moved), h: between(of.strip.h, at.strip.h, moved), alpha: 1 - within(share, 0.14, 0.2),
  });
}

/** Paints the last layer's guess becoming the first of the next tokens. @param {Stage} stage @param {number} share */
function paintNext(stage, share) {
  const { guesses, next } = stage;
  const gone = 1 - within(share, 0, 0.15);
  guesses.forEach(({ token, p }, i) => {
    if (i < guesses.length - 1) bar(stage, [token, p], guessAt(stage, i).bar, 1, gone);
    paintLayer(stage, i, gone);
  });
  const [from, to] = [guessAt(stage, guesses.length - 1).bar, barsAt(stage, 0.12, next.length)];
  const moved = within(share, 0.1, 0.4);
  const first = { x: between(from.x, to.x, moved), y: between(from.y, to.y, moved), w: between(from.w, to.w, moved), high: between(from.high, to.high, moved) };
  bar(stage, next[0], first, 1);
  next.slice(1).forEach((each, i) => bar(stage, each, { ...to, y: to.y + (i + 1) * to.high }, within(share, 0.48 + 0.08 * i, 0.68 + 0.08 * i)));
}

/** Returns the line on which the chances are laid end to end. @param {Stage} stage */
const lineAt = ({ w, h, unit }) => ({ x: Math.max(24, (w - 1000 * unit) / 2), y: 0.55 * h, w: Math.min(w - 48, 1000 * unit), high: 64 * unit });

/** Paints the chances laid end to end, and the random number that falls on one of them. @param {Stage} stage @param {number} share */
function paintDraw(stage, share) {
  const { ctx, next, draw, theme, unit, h } = stage;
  const of = barsAt(stage, 0.12, next.length);
  const { pieces, chosen, number } = draw;
  if (number === null) return bars(stage, of, (i) => [1, i ? 1 - 0.7 * within(share, 0.3, 0.6) : 1]);
  const at = lineAt(stage);
  bars(stage, of, () => [1, 1 - within(share, 0.02, 0.2)]);
  fill(ctx, [at.x, at.y - at.high / 2, at.w, at.high, 6], theme.line, within(share, 0.15, 0.3));
  pieces.forEach(([token, start, p], i) => {
    const from = next.findIndex(([each]) => each === token);
    const moved = within(share, 0.1 + 0.03 * i, 0.45 + 0.03 * i);
    if (!moved) return;
    const isDrawn = i === chosen && share > 0.8;
    const x = between(of.x + 0.3 * of.w, at.x + start * at.w, moved);
    const y = between(of.y + (from < 0 ? next.length : from) * of.high, at.y, moved);
    const high = between(0.6 * of.high, at.high, moved);
    const w = Math.max(1.5, p * between(0.5 * of.w, at.w, moved) - 2);
    fill(ctx, [x + 1, y - high / 2, w, high, Math.min(4, w / 2)], isDrawn ? theme.primary : theme.before, share > 0.8 && !isDrawn ? 0.35 : 1);
    const size = Math.min(30 * unit, 0.6 * high);
    if (widthOf(stage, token.trim(), size) < w - 8) word(stage, token.trim(), x + 1 + w / 2, y, size, { align: "center", colour: isDrawn ? theme.stage : theme.text });
  });
  for (const end of [0, 1]) note(stage, end ? "100%" : "0%", at.x + end * at.w, at.y + at.high / 2 + 18 * unit, { align: end ? "right" : "left", alpha: within(share, 0.2, 0.35) });
  const fallen = within(share, 0.58, 0.8) ** 2;
  const [x, tip] = [at.x + number * at.w, between(0.05 * h, at.y - at.high / 2 - 4, fallen)];
  if (fallen) stroke(ctx, `M${x - 10 * unit} ${tip - 18 * unit}L${x} ${tip}L${x + 10 * unit} ${tip - 18 * unit}M${x} ${tip - 44 * unit}V${tip}`, theme.text, 3 * unit);
  if (fallen) note(stage, percent(number), x, tip - 60 * unit, { colour: theme.text, size: 17 * unit, align: number < 0.1 ? "left" : number > 0.9 ? "right" : "center" });
}

/** Paints the drawn token moving to the end of the text. @param {Stage} stage @param {number} share */
function paintWritten(stage, share) {
  const { draw, theme, next, unit } = stage;
  const [token, start, p] = draw.pieces[draw.chosen];
  const places = laidOut({ ...stage, next: [[token, 1]] });
  const to = places[places.length - 1];
  paintWords({ ...stage, places }, within(share, 0.1, 0.4));
  gap({ ...stage, places }, 1 - within(share, 0.7, 0.9));
  const [at, of] = [lineAt(stage), barsAt(stage, 0.12, next.length)];
  const from = draw.number === null ? { x: of.x + 0.3 * of.w, y: of.y } : { x: at.x + (start + p / 2) * at.w, y: at.y };
  const moved = within(share, 0.15, 0.75);
  const size = between(30 * unit, to.size, moved);
  word(stage, token.trim(), between(from.x, to.x + to.w / 2, moved), between(from.y, to.y, moved), size, { colour: theme.primary, align: "center", weight: 600 });
}

// Time in the film

/** Returns the beat at a time, and its elapsed fraction. @param {number[]} starts the beats' start times, then the end @param {number} time */
export function beatAt(starts, time) {
  const beat = Math.max(0, starts.slice(0, -1).findLastIndex((start) => time >= start));
  return { beat, share: Math.min(1, Math.max(0, (time - starts[beat]) / (starts[beat + 1] - starts[beat]))) };
}

/** Returns the elapsed fraction of part of a beat, eased in and out. @param {number} share elapsed fraction of the beat @param {number} from @param {number} to */
function within(share, from, to) {
  const part = Math.max(0, Math.min(1, (share - from) / (to - from)));
  return part * part * (3 - 2 * part);
}

/** @param {number} a @param {number} b @param {number} share */
const between = (a, b, share) => a + (b - a) * share;

const [FIRST_VISIT, LAST_SCORE] = [0.06, 0.72]; // as fractions of the beat

/**
 * Returns the times at which the followed token's query visits each of n keys, as fractions of the beat. The query
 * leaves and arrives; then the score leaves and lands beside the others. @param {number} n
 */
export function visits(n) {
  const each = (LAST_SCORE - FIRST_VISIT) / n;
  return Array.from({ length: n }, (_, i) => {
    const leaves = FIRST_VISIT + i * each;
    return { leaves, arrives: leaves + 0.5 * each, answers: leaves + 0.6 * each, lands: leaves + each };
  });
}
