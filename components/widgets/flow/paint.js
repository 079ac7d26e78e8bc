// Paints one scene {value, images, place, tops, heights, width, height, colours} onto a canvas; knows no events.
const middle = (scene, row) => scene.tops[row] + scene.heights[row] / 2;
const thickness = (scene, row) => (scene.heights[row] > 9 ? scene.heights[row] - 5 : Math.max(1, scene.heights[row] - 1));
const right = (column) => column.x + column.w;
const bottom = (scene) => scene.tops.at(-1) + scene.heights.at(-1);

function ribbon(ctx, x0, y0, h0, x1, y1, h1, colour, alpha) {
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

function write(ctx, text, x, y, { font, colour, align = "left", alpha = 1 }) {
  ctx.font = font;
  ctx.textAlign = align;
  ctx.fillStyle = colour;
  ctx.globalAlpha = alpha;
  ctx.fillText(text, x, y);
  ctx.globalAlpha = 1;
}

function clipped(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && ctx.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return `${text.slice(0, end)}…`;
}

function box(ctx, x, y, w, h, radius) {
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, radius);
}

function paint(ctx, scene) {
  ctx.clearRect(0, 0, scene.width, scene.height);
  ctx.imageSmoothingEnabled = false;
  ctx.textBaseline = "middle";
  paintBlock(ctx, scene);
  for (const layer of scene.value.bare ? [paintBare] : [paintLanes, paintRail, paintWeights, paintMix]) layer(ctx, scene);
  for (const name of Object.keys(scene.images)) paintStrip(ctx, scene, name);
  paintAdditions(ctx, scene);
  paintTokens(ctx, scene);
  paintNext(ctx, scene);
  paintNames(ctx, scene);
}

function paintBlock(ctx, scene) {
  const { place, colours, height } = scene;
  ctx.fillStyle = colours.surface;
  box(ctx, place.open.x, 1, place.close.x - place.open.x, height - 2, 12);
  ctx.fill();
  for (const [name, column] of Object.entries(place)) {
    if (!name.startsWith("layer")) continue;
    const edge = Math.min(2, column.w / 4);
    box(ctx, column.x - edge, HEAD - 26, column.w + 2 * edge, bottom(scene) + 8 - HEAD + 26, 4);
    ctx.fill();
  }
}

// Every row's way: faint for all, clear for the selected one and for what it looks at.
function paintLanes(ctx, scene) {
  const { value, place, colours } = scene;
  const selected = value.selected - value.start;
  value.tokens.forEach((_, row) => {
    const [y, h] = [middle(scene, row), thickness(scene, row)];
    const chosen = row === selected;
    const looked = row < selected ? Math.min(1, 2.5 * value.row[row]) : 0;
    const lane = (from, to, colour, alpha, offset = 0, part = 1) => ribbon(ctx, from, y + offset * h, h * part, to, y + offset * h, h * part, colour, alpha);
    const plain = chosen ? 0.3 : 0.06;
    const start = right(place.pre);
    lane(right(place.tokens) + 6, place.pre.x, colours.muted, plain);
    lane(start, place.q.x, colours.q, chosen ? 0.75 : 0.1, -1 / 3, 1 / 3);
    lane(start, place.k.x, colours.k, chosen ? 0.75 : 0.1 + 0.6 * looked, 0, 1 / 3);
    lane(start, place.v.x, colours.v, chosen ? 0.75 : 0.1 + 0.6 * looked, 1 / 3, 1 / 3);
    if (chosen) lane(place.q.x, place.weights.x, colours.q, 0.45, -1 / 3, 1 / 3);
    lane(place.k.x, place.weights.x, colours.k, chosen ? 0.5 : 0.08 + 0.4 * looked, 0, 1 / 3);
    lane(right(place.z), place.att.x, chosen ? colours.head : colours.muted, chosen ? 0.45 : 0.06);
    lane(right(place.att), place.mid.x, colours.muted, plain);
    lane(right(place.out), place.post.x, colours.muted, plain);
    lane(right(place.post), place.fin.x, colours.muted, plain);
    const wide = chosen ? h + 8 : h;
    ribbon(ctx, right(place.mid), y, h, place.ff.x, y, wide, colours.muted, plain);
    ribbon(ctx, right(place.ff), y, wide, place.out.x, y, h, colours.muted, plain);
  });
}

