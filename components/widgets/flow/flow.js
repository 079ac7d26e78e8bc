// The flow: keeps the newest value, paints it when something changed, and answers the pointer without the server.
const root = element.querySelector(".gb-flow");
const find = (name) => root.querySelector(name);
const [scroller, stage, canvas, tip] = [".gb-flow-scroll", ".gb-flow-stage", "canvas", ".gb-flow-tip"].map(find);
const [laneMark, columnMark] = [".gb-flow-lane", ".gb-flow-column"].map(find);
const [parts, layerPick, headPicks] = [".gb-flow-parts", ".gb-flow-layer", ".gb-flow-heads"].map(find);
const [says, note] = ["figcaption .gb-says", "figcaption .gb-note"].map(find);
const still = matchMedia("(prefers-reduced-motion: reduce)");
const GLIDE = 150; // ms
let scene = null;
let hot = null; // {part, row, layer} under the pointer or the focus
let [frame, moving, stale] = [0, 0, true];
const label = (name) => props.labels?.[name] ?? "";

// One row of pixels a token.
function image(strip, rows, map) {
  const levels = bytes(strip.data);
  const made = Object.assign(document.createElement("canvas"), { width: strip.bins, height: rows });
  const context = made.getContext("2d");
  const pixels = context.createImageData(strip.bins, rows);
  new Uint32Array(pixels.data.buffer).set(Uint32Array.from(levels, (level) => map[level]));
  context.putImageData(pixels, 0, 0);
  return made;
}

function themeColours(value) {
  const names = { q: "head-previous-token", k: "head-duplicate-token", v: "head-same-token" };
  for (const name of ["surface", "card", "text", "muted", "line", "accent", "before", "after"]) names[name] = name;
  const colours = Object.fromEntries(Object.entries(names).map(([name, from]) => [name, css(from)]));
  return { ...colours, head: headColour(value.head, value.n_head) };
}

function build() {
  const value = parsed(props.value);
  root.classList.toggle("gb-nothing", !value?.tokens);
  says.textContent = value?.text ?? "";
  note.textContent = value?.keys ?? label("keys");
  parts.setAttribute("aria-label", value?.name ?? label("name"));
  layerPick.hidden = headPicks.hidden = Boolean(value?.bare); // nothing to pick where every part is an identity
  if (!value?.tokens) return (scene = null);
  const rows = value.tokens.length;
  const map = ramp(Array.from({ length: 9 }, (_, i) => css(`div-${i}`)));
  const images = {};
  for (const [name, strip] of Object.entries(value.strips)) images[name] = image(strip, rows, map);
  value.stack.forEach((strip, layer) => (images[`layer${layer}`] = image(strip, rows, map)));
  const [mono, sans] = [css("mono"), css("sans")];
  const fonts = { token: `13px ${mono}`, strong: `600 13px ${mono}`, name: `500 12px ${sans}`, title: `600 13px ${sans}`, note: `11px ${sans}`, shape: `11px ${mono}` };
  const before = scene;
  const heights = rowHeights(value);
  answered();
  scene = {
    value, images, fonts, labels: props.labels ?? {}, weights: bytes(value.weights ?? ""), colours: themeColours(value),
    goal: { heights, tops: rowTops(heights) }, heights, tops: rowTops(heights),
  };
  const total = heights.reduce((sum, height) => sum + height, 0);
  scene.height = Math.max(HEAD + total + FOOT, HEAD + 8 * BAR + FOOT);
  glideFrom(before);
  picks(value, layerPick, headPicks);
}

// Rows that stay start from where they were.
function glideFrom(before) {
  moving = 0;
  if (!before || before.value.doc !== scene.value.doc || still.matches) return;
  const shift = scene.value.start - before.value.start;
  const old = (list, row, other) => before[list][row + shift] ?? other;
  scene.from = {
    heights: scene.goal.heights.map((height, row) => old("heights", row, height)),
    tops: scene.goal.tops.map((top, row) => old("tops", row, top)),
  };
  if (scene.goal.heights.some((height, row) => height !== scene.from.heights[row])) moving = performance.now();
}

function step(now) {
  const share = moving ? Math.min(1, (now - moving) / GLIDE) : 1;
  const eased = 1 - (1 - share) ** 3;
  for (const list of ["heights", "tops"]) {
    scene[list] = scene.goal[list].map((goal, row) => (share < 1 ? scene.from[list][row] + (goal - scene.from[list][row]) * eased : goal));
  }
  if (share === 1) moving = 0;
}

