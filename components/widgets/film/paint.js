// Paints a moment of the film. Whatever stays moves from where the last beat has left it to where the next one needs it.

import { box, clipped, divergingMap, picture, themed, write } from "../canvas.js";
import { archPath, marginPath } from "../arcs.js";
import { t } from "../i18n.js";
import { bytes, percent } from "../labels.js";

/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {[token: string, p: number][]} Next */
/** @typedef {{bins: number, data: string}} Strip  one vector per row, as in `flow/scene.js` */
/** @typedef {{x: number, y: number, w: number, size: number, at: number}} Place  a word's left edge and middle line; at: its first token */
/**
 * @typedef {object} Film
 * @property {{name: string, chapter: number, seconds: number}[]} beats
 * @property {string[]} chapters
 * @property {Record<string, {title: string, says: string}>} words  texts by beat
 * @property {number} layer
 * @property {{text: string, hidden: boolean, asked: number, cause: boolean}[]} text  the end of the text as written, up to the
 *   followed token. asked: index among the asked tokens, or -1; cause: whether the prediction depends on it most
 * @property {string[]} asked  the tokens that the query visits; the last one asks
 * @property {number[][]} weights  of each head, from the last asked token to each asked token
 * @property {number} head
 * @property {Record<string, Strip>} strips  vectors of the asked tokens; `stack` has those after the guesses' layers
 * @property {string} neurons  base64 of uint8
 * @property {Next} next
 * @property {{starts: string[], ending: string, apart: string[], next: Next[]}} stories  next: next tokens after each start and
 *   the ending, and after the ending alone; empty if the model cannot read them
 * @property {{layer: number, token: string, p: number}[]} guesses
 * @property {{pieces: [token: string, start: number, p: number][], chosen: number, number: number | null}} draw
 *
 * @typedef {object} Prepared
 * @property {Record<string, HTMLCanvasElement>} images  of the strips
 * @property {Uint8Array} neurons
 * @property {Record<"text" | "muted" | "line" | "stage" | "blue" | "bright" | "orange" | "purple" | "serif" | "sans", string>} theme
 *
 * @typedef {object} Moment
 * @property {number} beat
 * @property {number} share  elapsed fraction of the beat
 * @property {number} w  the stage's size in px
 * @property {number} h
 *
 * @typedef {Omit<Film, "neurons"> & Prepared & Moment & {ctx: Context, unit: number}} Stage  unit: scale of lines and small texts
 */

/** @param {Film} film @param {Element} root @returns {Prepared} */
export function prepared(film, root) {
  const map = divergingMap(root);
  const images = Object.entries(film.strips).map(([name, { bins, data }]) => {
    const levels = bytes(data);
    return [name, picture(bins, levels.length / bins, (i) => map[levels[i]])];
  });
  const names = { text: "text", muted: "muted", line: "line", stage: "stage", blue: "before", bright: "primary", orange: "accent", purple: "attention", serif: "serif", sans: "sans" };
  const theme = Object.fromEntries(Object.entries(names).map(([name, variable]) => [name, themed(root, variable)]));
  return { images: Object.fromEntries(images), neurons: bytes(film.neurons), theme: /** @type {Prepared["theme"]} */ (theme) };
}

/** @type {Record<string, (stage: Stage, share: number) => void>} */
const SCENES = {
  yours: paintText, cause: paintCause, ending: paintStories, differ: paintStories, blind: paintStories, rows: paintRows, ask: paintAsking,
  answer: paintAnswers, mix: paintMixing, add: paintHeads, neurons: paintNeurons, layers: paintLayers, next: paintNext, draw: paintDraw, written: paintWritten,
};
const CUTS = ["ending", "rows"]; // beats before which the picture fades out
const CUT = 0.12; // fraction of a beat

/** @param {Context} ctx @param {Film} film @param {Prepared} made @param {Moment | null} moment null for an empty stage */
export function paintFilm(ctx, film, made, moment) {
  ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  if (!moment) return;
  const stage = { ...film, ...made, ...moment, ctx, unit: Math.max(0.7, Math.min(1.5, moment.w / 1100, moment.h / 420)) };
  const { beat, share, w, h } = stage;
  ctx.imageSmoothingEnabled = false;
  ctx.textBaseline = "middle";
  const { name } = film.beats[beat];
  const isCut = CUTS.includes(name) && share < CUT;
  const isBefore = isCut && share < CUT / 2;
  const at = isBefore ? beat - 1 : beat;
  SCENES[film.beats[at].name]({ ...stage, beat: at }, isBefore ? 1 : share);
  if (isCut) fill(stage, [0, 0, w, h, 0], made.theme.stage, 1 - Math.abs(1 - (2 * share) / CUT));
}

/** @param {Stage} stage @param {"serif" | "sans"} kind @param {number} size @param {number} [weight] */
const font = ({ theme }, kind, size, weight = 400) => `${weight} ${size}px ${theme[kind]}`;