// The residual stream of the selected row, past attention and past the feed-forward part.
function paintRail(ctx, scene) {
  const { value, place, colours } = scene;
  const y = middle(scene, value.selected - value.start);
  const rail = bottom(scene) + 20;
  const centre = (name) => place[name].x + place[name].w / 2;
  ctx.strokeStyle = colours.muted;
  ctx.lineWidth = 2;
  for (const [from, plus] of [["pre", "plus1"], ["mid", "plus2"]]) {
    const x0 = right(place[from]) + 9;
    ctx.beginPath();
    ctx.moveTo(right(place[from]), y);
    ctx.arcTo(x0, y, x0, rail, 7);
    ctx.arcTo(x0, rail, centre(plus), rail, 10);
    ctx.arcTo(centre(plus), rail, centre(plus), y, 10);
    ctx.lineTo(centre(plus), y + 9);
    ctx.globalAlpha = 0.6;
    ctx.stroke();
    ctx.globalAlpha = 1;
    const text = scene.labels.stream;
    ctx.font = scene.fonts.name;
    const [x, room] = [(x0 + centre(plus)) / 2, ctx.measureText(text).width + 16];
    ctx.fillStyle = colours.surface;
    ctx.fillRect(x - room / 2, rail - 8, room, 16);
    write(ctx, text, x, rail, { font: scene.fonts.name, colour: colours.muted, align: "center" });
  }
}

// The weights of the head, row by row beside the tokens; keys fold as the rows do.
function paintWeights(ctx, scene) {
  const { value, place, tops, heights, colours } = scene;
  const scale = place.weights.w / (bottom(scene) - HEAD);
  const count = value.tokens.length;
  for (let row = 0; row < count; row += 1) {
    const [y, h] = [middle(scene, row) - thickness(scene, row) / 2, thickness(scene, row)];
    const chosen = row === value.selected - value.start;
    ctx.fillStyle = colours.card;
    ctx.globalAlpha = 1;
    ctx.fillRect(place.weights.x, y, (tops[row] + heights[row] - HEAD) * scale, h);
    ctx.fillStyle = colours.head;
    for (let key = 0; key <= row; key += 1) {
      const weight = scene.weights[row * count + key] / 255;
      if (weight < 0.004) continue;
      ctx.globalAlpha = Math.sqrt(weight) * (chosen ? 1 : 0.62);
      const w = heights[key] * scale;
      ctx.fillRect(place.weights.x + (tops[key] - HEAD) * scale, y, w > 3 ? w - 0.75 : w, h);
    }
  }
  ctx.globalAlpha = 1;
}

// From each value to the mixture: as thick as the weight.
function paintMix(ctx, scene) {
  const { value, place, colours } = scene;
  const selected = value.selected - value.start;
  const end = thickness(scene, selected);
  let y = middle(scene, selected) - end / 2;
  for (let row = 0; row <= selected; row += 1) {
    const weight = value.row[row];
    if (weight < 0.003) continue;
    const [h0, h1] = [Math.max(0.8, weight * 16), weight * end];
    ribbon(ctx, right(place.v), middle(scene, row), h0, place.z.x, y + h1 / 2, Math.max(0.8, h1), colours.head, 0.3 + 0.5 * Math.sqrt(weight));
    if (weight > 0.08 && scene.heights[row] > 9 && row !== selected) {
      const [text, x, top] = [`${Math.round(100 * weight)} %`, right(place.v) + 6, middle(scene, row) - 11];
      ctx.font = scene.fonts.shape;
      ctx.textAlign = "left";
      ctx.strokeStyle = colours.surface;
      ctx.lineWidth = 4;
      ctx.strokeText(text, x, top);
      write(ctx, text, x, top, { font: scene.fonts.shape, colour: colours.text });
    }
    y += h1;
  }
}

function paintStrip(ctx, scene, name) {
  const { value, images, place, colours } = scene;
  const column = place[name];
  if (!column) return;
  const selected = value.selected - value.start;
  const sources = name === "k" || name === "v";
  const layer = name.startsWith("layer");
  value.tokens.forEach((_, row) => {
    const chosen = row === selected;
    const h = thickness(scene, row) + (chosen && name === "ff" ? 8 : 0);
    const y = middle(scene, row) - h / 2;
    ctx.fillStyle = colours.card;
    ctx.fillRect(column.x, y, column.w, h);
    const quiet = layer ? 0.7 : scene.heights[row] > 9 ? 0.5 : 0.35;
    ctx.globalAlpha = chosen ? 1 : sources && row < selected ? quiet + (1 - quiet) * Math.min(1, 4 * value.row[row]) : quiet;
    ctx.drawImage(images[name], 0, row, images[name].width, 1, column.x, y, column.w, h);
    ctx.globalAlpha = 1;
    if (!chosen || layer) return;
    ctx.strokeStyle = QKV.includes(name) ? colours[name] : name === "z" ? colours.head : colours.text;
    ctx.lineWidth = 1.25;
    ctx.strokeRect(column.x, y, column.w, h);
  });
}

function paintAdditions(ctx, scene) {
  const { value, place, colours } = scene;
  const y = middle(scene, value.selected - value.start);
  const sign = (x, radius) => {
    ctx.beginPath();
    ctx.arc(x, y, radius, 0, 7);
    ctx.fillStyle = colours.card;
    ctx.fill();
    ctx.strokeStyle = colours.muted;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    ctx.beginPath();
    for (const [dx, dy] of [[1, 0], [0, 1]]) {
      ctx.moveTo(x - dx * radius * 0.5, y - dy * radius * 0.5);
      ctx.lineTo(x + dx * radius * 0.5, y + dy * radius * 0.5);
    }
    ctx.strokeStyle = colours.text;
    ctx.stroke();
  };
  for (const plus of ["plus1", "plus2"].filter((name) => place[name])) sign(place[plus].x + place[plus].w / 2, 9);
  if (place.pos) sign((right(place.tok) + place.pos.x) / 2, 6);
}