function size() {
  scene.width = Math.max(NARROWEST, scroller.clientWidth);
  scene.place = columns(scene.value, scene.width);
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  stage.style.width = `${scene.width}px`;
  stage.style.height = `${scene.height}px`;
  canvas.width = Math.round(scene.width * ratio);
  canvas.height = Math.round(scene.height * ratio);
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  const bars = 8 * BAR;
  const y = scene.goal.tops[scene.value.selected - scene.value.start] + ROW / 2;
  scene.barsTop = Math.max(HEAD, Math.min(y - bars / 2, scene.height - FOOT - bars));
  placeParts();
}

function draw(now) {
  frame = 0;
  if (stale) build();
  if (!scene) return (stale = false);
  if (scroller.clientWidth < 50) return; // a closed tab
  if (stale || scene.width !== Math.max(NARROWEST, scroller.clientWidth)) {
    size();
    stale = true;
  }
  stale = false;
  step(now);
  paint(canvas.getContext("2d"), scene);
  if (moving) schedule();
  else if (hot) point(hot.x === undefined ? hot : spotAt(hot.x, hot.y), true);
}

function schedule() {
  frame ||= requestAnimationFrame(draw);
}

function refresh() {
  stale = true;
  schedule();
}

// Where a part stands: a strip, a gap where something happens, or all layers that are closed.
function range(part) {
  const { place, value } = scene;
  if (part !== "stack") return place[part];
  const closed = Object.keys(place).filter((name) => name.startsWith("layer")).map((name) => place[name]);
  return hot?.layer !== undefined ? place[`layer${hot.layer}`] : closed[value.layer ? 0 : closed.length - 1];
}

function mark(node, box) {
  node.hidden = !box;
  if (!box) return;
  for (const [side, length] of Object.entries(box)) node.style[side] = `${length}px`;
}

function highlight() {
  const lane = hot?.row !== undefined && hot.part !== "next";
  mark(laneMark, lane && { top: scene.tops[hot.row], height: scene.heights[hot.row], width: right(scene.place.fin) });
  const column = hot && range(hot.part);
  mark(columnMark, column && { left: column.x - 4, width: column.w + 8, top: HEAD - 4, height: bottom(scene) - HEAD + 8 });
}

function under(event) {
  const at = canvas.getBoundingClientRect();
  return spotAt(event.clientX - at.left, event.clientY - at.top);
}

function spotAt(x, y) {
  if (!scene?.place || y < HEAD - 44) return null;
  const found = Object.entries(scene.place).find(([, column]) => x >= column.x - 1 && x <= right(column) + 1 && column.w);
  if (!found) return null;
  const row = scene.tops.findIndex((top, i) => y >= top && y < top + scene.heights[i]);
  const layer = found[0].startsWith("layer") ? Number(found[0].slice(5)) : undefined;
  return { part: layer === undefined ? found[0] : "stack", row: row < 0 ? undefined : row, layer, x, y };
}

function shapeOf(part) {
  const { value } = scene;
  const strip = value.strips[part];
  if (part === "weights") return `1 × ${value.n_head} × ${value.total} × ${value.total}`;
  if (!strip) return "";
  if (part === "pos") return `${value.total} × ${strip.width}`;
  return `1 ×${"qkvz".includes(part) ? ` ${value.n_head} ×` : ""} ${value.total} × ${strip.width}`;
}

// [title, sentence, formula, the numbers of the pair, shape and scale]
function words(spot) {
  const { value } = scene;
  const open = spot.layer === undefined ? (value.layer ? 0 : value.n_layer - 1) : spot.layer;
  const text = value.words[spot.part] ?? fill(label("stack"), { n: open, norm: value.norms[open] });
  const lines = (text ?? "").split("\n");
  const selected = value.selected - value.start;
  let pair = "";
  if (spot.row !== undefined && ATTENTION.includes(spot.part)) {
    const names = { query: `“${value.tokens[selected]}”`, key: `“${value.tokens[spot.row]}”`, hs: value.head_size };
    const numbers = { score: decimal(value.scores[spot.row]), weight: percent(value.row[spot.row]) };
    pair = fill(label(spot.row > selected ? "later" : "pair"), { ...names, ...numbers });
  } else if (spot.row !== undefined && spot.row !== selected && spot.part !== "next") {
    pair = `${value.start + spot.row}: “${value.tokens[spot.row]}”`;
  }
  const scale = value.strips[spot.part] ? fill(label("full"), { scale: value.strips[spot.part].scale }) : "";
  return [...lines, pair, [shapeOf(spot.part), scale].filter(Boolean).join(" · ")];
}

