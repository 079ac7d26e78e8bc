// Who looks at whom. Left the tokens that look, right those that are looked at; a line is as wide as its weight.
const root = element.querySelector(".gb-lines");
const find = (name) => root.querySelector(name);
const [headPicks, least, stage, cells, tip] = [".gb-lines-heads", ".gb-lines-least", ".gb-lines-picture", ".gb-lines-cells", ".gb-tip"].map(find);
const [slider, output] = [least.querySelector("input"), least.querySelector("output")];
const [canvas, cellCanvas] = [stage.querySelector("canvas"), cells.querySelector("canvas")];
const [USUAL, PER_TOKEN] = [30, 3]; // of the slider; lines to see
const [NAMES, TALLEST, FULL] = [112, 720, 65535]; // px of a column of tokens, px of all rows; what stands for 1
let [value, weights, place] = [null, [], null];
let off = new Set(); // heads whose lines are not drawn
let byHand = false; // whether a person has set the threshold
let hot = null; // {side: "queries" or "keys", index} under the pointer
let rowHeight = 18;
let [frame, stale] = [0, true];
const label = (name) => props.labels?.[name] ?? "";

function build() {
  value = parsed(props.value);
  root.classList.toggle("gb-nothing", !value);
  find("figcaption .gb-says").textContent = value?.text ?? "";
  if (!value) return;
  const { queries, keys, pictures } = value;
  const [n, m] = [queries.tokens.length, keys.tokens.length];
  const levels = new Uint16Array(bytes(value.data).buffer);
  let at = 0;
  weights = Array.from({ length: pictures }, () => {
    const matrix = new Float32Array(n * m).fill(NaN);
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < m && keys.start + j <= queries.start + i; j += 1) matrix[i * m + j] = levels[at++] / FULL;
    }
    return matrix;
  });
  answered();
  heads();
  if (!byHand) lower();
}

const many = () => value.pictures > 1;
const hue = (head) => (many() ? headColour(head, value.n_head) : css("after"));
const chosen = () => (many() ? value.head : 0);

// A click on a colour shows or hides its lines.
function heads() {
  headPicks.hidden = !many();
  const buttons = Array.from({ length: value.n_head }, (_, head) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: value.n_head > 16 ? "" : String(head) });
    made.setAttribute("aria-label", `${label("head")} ${head}`);
    made.setAttribute("aria-pressed", String(!off.has(head)));
    made.style.setProperty("--hue", headColour(head, value.n_head));
    made.classList.toggle("gb-chosen", head === value.head);
    made.addEventListener("click", () => {
      if (!off.delete(head)) off.add(head);
      made.setAttribute("aria-pressed", String(!off.has(head)));
      schedule();
    });
    return made;
  });
  const only = (text, hidden) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "gb-words", textContent: text });
    made.addEventListener("click", () => {
      off = hidden();
      buttons.forEach((button, head) => button.setAttribute("aria-pressed", String(!off.has(head))));
      schedule();
    });
    return made;
  };
  const title = Object.assign(document.createElement("span"), { textContent: fill(label("heads"), { layer: value.layer }) });
  const one = only(fill(label("only"), { head: value.head }), () => new Set([...buttons.keys()].filter((head) => head !== value.head)));
  headPicks.replaceChildren(title, ...buttons, only(label("all"), () => new Set()), one);
}

// Until a person sets it, low enough that there are lines to see: some for each token.
function lower() {
  const count = PER_TOKEN * value.queries.tokens.length;
  const strongest = weights.flatMap((of) => [...of].filter((w) => w > 0)).sort((a, b) => b - a);
  slider.value = Math.min(USUAL, 100 * Math.sqrt(strongest[count] ?? 1));
}

// Squared, so that small thresholds have the finer steps.
const threshold = () => Math.max(0.005, (slider.value / 100) ** 2);

function draw() {
  frame = 0;
  if (stale) build();
  stale = false;
  if (!value || root.clientWidth < 50) return; // nothing there, or a closed tab, which draws when it opens
  output.textContent = percent(threshold());
  drawLines();
  drawCells();
}

function drawLines() {
  const { queries, keys } = value;
  const rows = Math.max(queries.tokens.length, keys.tokens.length);
  rowHeight = Math.max(11, Math.min(22, TALLEST / rows));
  const [width, height] = [stage.clientWidth, rows * rowHeight + 24];
  const names = Math.min(NAMES, width / 3.4);
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.font = `12px ${css("sans")}`;
  ctx.fillStyle = css("muted");
  ctx.textBaseline = "middle";
  ctx.textAlign = "right";
  ctx.fillText(label("from"), names - 8, 9);
  ctx.textAlign = "left";
  ctx.fillText(label("to"), width - names + 8, 9);
  for (let head = 0; head < weights.length; head += 1) if (!many() || !off.has(head)) headLines(ctx, head, names, width);
  column(ctx, "queries", names - 8, "right", names);
  column(ctx, "keys", width - names + 8, "left", names);
}

const middle = (index) => 24 + (index + 0.5) * rowHeight;
const touched = (i, j) => !hot || (hot.side === "queries" ? hot.index === i : hot.index === j);