/** Returns a text's width in the serif. @param {Stage} stage @param {string} text @param {number} size */
function widthOf(stage, text, size) {
  stage.ctx.font = font(stage, "serif", size);
  return stage.ctx.measureText(text).width;
}

/**
 * Writes a word of the model's in the serif.
 * @param {Stage} stage @param {string} text @param {number} x @param {number} y @param {number} size
 * @param {{alpha?: number, colour?: string, align?: CanvasTextAlign, weight?: number}} [look]
 */
function word(stage, text, x, y, size, { alpha = 1, colour = stage.theme.text, align = "left", weight = 400 } = {}) {
  if (alpha > 0.01) write(stage.ctx, text, x, y, { font: font(stage, "serif", size, weight), colour, align, alpha });
}

/** Writes a label or number in the sans. @param {Stage} stage @param {string} text @param {number} x @param {number} y @param {{alpha?: number, colour?: string, align?: CanvasTextAlign, size?: number}} [look] */
function note(stage, text, x, y, { alpha = 1, colour = stage.theme.muted, align = "center", size = 15 * stage.unit } = {}) {
  if (alpha > 0.01) write(stage.ctx, text, x, y, { font: font(stage, "sans", Math.max(12, size)), colour, align, alpha });
}

/**
 * Fills a disc [x, y, radius] or a box [x, y, width, height, radius of its corners].
 * @param {Stage} stage @param {number[]} shape @param {string} colour @param {number} [alpha]
 */
function fill({ ctx }, [x, y, ...size], colour, alpha = 1) {
  ctx.globalAlpha = alpha;
  ctx.fillStyle = colour;
  if (size.length > 1) box(ctx, x, y, size[0], size[1], size[2]);
  else {
    ctx.beginPath();
    ctx.arc(x, y, size[0], 0, 7);
  }
  ctx.fill();
  ctx.globalAlpha = 1;
}