function writeTip() {
  const tags = ["strong", "p", "code", "code", "small"];
  tip.hidden = !hot;
  if (!hot) return;
  const lines = words(hot).map((text, i) => text && Object.assign(document.createElement(tags[i]), { textContent: text }));
  tip.replaceChildren(...lines.filter(Boolean));
}

function placeTip() {
  const [around, at] = [root.getBoundingClientRect(), canvas.getBoundingClientRect()];
  const column = range(hot.part);
  const x = (hot.x ?? (column ? column.x + column.w / 2 : 0)) + at.left - around.left;
  const y = (hot.y ?? HEAD + 40) + at.top - around.top;
  const left = x + 20 + tip.offsetWidth > around.width ? x - tip.offsetWidth - 20 : x + 20;
  const top = Math.max(0, y - tip.offsetHeight - 12);
  tip.style.transform = `translate(${Math.max(0, Math.min(left, around.width - tip.offsetWidth))}px, ${top}px)`;
}

function point(spot, always = false) {
  const same = !always && hot && spot && hot.part === spot.part && hot.row === spot.row && hot.layer === spot.layer;
  hot = scene?.place ? spot : null;
  if (!same) {
    highlight();
    writeTip();
  }
  if (hot) placeTip();
}

function select(name, number, limit) {
  if (scene?.value.bare && name !== "position") return; // in a skeleton there is nothing to open
  if (scene && number >= 0 && number < limit) want({ [name]: number });
}

const asSentence = (line) => (/[.。!?！？]$/.test(line) ? line : `${line}.`);

// Buttons over the picture, for the keyboard and for screen readers.
function placeParts() {
  const names = Object.keys(scene.value.words);
  if (!names.includes("stack")) names.splice(names.indexOf("pre"), 0, "stack");
  while (parts.children.length > names.length) parts.lastChild.remove();
  while (parts.children.length < names.length) parts.append(Object.assign(document.createElement("button"), { type: "button" }));
  names.forEach((name, i) => {
    const [button, column] = [parts.children[i], range(name)];
    button.dataset.part = name;
    button.hidden = !column;
    if (!column) return;
    button.style.left = `${column.x - 4}px`;
    button.style.width = `${Math.max(TARGET, column.w + 8)}px`;
    button.setAttribute("aria-label", words({ part: name }).filter(Boolean).map(asSentence).join(" "));
  });
  layerPick.style.left = `${scene.place.open.x + 12}px`;
  if (scene.place.weights) headPicks.style.left = `${scene.place.weights.x}px`;
}

function relabel() {
  find(".gb-flow-scale").textContent = label("scale");
  refresh();
}

canvas.addEventListener("pointermove", (event) => point(under(event)));
canvas.addEventListener("pointerleave", () => point(null));
canvas.addEventListener("click", (event) => {
  const spot = under(event);
  if (spot?.layer !== undefined) select("layer", spot.layer, scene.value.n_layer);
  else if (spot?.row !== undefined && spot.part !== "next") select("position", scene.value.start + spot.row, scene.value.total);
});
parts.addEventListener("focusin", (event) => {
  const part = event.target.dataset.part;
  const column = scene && range(part);
  if (column) scroller.scrollLeft = Math.min(Math.max(scroller.scrollLeft, right(column) + 40 - scroller.clientWidth), Math.max(0, column.x - 40));
  point({ part });
});
parts.addEventListener("focusout", () => point(null));
parts.addEventListener("keydown", (event) => {
  const move = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Escape") return point(null);
  if (!move || !scene || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const { value } = scene;
  const upright = event.key === "ArrowUp" || event.key === "ArrowDown";
  const name = upright ? "position" : ATTENTION.includes(event.target.dataset.part) ? "head" : "layer";
  const [now, limit] = { position: [value.selected, value.total], head: [value.head, value.n_head], layer: [value.layer, value.n_layer] }[name];
  select(name, (wanted[name] ?? now) + move, limit);
});

watch("value", refresh);
watch("labels", relabel);
new ResizeObserver(() => scene?.width !== Math.max(NARROWEST, scroller.clientWidth) && schedule()).observe(scroller);
onTheme(refresh);
relabel();
