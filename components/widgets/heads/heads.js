// The overview of all heads: thumbnails on one canvas, one of them larger beside it.
const root = element.querySelector(".gb-heads");
const grid = root.querySelector(".gb-heads-grid");
const canvas = grid.querySelector("canvas");
const [selectedMark, spotMark] = grid.querySelectorAll(".gb-heads-mark");
const large = root.querySelector(".gb-heads-large");
const [GAP, EDGE, BESIDE, TALLEST] = [4, 26, 360, 560]; // px
const REST = 80; // ms on a head before it is asked for in more pixels
let value = null;
let base = null; // the rows of pixels that are finished, and the key that they go by
let asked = ""; // the last key that was missing
let shares = []; // of each head: on the first token, on the one before, on itself; 65535 for 1
let images = [];
let cell = 0;
let spot = null; // [layer, head] under the pointer or chosen by the keys; null: the selected one
let near = null; // one head in more pixels: {layer, head, near, picture}
let [frame, stale, resting] = [0, true, 0];
const label = (name) => props.labels?.[name] ?? "";

function thumbnail(levels, side, map) {
  const made = Object.assign(document.createElement("canvas"), { width: side, height: side });
  const context = made.getContext("2d");
  const pixels = context.createImageData(side, side);
  const out = new Uint32Array(pixels.data.buffer);
  for (let i = 0; i < side * side; i += 1) out[i] = map[Math.round(Math.sqrt(255 * levels[i]))]; // faint weights stay visible
  context.putImageData(pixels, 0, 0);
  return made;
}

const colours = (head) => ramp([css("surface"), headColour(head, value.n_head)]);

// Puts rows of pixels, each of them row + 1 levels for every head, where they belong in the heads' pictures.
function spread(pictures, side, data, from) {
  let at = 0;
  for (let row = from; at < data.length; row += 1) {
    for (const levels of pictures) {
      levels.set(data.subarray(at, at + row + 1), row * side);
      at += row + 1;
    }
  }
}

function build() {
  const next = parsed(props.value);
  root.classList.toggle("gb-nothing", !next?.key);
  root.querySelector("figcaption .gb-says").textContent = next?.text ?? "";
  grid.setAttribute("aria-label", `${label("name")}. ${next?.text ?? ""}`);
  if (!next?.key) return (value = null);
  if (next.base !== undefined) base = { key: next.key, data: bytes(next.base) };
  if (base?.key !== next.key) {
    if (asked !== next.key) trigger("select", { whole: true });
    asked = next.key;
    return;
  }
  value = next;
  shares = new Uint16Array(bytes(value.shares).buffer);
  if (spot && (spot[0] >= value.n_layer || spot[1] >= value.n_head)) spot = null;
  const maps = Array.from({ length: value.n_head }, (_, head) => colours(head));
  const pictures = Array.from({ length: value.n_layer * value.n_head }, () => new Uint8Array(value.side ** 2));
  spread(pictures, value.side, base.data, 0);
  spread(pictures, value.side, bytes(value.rows), value.first);
  images = pictures.map((levels, i) => thumbnail(levels, value.side, maps[i % value.n_head]));
  nearer();
}

// The head that the server sent in more pixels, if it is of this text.
function nearer() {
  near = parsed(props.near);
  if (near?.near !== value?.near) return (near = null);
  const levels = new Uint8Array(near.side ** 2);
  spread([levels], near.side, bytes(near.rows), 0);
  near.picture = thumbnail(levels, near.side, colours(near.head));
}

// What there is of a head; more is asked for where several tokens share a pixel.
function pictureOf(layer, head) {
  clearTimeout(resting);
  if (near?.layer === layer && near.head === head) return near.picture;
  if (value.side < value.tokens) resting = setTimeout(() => trigger("input", { layer, head }), REST);
  return images[layer * value.n_head + head];
}

function fit() {
  const width = root.clientWidth;
  const room = width - (width > 700 ? BESIDE : 0) - EDGE;
  cell = Math.max(14, Math.min(84, Math.floor(Math.min(room / value.n_head, Math.max(14, TALLEST / value.n_layer)))));
  if (EDGE + cell * value.n_head > width) cell = Math.max(8, Math.floor((width - EDGE) / value.n_head));
  return [EDGE + cell * value.n_head, EDGE + cell * value.n_layer];
}