/** Strokes part of a path, from its beginning. @param {Stage} stage @param {string} path @param {string} colour @param {number} width @param {number} grown @param {number} [alpha] */
function line({ ctx, w, h }, path, colour, width, grown, alpha = 1) {
  if (!grown) return;
  const longest = 2 * (w + h);
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.lineCap = "round";
  ctx.globalAlpha = alpha;
  const shape = new Path2D(path);
  const measure = document.createElementNS("http://www.w3.org/2000/svg", "path");
  measure.setAttribute("d", path);
  ctx.setLineDash(grown < 1 ? [grown * measure.getTotalLength(), longest] : []);
  ctx.stroke(shape);
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

// 1. The visitor's text

const CJK = /^[\u2e80-\u9fff\uff00-\uffef]/;

/**
 * Lays out the text and the word after it, in centred lines of the largest size at which everything fits.
 * @param {Stage} stage @returns {Place[]} of each token and of the next word
 */
function laidOut(stage) {
  const { text, next, w, h } = stage;
  const tokens = [...text.map((each) => each.text), next[0]?.[0] ?? ""].map((token) => token.replace(/\s/g, (space) => (space === "\n" ? "\n" : " ")));
  const largest = Math.max(24, Math.min(56, w / 22));
  for (let size = largest; ; size -= 2) {
    const whole = widthOf(stage, tokens.join(""), size);
    if (whole > w - 48 && size > largest * 0.7 && (whole * 0.7 * largest) / size < w - 48) continue; // it fits on one line
    const widths = tokens.map((token) => widthOf(stage, token.replaceAll("\n", ""), size));
    const space = widthOf(stage, " ", size);
    /** @type {number[][]} */ const lines = [[]];
    let room = w - 48;
    for (let i = 0; i < tokens.length; ) {
      let end = i + 1;
      while (end < tokens.length && !/^\s/.test(tokens[end]) && !CJK.test(tokens[end]) && end < tokens.length - 1) end += 1;
      const wide = widths.slice(i, end).reduce((sum, each) => sum + each, 0);
      const isFirst = !lines[lines.length - 1].length;
      if (!isFirst && (wide > room || tokens[i].startsWith("\n"))) {
        lines.push([]);
        room = w - 48;
      }
      room -= wide;
      for (; i < end; i += 1) lines[lines.length - 1].push(i);
    }
    const high = (lines.length > 2 ? 1.45 : 1.7) * size;
    if (size > 12 && (lines.length * high > 0.5 * h || widths.some((each) => each > w - 48))) continue;
    const top = Math.max(0.32 * h - ((lines.length - 1) * high) / 2, 1.6 * size);
    return lines.flatMap((each, row) => {
      const skipped = tokens[each[0]].startsWith(" ") ? space : 0;
      let x = (w + each.reduce((sum, i) => sum - widths[i], skipped)) / 2 - skipped;
      return each.map((i) => {
        const lead = tokens[i].startsWith(" ") ? space : 0;
        x += widths[i];
        return { x: x - widths[i] + lead, y: top + row * high, w: widths[i] - lead, size, at: i };
      });
    });
  }
}

/**
 * Paints the text. Towards the columns, the asked tokens move over their columns and the others vanish.
 * @param {Stage} stage @param {Place[]} places @param {number} shown 0..1 @param {number} [moved] towards the columns
 */
function paintWords(stage, places, shown, moved = 0) {
  const { text, theme, asked } = stage;
  const of = columns(stage);
  text.forEach((each, i) => {
    const { x, y, w, size } = places[i];
    const isFirst = within(shown * (text.length + 3), i, i + 3);
    const isMoving = each.asked >= 0;
    const alpha = (each.hidden ? 0.25 : 1) * isFirst * (isMoving ? 1 : 1 - within(moved, 0, 0.5));
    const to = isMoving ? { x: of.x(each.asked), y: of.y, size: of.size(each.asked) } : { x: x + w / 2, y, size };
    const at = { x: between(x + w / 2, to.x, moved), y: between(y, to.y, moved), size: between(size, to.size, moved) };
    const isAsking = each.asked === asked.length - 1;
    word(stage, each.text.trim(), at.x, at.y, at.size, { alpha, align: "center", colour: isAsking && moved > 0.5 ? theme.orange : theme.text });
    if (each.hidden && alpha > 0.01) fill(stage, [x, y, w, 2, 0], theme.text, alpha);
  });
  const inText = text.map((each) => each.asked);
  asked.forEach((token, i) => {
    if (!inText.includes(i)) word(stage, token.replace(/^·/, ""), of.x(i), of.y, of.size(i), { alpha: within(moved, 0.5, 1), align: "center" });
  });
}

/** Returns where the bars of the next tokens are. @param {Stage} stage @param {number} top as a fraction of the height */
function barsAt({ w, h, unit }, top, n = 3) {
  const wide = Math.min(w - 48, 720 * unit);
  const high = Math.min(52 * unit, (h * (0.96 - top)) / n);
  return { x: (w - wide) / 2, y: h * top + high / 2, w: wide, high };
}

/** Paints the bar of one next token. @param {Stage} stage @param {[string, number]} next @param {{x: number, y: number, w: number, high: number}} place @param {number} grown @param {number} [alpha] */
function bar(stage, [token, p], { x, y, w, high }, grown, alpha = grown) {
  const { theme } = stage;
  const size = Math.min(34, high * 0.6, w / 12);
  const names = 0.34 * w;
  widthOf(stage, "", size); // sets the font
  word(stage, clipped(stage.ctx, token.trim() || "␣", names - 16), x + names - 16, y, size, { alpha, align: "right" });
  const long = Math.max(3, (w - names - 4.4 * size) * p * grown);
  fill(stage, [x + names, y - 0.55 * size, long, 1.1 * size, 4], theme.bright, alpha);
  note(stage, percent(p), x + names + long + 0.4 * size, y, { alpha, align: "left", colour: theme.text, size: 0.7 * size });
}

/** Paints the line on which the next word will stand. @param {Stage} stage @param {Place} place @param {number} alpha */
function gap(stage, { x, y, w, size }, alpha) {
  fill(stage, [x, y + 0.55 * size, Math.max(w, size), 3, 0], stage.theme.bright, alpha);
}

/** Paints the bars of the next tokens below each other. @param {Stage} stage @param {ReturnType<typeof barsAt>} at  the first bar @param {(i: number) => [grown: number, alpha?: number]} look */
function bars(stage, at, look) {
  stage.next.forEach((each, i) => bar(stage, each, { ...at, y: at.y + i * at.high }, ...look(i)));
}

/** Paints the text, and the likeliest next tokens. @param {Stage} stage @param {number} share */
function paintText(stage, share) {
  const places = laidOut(stage);
  paintWords(stage, places, within(share, 0, 0.4));
  gap(stage, places[places.length - 1], within(share, 0.4, 0.5));
  bars({ ...stage, next: stage.next.slice(0, 3) }, barsAt(stage, 0.62), (i) => [within(share, 0.55 + 0.06 * i, 0.8 + 0.06 * i)]);
}

/** Paints an arch from the word that the prediction depends on. @param {Stage} stage @param {number} share */
function paintCause(stage, share) {
  const { text, theme, unit } = stage;
  paintText(stage, 1);
  const places = laidOut(stage);
  const from = places.filter(({ at }) => text[at]?.cause);
  const to = places[places.length - 1];
  if (!from.length) return;
  const [first, last] = [from[0], from[from.length - 1]];
  const [left, right] = [first.x, last.y === first.y ? last.x + last.w : first.x + first.w];
  const foot = { x: (left + right) / 2, y: first.y - 0.6 * first.size };
  const end = { x: to.x + Math.max(to.w, to.size) / 2, y: to.y - 0.6 * to.size };
  const edge = Math.min(...places.map(({ x }) => x)); // of the text; an arch between two lines runs beside it
  const isOneLine = to.y === first.y;
  const shift = isOneLine ? 0 : edge;
  const [start, goal] = [foot, end].map(({ x, y }) => ({ x: x - shift, y }));
  const room = first.y === places[0].y ? foot.y - 8 : 0.5 * first.size;
  const path = isOneLine ? archPath(start, goal, room) : marginPath(start, goal, -Math.min(40, edge - 6), 0.25 * to.size);
  word(stage, from.map(({ at }) => text[at].text).join("").trim(), left, first.y, first.size, { colour: theme.bright, alpha: within(share, 0.1, 0.25) });
  stage.ctx.translate(shift, 0);
  line(stage, path, theme.bright, 5 * unit, within(share, 0.2, 0.6));
  stage.ctx.translate(-shift, 0);
}

// 2. Two texts with the same ending

/** Paints the two texts, and the predictions after each and after the ending alone. @param {Stage} stage @param {number} share */
function paintStories(stage, share) {
  const { stories, w, h, beat, beats, theme, unit } = stage;
  const { starts, ending, apart, next } = stories;
  const { name } = beats[beat];
  const isNarrow = w < 700;
  const wide = isNarrow ? w - 48 : Math.min(w * 0.5, 760);
  const largest = 40 * unit;
  const longest = Math.max(...starts.map((start) => widthOf(stage, `${start} ${ending}`, largest)));
  const size = largest * Math.min(1, wide / longest);
  const end = isNarrow ? 24 + wide : w * 0.08 + wide;
  const apartAt = name === "blind" ? 3 : 2;
  const lined = name === "blind" ? within(share, 0, 0.2) : 0; // the two texts make room for a third line
  [...starts.map((start) => `${start} `), ""].forEach((start, i) => {
    if (i === 2 && name !== "blind") return;
    const y = h * between((i + 0.55) / 2, (i + 0.6) / apartAt, i === 2 ? 1 : lined);
    const written = name === "ending" ? within(share, 0.15 + 0.1 * i, 0.8) : i === 2 ? within(share, 0.2, 0.35) : 1;
    const whole = start + ending;
    const width = (/** @type {string} */ each) => widthOf(stage, each, size);
    const left = end - width(whole);
    const shared = width(ending);
    if (written === 1) fill(stage, [end - shared - 6, y - 0.75 * size, shared + 12, 1.5 * size, 8], theme.line);
    word(stage, whole.slice(0, Math.round(whole.length * written)), left, y, size);
    const grown = name === "ending" ? 0 : name === "differ" ? within(share, 0.1 + 0.2 * i, 0.45 + 0.2 * i) : i === 2 ? within(share, 0.35, 0.55) : 1;
    const high = Math.min(44 * unit, (h / apartAt) * 0.24);
    const place = isNarrow ? { x: 12, w: w - 24, high, y: y + 1.1 * size + high / 2 } : { x: end + 24, w: w * 0.94 - end - 24, high, y };
    const shown = next[i]?.slice(0, isNarrow ? 1 : 3) ?? [];
    if (grown) shown.forEach((each, n) => bar(stage, each, { ...place, y: isNarrow ? place.y : y + (n - (shown.length - 1) / 2) * high }, grown));
    if (name !== "blind" || i === 2) return;
    const back = within(share, 0.6, 0.85);
    const at = left + width(start.slice(0, start.indexOf(apart[i])));
    const [from, to] = [end - 0.3 * size, at + width(apart[i]) / 2].map((x) => ({ x, y: y - 0.8 * size }));
    line(stage, archPath(from, to, Math.min(1.6 * size, h / apartAt - 1.6 * size, y - 0.8 * size - 4)), theme.bright, 3 * unit, back);
    word(stage, apart[i], at, y, size, { colour: theme.bright, alpha: within(back, 0.8, 1) });
  });
}

// 3. Attention: a column for each asked token, with its vectors below its name

/** @param {Stage} stage */
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
    y,
    row: (/** @type {number} */ n) => first + n * rows,
    strip,
    size: (/** @type {number} */ i) => largest * Math.min(1, (wide - 12) / widthOf(stage, asked[i].replace(/^·/, ""), largest)),
  };
}