function headLines(ctx, head, names, width) {
  const m = value.keys.tokens.length;
  const own = value.query - value.queries.start;
  ctx.strokeStyle = hue(head);
  const [from, to, bend] = [names, width - names, (width - 2 * names) * 0.4];
  for (let i = 0; i < value.queries.tokens.length; i += 1) {
    for (let j = 0; j < m; j += 1) {
      const weight = weights[head][i * m + j];
      if (!(weight >= threshold()) || !touched(i, j)) continue;
      ctx.globalAlpha = hot || i === own ? 0.25 + 0.75 * weight : 0.12 + 0.5 * weight;
      ctx.lineWidth = Math.max(0.5, weight * Math.min(7, rowHeight * 0.6));
      ctx.beginPath();
      ctx.moveTo(from, middle(i));
      ctx.bezierCurveTo(from + bend, middle(i), to - bend, middle(j), to, middle(j));
      ctx.stroke();
    }
  }
  ctx.globalAlpha = 1;
}

// A column of tokens; those at the other end of the lines of the one under the pointer stay, the others fade.
function column(ctx, side, x, align, room) {
  const m = value.keys.tokens.length;
  const selected = value.query - value.queries.start;
  const strength = (index) => {
    if (!hot || hot.side === side) return hot && hot.index !== index ? 0.35 : 1;
    const [i, j] = side === "keys" ? [hot.index, index] : [index, hot.index];
    const most = Math.max(...weights.map((matrix, head) => (many() && off.has(head) ? 0 : matrix[i * m + j] || 0)));
    return most >= threshold() ? 1 : 0.25;
  };
  ctx.textAlign = align;
  value[side].tokens.forEach((text, index) => {
    const strong = side === "queries" && index === selected;
    ctx.font = `${strong ? "600 " : ""}${Math.min(13, rowHeight)}px ${css("mono")}`;
    ctx.fillStyle = strong ? css("accent") : css("text");
    ctx.globalAlpha = strength(index);
    ctx.fillText(clipped(ctx, text, room - 10), x, middle(index));
  });
  ctx.globalAlpha = 1;
}

// The selected head, or the one picture there is, as cells.
function drawCells() {
  const { queries, keys } = value;
  const [n, m, matrix] = [queries.tokens.length, keys.tokens.length, weights[chosen()]];
  const sorted = [...matrix.slice(Math.floor(n / 4) * m)].filter((x) => !Number.isNaN(x)).sort((a, b) => a - b);
  const scale = sorted.at(-1) || 1e-6;
  const map = ramp([css("surface"), hue(chosen())]);
  const image = pixels({ rows: n, columns: m, at: (i, j) => matrix[i * m + j], scale, signed: false }, map);
  const picture = { image, rows: n, columns: m, rowLabels: queries.tokens, columnLabels: keys.tokens, row: value.query - queries.start, column: value.key - keys.start };
  cells.querySelector("p").textContent = many() ? fill(label("cells"), { layer: value.layer, head: value.head }) : label("cells.one");
  place = drawMatrix(cellCanvas, picture, cells.clientWidth, 460);
}

function under(event) {
  const box = canvas.getBoundingClientRect();
  const index = Math.floor((event.clientY - box.top - 24) / rowHeight);
  const side = event.clientX - box.left < box.width / 2 ? "queries" : "keys";
  return value && index >= 0 && index < value[side].tokens.length ? { side, index } : null;
}

function point(to) {
  if (to?.side === hot?.side && to?.index === hot?.index) return;
  hot = to;
  schedule();
}

function tell(found, event) {
  tip.hidden = !found;
  if (!found) return;
  const [i, j] = found;
  const x = weights[chosen()][i * value.keys.tokens.length + j];
  const number = Number.isNaN(x) ? label("later") : percent(x);
  tip.replaceChildren(
    Object.assign(document.createElement("strong"), { textContent: `“${value.queries.tokens[i]}” → “${value.keys.tokens[j]}”` }),
    Object.assign(document.createElement("code"), { textContent: number }),
  );
  const around = root.getBoundingClientRect();
  const x0 = event.clientX - around.left + 16;
  const left = x0 + tip.offsetWidth > around.width ? x0 - tip.offsetWidth - 32 : x0;
  tip.style.transform = `translate(${Math.max(0, left)}px, ${event.clientY - around.top + 16}px)`;
}

canvas.addEventListener("pointermove", (event) => point(under(event)));
canvas.addEventListener("pointerleave", () => point(null));
canvas.addEventListener("click", (event) => {
  const found = under(event);
  if (!found) return;
  const position = value[found.side].start + found.index;
  if (found.side === "queries") want({ position });
  else if (position <= value.query) want({ position: value.query, key: position });
});
cellCanvas.addEventListener("pointermove", (event) => {
  const found = place && cellAt(cellCanvas, place, event);
  tell(found?.[1] >= 0 ? found : null, event);
});
cellCanvas.addEventListener("pointerleave", () => tell(null));
cellCanvas.addEventListener("click", (event) => {
  const found = place && cellAt(cellCanvas, place, event);
  if (!found) return;
  const [query, key] = [value.queries.start + found[0], value.keys.start + found[1]];
  want(found[1] >= 0 && key <= query ? { position: query, key } : { position: query });
});
stage.addEventListener("keydown", (event) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step || !value || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const { start, tokens } = value.queries;
  want({ position: Math.max(0, Math.min(start + tokens.length - 1, (wanted.position ?? value.query) + step)) });
});
slider.addEventListener("input", () => {
  byHand = true;
  schedule();
});

function schedule() {
  frame ||= requestAnimationFrame(draw);
}

function refresh() {
  stale = true;
  schedule();
}

function relabel() {
  find("figcaption .gb-note").textContent = label("keys");
  least.querySelector("span").textContent = label("least");
  stage.setAttribute("aria-label", label("name"));
  headPicks.setAttribute("aria-label", label("head"));
  refresh();
}

watch("value", refresh);
watch("labels", relabel);
new ResizeObserver(schedule).observe(root);
onTheme(refresh);
relabel();
