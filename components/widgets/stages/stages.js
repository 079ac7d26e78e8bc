// One head in stages: thumbnails to click through, one large, and one cell worked out. Asks the server only for another
// layer, head, or place of a long text.
const root = element.querySelector(".gb-stages");
const find = (name) => root.querySelector(name);
const [row, what, large, sum, mapBox, tip] = [".gb-stages-row", ".gb-stages-what", ".gb-stages-large", ".gb-stages-sum", ".gb-stages-map", ".gb-stages-tip"].map(find);
const canvas = large.querySelector("canvas");
const mapCanvas = mapBox.querySelector("canvas");
const ends = [...root.querySelectorAll(".gb-stages-legend span")];
const WIDEST = 640; // px
const [MAP_EDGE, MAP_STEP] = [160, 32]; // px of the small map; tokens that an arrow key moves there
let [value, numbers, images, place] = [null, null, {}, null];
let stage = "weights";
let cell = [0, 0]; // query and key within what is shown
let chosen = null; // a pair [query, key] whose key comes later: shown here, and no selection for others
let [frame, stale] = [0, true];
const label = (name) => props.labels?.[name] ?? "";

function build() {
  value = parsed(props.value);
  root.classList.toggle("gb-nothing", !value);
  find("figcaption .gb-says").textContent = value?.text ?? "";
  if (!value) return;
  numbers = unpack(value);
  const maps = { signed: theme().signed, head: theme().head(value.head, value.n_head) };
  images = Object.fromEntries(STAGES.map((name) => [name, pixels(numbers.stages[name], numbers.stages[name].signed ? maps.signed : maps.head)]));
  if (chosen && (chosen[0] !== value.query || !within("keys", chosen[1]))) chosen = null;
  const [query, key] = chosen ?? [value.query, value.key];
  cell = [query - value.queries.start, key - value.keys.start];
  answered();
  picks(value, find(".gb-picks-layer"), find(".gb-picks-heads"));
  thumbnails();
}

const within = (side, position) => position >= value[side].start && position < value[side].start + value[side].tokens.length;

function thumbnails() {
  while (row.children.length < STAGES.length) {
    const made = Object.assign(document.createElement("button"), { type: "button" });
    made.append(document.createElement("canvas"), document.createElement("span"));
    const name = STAGES[row.children.length];
    made.addEventListener("click", ({ detail }) => {
      show(name);
      if (detail) large.focus({ preventScroll: true }); // by pointer: the arrow keys move the cell at once
    });
    row.append(made);
  }
  STAGES.forEach((name, i) => {
    const [button, image] = [row.children[i], images[name]];
    const small = button.querySelector("canvas");
    small.width = small.height = 64;
    const context = small.getContext("2d");
    context.imageSmoothingEnabled = image.width > 64;
    context.drawImage(image, 0, 0, 64, 64);
    button.querySelector("span").textContent = fill(label(name), { hs: value.head_size });
    button.setAttribute("aria-pressed", String(name === stage));
    button.title = fill(label(`${name}.says`), { hs: value.head_size });
  });
}

function show(name) {
  stage = name;
  [...row.children].forEach((button, i) => button.setAttribute("aria-pressed", String(STAGES[i] === stage)));
  schedule();
}

function draw() {
  frame = 0;
  if (stale) build();
  stale = false;
  if (!value || root.clientWidth < 50) return; // nothing there, or a closed tab, which draws when it opens
  const current = numbers.stages[stage];
  const [ofKeys, tokens] = [OF_KEYS.includes(stage), !["q", "k", "v", "z"].includes(stage)];
  const picture = {
    image: images[stage], rows: current.rows, columns: current.columns,
    rowLabels: value[ofKeys ? "keys" : "queries"].tokens, columnLabels: tokens ? value.keys.tokens : null,
    row: cell[ofKeys ? 1 : 0], column: tokens ? cell[1] : -1,
  };
  place = drawMatrix(canvas, picture, large.parentElement.clientWidth, WIDEST);
  what.textContent = fill(label(`${stage}.says`), { hs: value.head_size });
  const top = current.signed ? [`−${decimal(current.scale)}`, `+${decimal(current.scale)}`] : ["0", `≥ ${percent(current.scale)}`];
  [ends[0].textContent, ends[2].textContent] = top;
  ends[1].style.background = current.signed ? "" : `linear-gradient(to right in oklab, var(--gb-surface), ${headColour(value.head, value.n_head)})`;
  writeSum();
  drawMap();
}

const token = (side, i) => `“${value[side].tokens[i]}”`;

function writeSum() {
  const { lines, strips } = workedOut(value, numbers, ...cell, label);
  const head = document.createElement("strong");
  const names = { query: token("queries", cell[0]), key: token("keys", cell[1]), i: value.queries.start + cell[0], j: value.keys.start + cell[1] };
  head.textContent = fill(label("pair"), names);
  const items = lines.map(([name, text]) => {
    const item = document.createElement("li");
    item.append(Object.assign(document.createElement("code"), { textContent: text }));
    item.classList.toggle("gb-now", name === stage || (name === "raw" && ["q", "k"].includes(stage)));
    return item;
  });
  items[0].append(stripsOf(strips));
  sum.replaceChildren(Object.assign(document.createElement("li"), { className: "gb-pair" }), ...items);
  sum.firstChild.append(head);
}