function draw() {
  frame = 0;
  if (stale) build();
  stale = false;
  if (!value || root.clientWidth < 50) return; // nothing there, or a closed tab, which draws when it opens
  const [width, height] = fit();
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.imageSmoothingEnabled = value.side > cell;
  images.forEach((picture, i) => ctx.drawImage(picture, EDGE + (i % value.n_head) * cell, EDGE + Math.floor(i / value.n_head) * cell, inner(), inner()));
  ctx.font = `11px ${css("mono")}`;
  ctx.fillStyle = css("muted");
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const every = (room) => Math.ceil(room / cell);
  for (let head = 0; head < value.n_head; head += every(18)) ctx.fillText(head, EDGE + head * cell + inner() / 2, EDGE / 2);
  for (let layer = 0; layer < value.n_layer; layer += every(12)) ctx.fillText(layer, EDGE / 2 - 2, EDGE + layer * cell + inner() / 2);
  point();
}

const inner = () => cell - (cell > 24 ? GAP : 1);

// Frames around the selected head and the one that is looked at, and the latter larger.
function point() {
  if (!value || !cell) return;
  const chosen = [value.layer, value.head];
  for (const [mark, at] of [[selectedMark, chosen], [spotMark, spot]]) {
    mark.hidden = !at;
    if (at) Object.assign(mark.style, { left: `${EDGE + at[1] * cell}px`, top: `${EDGE + at[0] * cell}px`, width: `${inner()}px`, height: `${inner()}px` });
  }
  enlarge(spot ?? chosen);
}

function enlarge([layer, head]) {
  const target = large.querySelector("canvas");
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const width = Math.min(Math.max(248, root.clientWidth - canvas.clientWidth - 300), canvas.clientHeight - EDGE, root.clientWidth, 480);
  target.width = target.height = Math.round(width * ratio);
  target.style.width = target.style.height = `${width}px`;
  const ctx = target.getContext("2d");
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(pictureOf(layer, head), 0, 0, target.width, target.height);
  large.querySelector("strong").textContent = fill(label("title"), { layer, head });
  large.querySelector(".gb-note").textContent = label("axis");
  const at = 3 * (layer * value.n_head + head);
  const [first, previous, self] = [...shares.subarray(at, at + 3)].map((share) => percent(share / 65535));
  large.querySelector(".gb-says").textContent = fill(label("share"), { first, previous, self });
}

function schedule() {
  frame ||= requestAnimationFrame(draw);
}

function refresh() {
  stale = true;
  schedule();
}

function at(event) {
  const place = canvas.getBoundingClientRect();
  const head = Math.floor((event.clientX - place.left - EDGE) / cell);
  const layer = Math.floor((event.clientY - place.top - EDGE) / cell);
  return value && head >= 0 && layer >= 0 && head < value.n_head && layer < value.n_layer ? [layer, head] : null;
}

function move(to) {
  if (String(to) === String(spot)) return;
  spot = to;
  point();
}

function open([layer, head]) {
  Object.assign(value, { layer, head });
  point();
  trigger("select", { layer, head });
}

canvas.addEventListener("pointermove", (event) => move(at(event)));
canvas.addEventListener("pointerleave", () => move(null));
canvas.addEventListener("click", (event) => at(event) && open(at(event)));
grid.addEventListener("blur", () => move(null));
grid.addEventListener("keydown", (event) => {
  if (!value || event.ctrlKey || event.metaKey || event.altKey) return;
  const [layer, head] = spot ?? [value.layer, value.head];
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const within = (at, count) => Math.max(0, Math.min(count - 1, at));
  if (step) move([within(layer + step[0], value.n_layer), within(head + step[1], value.n_head)]);
  else if (event.key === "Enter" || event.key === " ") open([layer, head]);
  else if (event.key === "Escape") move(null);
  else return;
  event.preventDefault();
});

function relabel() {
  root.querySelector("figcaption .gb-note").textContent = label("keys");
  refresh();
}

watch("value", refresh);
watch("near", () => {
  if (!value) return;
  nearer();
  point();
});
watch("labels", relabel);
new ResizeObserver(schedule).observe(root);
onTheme(refresh);
relabel();