function paintTokens(ctx, scene) {
  const { value, place, colours, fonts } = scene;
  const edge = right(place.tokens);
  const selected = value.selected - value.start;
  value.tokens.forEach((token, row) => {
    const y = middle(scene, row);
    if (scene.heights[row] < 12) {
      ctx.fillStyle = colours.muted;
      ctx.globalAlpha = 0.45;
      ctx.fillRect(edge - 10, y - 0.75, 10, 1.5);
      ctx.globalAlpha = 1;
      return;
    }
    ctx.font = fonts.token;
    const text = clipped(ctx, token, place.tokens.w - 14);
    const weight = row <= selected ? value.row[row] : 0;
    const colour = row > selected ? colours.muted : colours.text;
    write(ctx, text, edge, y + 0.5, { font: fonts.token, colour, align: "right", alpha: row === selected ? 1 : 0.6 + 0.4 * Math.min(1, 4 * weight) });
    if (row !== selected) return;
    const room = ctx.measureText(text).width + 12;
    ctx.strokeStyle = colours.accent;
    ctx.lineWidth = 2;
    box(ctx, edge - room + 6, y - 11.5, room, 23, 6);
    ctx.stroke();
  });
  const after = value.total - value.start - value.tokens.length;
  const quiet = { font: fonts.note, colour: colours.muted, align: "right" };
  if (value.start) write(ctx, scene.labels.before.replace("{n}", value.start), edge, HEAD - 14, quiet);
  if (after > 0) write(ctx, scene.labels.after.replace("{n}", after), edge, bottom(scene) + 14, quiet);
}

function paintNext(ctx, scene) {
  const { value, place, colours, fonts } = scene;
  const { x, w } = place.next;
  const y0 = middle(scene, value.selected - value.start);
  const top = scene.barsTop;
  const most = value.next[0][1];
  const total = value.next.reduce((sum, [, p]) => sum + p, 0);
  const h = thickness(scene, value.selected - value.start);
  let start = y0 - h / 2;
  value.next.forEach(([token, p], n) => {
    const y = top + n * BAR + BAR / 2;
    const share = (h * p) / total;
    ribbon(ctx, right(place.fin), start + share / 2, share, x, y, Math.max(1, (18 * p) / most), colours.after, 0.35);
    start += share;
    const bar = Math.max(1.5, ((w - 58) * p) / most);
    ctx.fillStyle = colours.before;
    ctx.globalAlpha = 0.75;
    box(ctx, x, y - 11, bar, 22, 3);
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.font = fonts.token;
    const font = n === value.chosen ? fonts.strong : fonts.token;
    write(ctx, clipped(ctx, token, w - 62), x + 7, y + 0.5, { font, colour: colours.text });
    write(ctx, percent(p), x + w - 2, y + 0.5, { font: fonts.token, colour: n ? colours.muted : colours.text, align: "right" });
  });
}

function paintNames(ctx, scene) {
  const { value, place, colours, fonts, labels } = scene;
  const shape = (name) => {
    if (name === "weights") return `${value.total}×${value.total}`;
    return value.strips[name] && `${value.total}×${value.strips[name].width}`;
  };
  const all = ["tok", "pos", "pre", "q", "k", "weights", "v", "z", "att", "mid", "ff", "out", "post", "fin"];
  const names = all.filter((name) => place[name]);
  const middle = (name) => place[name].x + place[name].w / 2;
  ctx.font = fonts.shape;
  const wide = names.map((name) => ctx.measureText(shape(name) || "").width);
  const short = names.some((name, i) => i > 0 && (wide[i] + wide[i - 1]) / 2 > middle(name) - middle(names[i - 1])); // a long text
  for (const name of names) {
    const x = middle(name);
    const colour = QKV.includes(name) ? colours[name] : name === "weights" || name === "z" ? colours.head : colours.text;
    write(ctx, labels[name], x, HEAD - 30, { font: fonts.name, colour, align: "center" });
    const size = shape(name);
    if (size) write(ctx, short && name !== "weights" ? size.replace(/^\d+/, "") : size, x, HEAD - 14, { font: fonts.shape, colour: colours.muted, align: "center" });
  }
  write(ctx, labels.embedding, place.tok.x, 21, { font: fonts.title, colour: colours.text });
  write(ctx, labels.next, place.next.x, scene.barsTop - 16, { font: fonts.title, colour: colours.text });
  for (let layer = 0; layer < value.n_layer; layer += 1) {
    const column = place[`layer${layer}`];
    if (!column || column.w < 7) continue;
    write(ctx, layer, column.x + column.w / 2, HEAD - 14, { font: fonts.shape, colour: colours.muted, align: "center" });
  }
}