/**
 * Paints a vector, centred. @param {Stage} stage @param {string} name of the strip @param {number} row @param {number} x @param {number} y
 * @param {{alpha?: number, w?: number, h?: number, label?: string, frame?: string}} [look]
 */
function vector(stage, name, row, x, y, { alpha = 1, w = columns(stage).strip.w, h = columns(stage).strip.h, label, frame } = {}) {
  const { ctx, unit } = stage;
  if (alpha <= 0.01) return;
  const image = stage.images[name];
  ctx.globalAlpha = alpha;
  ctx.drawImage(image, 0, row, image.width, 1, x - w / 2, y - h / 2, w, h);
  if (frame) {
    ctx.strokeStyle = frame;
    ctx.lineWidth = 2.5 * unit;
    box(ctx, x - w / 2 - 2, y - h / 2 - 2, w + 4, h + 4, 4);
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  if (label) note(stage, label, x, y + h / 2 + 13 * unit, { alpha });
}

/** Paints the words over their columns, and the stream's vectors. @param {Stage} stage @param {{alpha?: number, name?: string}} [look] */
function paintColumns(stage, { alpha = 1, name = "pre" } = {}) {
  const of = columns(stage);
  paintWords(stage, laidOut(stage), 1, 1);
  stage.asked.forEach((_, i) => vector(stage, name, i, of.x(i), of.row(0.45), { alpha }));
}

/** Paints arches from the asked tokens to the one that asks. @param {Stage} stage @param {number} head @param {number} grown @param {number} [alpha] */
function arches(stage, head, grown, alpha = 1) {
  const { asked, weights, theme, unit } = stage;
  const of = columns(stage);
  const last = asked.length - 1;
  weights[head].forEach((weight, i) => {
    const y = of.y - 0.7 * of.size(last);
    const off = 5 * unit * (head - stage.head); // the heads' arches stand beside each other
    const [from, to] = [of.x(i), of.x(last)].map((x) => ({ x: x + off, y }));
    const path = i === last ? `M${to.x - 6} ${y}C${to.x - 60 * unit} ${y - 64 * unit} ${to.x + 60 * unit} ${y - 64 * unit} ${to.x + 6} ${y}` : archPath(from, to, y - 8 - Math.abs(off));
    line(stage, path, theme.purple, (1 + 9 * weight) * unit, grown, alpha * (0.25 + 0.75 * weight));
  });
}

/** Paints the text turning into columns of vectors. @param {Stage} stage @param {number} share */
function paintRows(stage, share) {
  const of = columns(stage);
  paintWords(stage, laidOut(stage), 1, within(share, 0.2, 0.5));
  stage.asked.forEach((_, i) => {
    const grown = within(share, 0.5 + 0.05 * i, 0.7 + 0.05 * i);
    vector(stage, "pre", i, of.x(i), between(of.y, of.row(0.45), grown), { alpha: grown });
  });
}

/** Paints the query and the keys. @param {Stage} stage @param {number} share */
function paintAsking(stage, share) {
  const of = columns(stage);
  const last = stage.asked.length - 1;
  paintColumns(stage);
  stage.asked.forEach((_, i) => {
    const moved = within(share, 0.5 + 0.05 * i, 0.75 + 0.05 * i);
    vector(stage, "k", i, of.x(i), between(of.row(0.45), of.row(1.4), moved), { alpha: moved, label: t("flow.short.k") });
  });
  const moved = within(share, 0.1, 0.4);
  vector(stage, "q", last, of.x(last), between(of.row(0.45), of.row(2.4), moved), { alpha: moved, frame: stage.theme.purple, label: t("flow.short.q") });
}

/** Paints the query visiting each key; at the end, the scores become shares. @param {Stage} stage @param {number} share */
function paintAnswers(stage, share) {
  const { asked, weights, head, theme, unit } = stage;
  const of = columns(stage);
  const last = asked.length - 1;
  const grown = within(share, 0.74, 0.9);
  paintColumns(stage, { alpha: between(1, 0.4, within(share, 0, 0.1)) });
  let at = of.x(last);
  visits(asked.length).forEach(({ leaves, arrives, answers, lands }, n) => {
    const i = last - n;
    at = between(at, of.x(i), within(share, leaves, arrives));
    const isMet = share >= arrives && share < lands;
    vector(stage, "k", i, of.x(i), of.row(1.4), { label: t("flow.short.k"), frame: isMet ? theme.purple : "" });
    const weight = weights[head][i];
    const y = of.row(2.4);
    if (share > answers && grown < 1) {
      const disc = [of.x(i), y + of.strip.h / 2 + 14 * unit, (4 + 8 * Math.sqrt(weight)) * unit];
      fill(stage, disc, theme.purple, within(share, answers, lands) * (1 - grown));
    }
    note(stage, percent(weight), of.x(i), y, { alpha: grown, colour: theme.text, size: (17 + 13 * weight) * unit });
  });
  vector(stage, "q", last, at, of.row(2.4), { alpha: 1 - within(share, 0.7, 0.76), frame: theme.purple });
  arches(stage, head, grown);
  const others = 1 - weights[head].reduce((sum, weight) => sum + weight, 0);
  if (others > 0.005) note(stage, t("film.others", { p: percent(others) }), stage.w / 2, of.row(2.4) + of.strip.h / 2 + 14 * unit, { alpha: within(share, 0.85, 0.95) });
}

/** Paints the values flowing into the mix, each as tall as its share. @param {Stage} stage @param {number} share */
function paintMixing(stage, share) {
  const { asked, weights, head } = stage;
  const of = columns(stage);
  const last = asked.length - 1;
  paintColumns(stage);
  arches(stage, head, 1);
  const moved = within(share, 0.1, 0.35);
  const flown = within(share, 0.45, 0.8);
  asked.forEach((_, i) => {
    const weight = weights[head][i];
    vector(stage, "k", i, of.x(i), of.row(1.4), { alpha: 1 - within(share, 0, 0.12) });
    vector(stage, "v", i, of.x(i), between(of.row(0.45), of.row(1.4), moved), { alpha: moved, label: `${t("flow.short.v")} · ${percent(weight)}` });
    note(stage, percent(weight), of.x(i), of.row(2.4), { alpha: 1 - within(share, 0, 0.12), colour: stage.theme.text, size: (17 + 13 * weight) * stage.unit });
    if (!flown || flown === 1) return;
    const high = between(1, Math.max(0.06, weight), flown) * of.strip.h;
    vector(stage, "v", i, between(of.x(i), of.x(last), flown), between(of.row(1.4), of.row(2.4), flown), { h: high, alpha: 0.9 });
  });
  vector(stage, "z", last, of.x(last), of.row(2.4), { alpha: within(share, 0.75, 0.85), frame: stage.theme.purple, label: t("flow.short.z") });
}

/** Paints the results of all heads flowing into the asking token's vector. @param {Stage} stage @param {number} share */
function paintHeads(stage, share) {
  const { asked, weights, head, theme } = stage;
  const of = columns(stage);
  const last = asked.length - 1;
  paintColumns(stage);
  weights.forEach((_, each) => {
    const grown = each === head ? 1 : within(share, 0.1 + (0.25 * each) / weights.length, 0.3 + (0.25 * each) / weights.length);
    arches(stage, each, grown, each === head ? 1 : 0.6);
  });
  asked.forEach((_, i) => vector(stage, "v", i, of.x(i), of.row(1.4), { alpha: 1 - within(share, 0, 0.15), label: t("flow.short.v") }));
  const moved = within(share, 0.6, 0.85);
  const [y, step] = [between(of.row(2.4), of.row(0.45), moved), of.strip.w / weights.length];
  weights.forEach((_, each) => {
    const shown = each === head ? 1 : within(share, 0.2 + (0.25 * each) / weights.length, 0.35 + (0.25 * each) / weights.length);
    const alpha = shown * (1 - within(share, 0.8, 0.88)) * (each === head ? 1 : 0.55);
    const spread = 1 - within(share, 0.45, 0.6); // the outputs are placed side by side
    const left = of.x(last) + (each - (weights.length - 1) / 2) * step * (1 + 0.35 * spread) - step / 2 + 1;
    fill(stage, [left, y - of.strip.h / 2, step - 2, of.strip.h, 0], theme.purple, alpha);
  });
  vector(stage, "z", last, of.x(last), of.row(2.4), { alpha: 1 - within(share, 0, 0.2), frame: theme.purple });
  vector(stage, "mid", last, of.x(last), of.row(0.45), { alpha: within(share, 0.8, 0.9), frame: share > 0.8 ? theme.purple : "" });
}

// 4. Layer after layer to the next token

/** Returns where the neurons are, and the vector that they read. @param {Stage} stage */
function aside({ w, h }) {
  const isTall = w < h;
  return isTall
    ? { x: w / 2, y: 0.1 * h, left: 24, top: 0.34 * h, wide: w - 48, high: 0.6 * h }
    : { x: 0.2 * w, y: 0.4 * h, left: 0.42 * w, top: 0.1 * h, wide: 0.5 * w, high: 0.8 * h };
}

/** Paints the neurons that respond to the token. @param {Stage} stage @param {number} share @param {number} [alpha] */
function paintNeurons(stage, share, alpha = 1) {
  const { asked, neurons, theme, unit } = stage;
  const [of, place] = [columns(stage), aside(stage)];
  const last = asked.length - 1;
  const moved = within(share, 0, 0.2);
  const x = between(of.x(last), place.x, moved);
  const y = between(of.y, place.y, moved);
  const size = of.size(last);
  asked.forEach((token, i) => {
    if (i !== last) word(stage, token.replace(/^·/, ""), of.x(i), of.y, of.size(i), { alpha: 1 - within(share, 0, 0.1), align: "center" });
    if (i !== last) vector(stage, "pre", i, of.x(i), of.row(0.45), { alpha: 1 - within(share, 0, 0.1) });
  });
  weights(stage, 1 - within(share, 0, 0.1));
  word(stage, asked[last].replace(/^·/, ""), x, y, size, { colour: theme.orange, align: "center", alpha });
  const level = y + of.row(0.45) - of.y;
  vector(stage, "mid", last, x, level, { alpha });
  vector(stage, "post", last, x, level, { alpha: alpha * within(share, 0.8, 0.92) });
  const across = Math.max(1, Math.round(Math.sqrt((neurons.length * place.wide) / place.high)));
  const cell = Math.min(place.wide / across, place.high / Math.ceil(neurons.length / across));
  const lit = within(share, 0.25, 0.7) * 1.001;
  const isTall = stage.w < stage.h;
  const [from, to] = isTall ? [{ x, y: level + of.strip.h }, { x, y: place.top - 6 }] : [{ x: x + of.strip.w / 2 + 8, y: level }, { x: place.left - 12, y: level }];
  line(stage, `M${from.x} ${from.y}L${to.x} ${to.y}`, theme.muted, 2 * unit, within(share, 0.15, 0.25), 0.6 * alpha);
  neurons.forEach((value, i) => {
    const [column, row] = [i % across, Math.floor(i / across)];
    const isLit = column / across < lit;
    const disc = [place.left + (column + 0.5) * cell, place.top + (row + 0.5) * cell, 0.36 * cell];
    fill(stage, disc, isLit && value > 24 ? theme.text : theme.muted, alpha * moved * (isLit ? 0.12 + 0.88 * (value / 255) : 0.12));
  });
}

/** Paints the arches of all heads. @param {Stage} stage @param {number} alpha */
function weights(stage, alpha) {
  if (alpha > 0.01) stage.weights.forEach((_, each) => arches(stage, each, 1, alpha * (each === stage.head ? 1 : 0.6)));
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

/** Paints the vector running through the layers, with what the model would predict after some of them. @param {Stage} stage @param {number} share */
function paintLayers(stage, share) {
  const { guesses, theme, unit, asked } = stage;
  if (share < 0.15) paintNeurons(stage, 1, 1 - within(share, 0, 0.12));
  const n = guesses.length;
  const passed = share >= 0.9 ? n : Math.max(0, (share - 0.12) / 0.75) * n;
  guesses.forEach(({ layer, token, p }, i) => {
    const at = guessAt(stage, i);
    const shown = within(passed, i, i + 0.6);
    const above = i ? guessAt(stage, i - 1).y : at.y;
    if (i && shown) line(stage, `M${at.strip.x} ${above + at.strip.h / 2}L${at.strip.x} ${at.y - at.strip.h / 2}`, theme.muted, 2 * unit, shown, 0.6);
    vector(stage, "stack", i, at.strip.x, between(above, at.y, shown), { ...at.strip, alpha: shown });
    note(stage, t("film.layer", { n: layer }), at.label.x, at.label.y, { alpha: shown, align: "left", size: 15 * unit, colour: layer === stage.layer ? theme.purple : theme.muted });
    bar(stage, [token, p], at.bar, within(passed, i + 0.3, i + 0.9));
  });
  if (share < 0.3) {
    const [place, of, at] = [aside(stage), columns(stage), guessAt(stage, 0)];
    const moved = within(share, 0.04, 0.14);
    vector(stage, "post", asked.length - 1, between(place.x, at.strip.x, moved), between(place.y + of.row(0.45) - of.y, at.y, moved), {
      w: between(of.strip.w, at.strip.w, moved), h: between(of.strip.h, at.strip.h, moved), alpha: 1 - within(share, 0.14, 0.2),
    });
  }
}

/** Paints the last layer's guess becoming the first of the next tokens. @param {Stage} stage @param {number} share */
function paintNext(stage, share) {
  const { guesses, next } = stage;
  const gone = 1 - within(share, 0, 0.15);
  guesses.slice(0, -1).forEach(({ token, p }, i) => gone && bar(stage, [token, p], guessAt(stage, i).bar, 1, gone));
  guesses.forEach(({ layer }, i) => {
    const at = guessAt(stage, i);
    vector(stage, "stack", i, at.strip.x, at.y, { ...at.strip, alpha: gone });
    note(stage, t("film.layer", { n: layer }), at.label.x, at.label.y, { alpha: gone, align: "left", size: 15 * stage.unit });
  });
  const [from, to] = [guessAt(stage, guesses.length - 1).bar, barsAt(stage, 0.12, next.length)];
  const moved = within(share, 0.1, 0.4);
  next.forEach((each, i) => {
    const end = { ...to, y: to.y + i * to.high };
    const at = i ? end : { x: between(from.x, end.x, moved), y: between(from.y, end.y, moved), w: between(from.w, end.w, moved), high: between(from.high, end.high, moved) };
    bar(stage, each, at, i ? within(share, 0.4 + 0.08 * i, 0.6 + 0.08 * i) : 1);
  });
}

/** Returns the line on which the chances are laid end to end. @param {Stage} stage */
const lineAt = ({ w, h, unit }) => ({ x: Math.max(24, (w - 1000 * unit) / 2), y: 0.55 * h, w: Math.min(w - 48, 1000 * unit), high: 64 * unit });

/** Paints the chances laid end to end, and the random number that falls on one of them. @param {Stage} stage @param {number} share */
function paintDraw(stage, share) {
  const { next, draw, theme, unit } = stage;
  const of = barsAt(stage, 0.12, next.length);
  const { pieces, chosen, number } = draw;
  const at = lineAt(stage);
  if (number === null) {
    bars(stage, of, (i) => [1, i ? 1 - 0.7 * within(share, 0.3, 0.6) : 1]);
    return;
  }
  bars(stage, of, () => [1, 1 - within(share, 0.02, 0.2)]);
  fill(stage, [at.x, at.y - at.high / 2, at.w, at.high, 6], theme.line, within(share, 0.15, 0.3));
  pieces.forEach(([token, start, p], i) => {
    const from = next.findIndex(([each]) => each === token);
    const moved = within(share, 0.1 + 0.03 * i, 0.45 + 0.03 * i);
    if (!moved) return;
    const isDrawn = i === chosen && share > 0.8;
    const old = { x: of.x + 0.3 * of.w, y: of.y + (from < 0 ? next.length : from) * of.high, high: 0.6 * of.high };
    const [x, y, high] = [between(old.x, at.x + start * at.w, moved), between(old.y, at.y, moved), between(old.high, at.high, moved)];
    const w = Math.max(1.5, p * between(0.5 * of.w, at.w, moved) - 2);
    fill(stage, [x + 1, y - high / 2, w, high, Math.min(4, w / 2)], isDrawn ? theme.bright : theme.blue, share > 0.8 && !isDrawn ? 0.35 : 1);
    const size = Math.min(30 * unit, 0.6 * high);
    if (widthOf(stage, token.trim(), size) < w - 8) word(stage, token.trim(), x + 1 + w / 2, y, size, { align: "center", colour: isDrawn ? theme.stage : theme.text });
  });
  for (const end of [0, 1]) note(stage, end ? "100%" : "0%", at.x + end * at.w, at.y + at.high / 2 + 18 * unit, { align: end ? "right" : "left", alpha: within(share, 0.2, 0.35) });
  const fallen = within(share, 0.58, 0.8) ** 2;
  if (!fallen) return;
  const [x, tip] = [at.x + number * at.w, between(0.05 * stage.h, at.y - at.high / 2 - 4, fallen)];
  line(stage, `M${x - 10 * unit} ${tip - 18 * unit}L${x} ${tip}L${x + 10 * unit} ${tip - 18 * unit}`, theme.text, 3 * unit, 1);
  line(stage, `M${x} ${tip - 44 * unit}L${x} ${tip}`, theme.text, 3 * unit, 1);
  note(stage, percent(number), x, tip - 60 * unit, { colour: theme.text, size: 17 * unit, align: number < 0.1 ? "left" : number > 0.9 ? "right" : "center" });
}

/** Paints the drawn token moving to the end of the text. @param {Stage} stage @param {number} share */
function paintWritten(stage, share) {
  const { draw, theme, next } = stage;
  const places = laidOut({ ...stage, next: [[draw.pieces[draw.chosen][0], 1]] });
  const to = places[places.length - 1];
  const [token, start, p] = draw.pieces[draw.chosen];
  paintWords(stage, places, within(share, 0.1, 0.4));
  gap(stage, to, 1 - within(share, 0.7, 0.9));
  const at = lineAt(stage);
  const of = barsAt(stage, 0.12, next.length);
  const from = draw.number === null ? { x: of.x + 0.3 * of.w, y: of.y } : { x: at.x + (start + p / 2) * at.w, y: at.y };
  const moved = within(share, 0.15, 0.75);
  const size = between(30 * stage.unit, to.size, moved);
  word(stage, token.trim(), between(from.x, to.x + to.w / 2, moved), between(from.y, to.y, moved), size, { colour: theme.bright, align: "center", weight: 600 });
}

// Time in the film

/**
 * Returns the beat at a time, and its elapsed fraction.
 * @param {number[]} starts the beats' start times, then the end @param {number} time
 */
export function beatAt(starts, time) {
  const last = starts.length - 2;
  let beat = 0;
  while (beat < last && time >= starts[beat + 1]) beat += 1;
  const length = starts[beat + 1] - starts[beat];
  return { beat, share: Math.min(1, Math.max(0, (time - starts[beat]) / length)) };
}

/** Eases in and out: slow, fast, slow. @param {number} share */
export const eased = (share) => (share <= 0 ? 0 : share >= 1 ? 1 : share * share * (3 - 2 * share));

/**
 * Returns the elapsed fraction of part of a beat, eased.
 * @param {number} share elapsed fraction of the beat @param {number} from @param {number} to
 */
export const within = (share, from, to) => eased((share - from) / (to - from));

/** @param {number} a @param {number} b @param {number} share */
export const between = (a, b, share) => a + (b - a) * share;

const [FIRST_VISIT, LAST_SCORE] = [0.06, 0.72]; // as fractions of the beat

/**
 * Returns the times at which the followed token's query visits each of n keys, as fractions of the beat. The query
 * leaves and arrives; then the score leaves and lands beside the others.
 * @param {number} n
 */
export function visits(n) {
  const each = (LAST_SCORE - FIRST_VISIT) / n;
  return Array.from({ length: n }, (_, i) => {
    const leaves = FIRST_VISIT + i * each;
    return { leaves, arrives: leaves + 0.5 * each, answers: leaves + 0.6 * each, lands: leaves + each };
  });
}