// q, k and their products, a column for each number of the vectors.
function stripsOf(rows) {
  const made = Object.assign(document.createElement("canvas"), { width: rows[0].length, height: 3 });
  const scales = rows.map((vector) => Math.max(1e-6, ...vector.map(Math.abs)));
  const image = pixels({ rows: 3, columns: rows[0].length, at: (i, d) => rows[i][d] / scales[i], scale: 1, signed: true }, theme().signed);
  made.getContext("2d").drawImage(image, 0, 0);
  made.className = "gb-stages-strips";
  made.title = label("strips");
  return made;
}

function drawMap() {
  mapBox.hidden = !value.map;
  if (!value.map) return;
  const { side, levels } = value.map;
  const data = bytes(levels);
  const image = pixels({ rows: side, columns: side, at: (i, j) => (j > i ? NaN : Math.sqrt(data[i * side + j] / 255)), scale: 1, signed: false }, theme().head(value.head, value.n_head));
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  mapCanvas.width = mapCanvas.height = MAP_EDGE * ratio;
  const ctx = mapCanvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(image, 0, 0, MAP_EDGE, MAP_EDGE);
  const unit = MAP_EDGE / value.total;
  const { queries, keys } = value;
  ctx.strokeStyle = css("accent");
  ctx.lineWidth = 2;
  ctx.strokeRect(keys.start * unit, queries.start * unit, keys.tokens.length * unit, queries.tokens.length * unit);
}

// Select a pair by its positions in the text.
function choose(query, key) {
  chosen = key > query ? [query, key] : null;
  if (within("queries", query) && within("keys", key)) {
    cell = [query - value.queries.start, key - value.keys.start];
    schedule();
  }
  want(chosen ? { position: query } : { position: query, key });
}

function point(found, event) {
  tip.hidden = !found;
  if (!found) return;
  const [i, j] = found;
  const x = numbers.stages[stage].at(i, Math.max(0, j));
  const number = Number.isNaN(x) ? label("later") : stage === "weights" ? `${percent(x)} · ${small(x, 4)}` : decimal(x, 3);
  const side = OF_KEYS.includes(stage) ? "keys" : "queries";
  const vector = ["q", "k", "v", "z"].includes(stage);
  const heading = vector ? `${token(side, i)} ${stage}[${j}]` : `${token("queries", i)} → ${token("keys", j)}`;
  tip.replaceChildren(
    Object.assign(document.createElement("strong"), { textContent: heading }),
    Object.assign(document.createElement("code"), { textContent: number }),
  );
  const around = root.getBoundingClientRect();
  const x0 = event.clientX - around.left + 16;
  const left = x0 + tip.offsetWidth > around.width ? x0 - tip.offsetWidth - 32 : x0;
  tip.style.transform = `translate(${Math.max(0, left)}px, ${event.clientY - around.top + 16}px)`;
}

canvas.addEventListener("pointermove", (event) => {
  const found = place && cellAt(canvas, place, event);
  point(found && found[1] >= 0 ? found : null, event);
});
canvas.addEventListener("pointerleave", () => point(null));
canvas.addEventListener("click", (event) => {
  const found = place && cellAt(canvas, place, event);
  if (!found) return;
  const { queries, keys } = value;
  const [i, j] = found;
  if (OF_KEYS.includes(stage)) choose(queries.start + cell[0], keys.start + i);
  else if (["q", "z"].includes(stage) || j < 0) choose(queries.start + i, Math.min(keys.start + cell[1], queries.start + i));
  else choose(queries.start + i, keys.start + j);
});

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function keyed(event, size) {
  const step = STEPS[event.key];
  if (!step || !value || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const on = (at, by) => Math.max(0, Math.min(value.total - 1, at + by * size));
  const query = on(value.queries.start + cell[0], step[0]);
  choose(query, Math.min(on(value.keys.start + cell[1], step[1]), query));
}

large.addEventListener("keydown", (event) => keyed(event, 1));
mapCanvas.addEventListener("keydown", (event) => keyed(event, MAP_STEP));
mapCanvas.addEventListener("click", (event) => {
  const box = mapCanvas.getBoundingClientRect();
  const at = (share) => Math.max(0, Math.min(value.total - 1, Math.floor(share * value.total)));
  const query = at((event.clientY - box.top) / box.height);
  choose(query, Math.min(query, at((event.clientX - box.left) / box.width)));
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
  mapBox.querySelector(".gb-note").textContent = label("map");
  large.setAttribute("aria-label", label("name"));
  row.setAttribute("aria-label", label("row"));
  mapCanvas.setAttribute("aria-label", label("map"));
  refresh();
}

watch("value", refresh);
watch("labels", relabel);
new ResizeObserver(schedule).observe(root);
onTheme(refresh);
relabel();
