// Draws props.value, the lines of a beam search, as columns of candidates with a curve from each to the one before it.
const root = element.querySelector(".gb-beams");
const part = (name) => root.querySelector(name);
const [empty, scroll, stage] = [".gb-empty", ".gb-beams-scroll", ".gb-beams-stage"].map(part);
const [lines, legend, tip] = ["svg", ".gb-beams-legend", ".gb-tip"].map(part);
const [COLUMN, ROW, WIDTH, HEIGHT, EDGE] = [106, 30, 84, 24, 6]; // px
const FATES = ["kept", "pruned", "finished"];

let seen = ""; // the value as far as it is read
let nodes = []; // the candidates, in order
let start = null; // the box of the text that the search goes on from
let [best, done, depth, rows] = [-1, false, 0, []]; // rows: how many candidates each column holds
let chosen = -1; // the candidate that was clicked; -1: the best
let tipped = null; // the one whose tooltip is open
let atEnd = true; // whether the person looks at the newest step
let frame = 0;
tip.id = `gb-tip-${Math.random().toString(36).slice(2)}`;
const label = (name) => props.labels?.[name] ?? name;

function made(tag, name, text) {
  const node = document.createElement(tag);
  node.className = name;
  node.textContent = text;
  return node;
}

function place(node, column, row) {
  node.style.left = `${EDGE + column * COLUMN}px`;
  node.style.top = `${EDGE + row * ROW}px`;
}

function clear(header) {
  for (const node of nodes) node.box.remove();
  start?.remove();
  lines.replaceChildren();
  nodes = [];
  [best, done, depth, rows] = [-1, false, 0, []];
  [chosen, atEnd] = [-1, true];
  hideTip();
  start = made("span", "gb-beam gb-beam-start", visible(header.root ?? ""));
  place(start, 0, 0);
  stage.append(start);
}

function add([parent, text, at, log_p, total, score, fate]) {
  const row = rows[at] ?? 0;
  rows[at] = row + 1;
  depth = Math.max(depth, at);
  const box = made("button", "gb-beam", visible(text));
  box.type = "button";
  box.tabIndex = -1;
  box.dataset.fate = fate;
  box.style.setProperty("--p", Math.exp(log_p).toFixed(4));
  place(box, at, row);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const [x0, y0] = [EDGE + (at - 1) * COLUMN + WIDTH, EDGE + (nodes[parent]?.row ?? 0) * ROW + HEIGHT / 2];
  const [x1, y1] = [EDGE + at * COLUMN, EDGE + row * ROW + HEIGHT / 2];
  line.setAttribute("d", `M${x0} ${y0}C${x0 + 16} ${y0} ${x1 - 16} ${y1} ${x1} ${y1}`);
  lines.append(line);
  stage.append(box);
  nodes.push({ parent, text, depth: at, log_p, total, score, fate, row, box, line });
}

function read() {
  const value = props.value || "";
  if (value === seen) return false;
  const grows = seen && value.startsWith(seen);
  const fresh = (grows ? value.slice(seen.length) : value).split("\n").filter(Boolean);
  if (!grows) clear(fresh.length ? JSON.parse(fresh.shift()) : {});
  seen = value;
  for (const line of fresh.map((text) => JSON.parse(text))) {
    if (Array.isArray(line)) add(line);
    else ({ best, done } = line);
  }
  return true;
}

function path(from) {
  const found = [];
  for (let i = from; nodes[i]; i = nodes[i].parent) found.unshift(i);
  return found;
}

// A candidate lives while a text that goes on, or a whole one, comes after it.
function paint() {
  const alive = new Set();
  nodes.forEach((node, i) => {
    const goesOn = node.fate === "kept" && node.depth === depth && !done;
    if (goesOn || node.fate === "finished") path(i).forEach((each) => alive.add(each));
  });
  const winning = new Set(path(best));
  const picked = new Set(path(chosen));
  const focus = nodes[chosen < 0 ? best : chosen] ?? nodes[0];
  nodes.forEach((node, i) => {
    const states = { "gb-dead": !alive.has(i), "gb-best": winning.has(i), "gb-picked": picked.has(i) };
    for (const [name, on] of Object.entries(states)) {
      node.box.classList.toggle(name, on);
      node.line.classList.toggle(name, on);
    }
    node.box.setAttribute("aria-pressed", String(i === chosen));
    if (!stage.contains(document.activeElement)) node.box.tabIndex = node === focus ? 0 : -1;
    node.box.setAttribute("aria-label", said(node));
  });
}

const said = (node) =>
  `${visible(node.text)}, ${label("step")} ${node.depth}, ${label(node.fate)}, ${label("total")} ${decimal(node.total)}, ${label("score")} ${decimal(node.score)}`;

function draw() {
  frame = 0;
  const grown = read();
  root.classList.toggle("gb-nothing", nodes.length === 0);
  const [width, height] = [2 * EDGE + depth * COLUMN + WIDTH, 2 * EDGE + Math.max(1, ...rows.filter(Boolean)) * ROW];
  Object.assign(stage.style, { width: `${width}px`, height: `${height}px` });
  lines.setAttribute("width", width);
  lines.setAttribute("height", height);
  paint();
  if (grown && atEnd) scroll.scrollLeft = scroll.scrollWidth;
}

function relabel() {
  empty.textContent = label("empty");
  stage.setAttribute("aria-label", label("name"));
  legend.replaceChildren(...["best", ...FATES].map((name) => {
    const item = made("li", "", label(name));
    item.prepend(made("i", `gb-key-${name}`, ""));
    return item;
  }), made("li", "", label("keys")));
  draw();
}

const at = (event) => {
  const box = event.target.closest?.("button.gb-beam");
  return box ? nodes.findIndex((node) => node.box === box) : -1;
};

function showTip(i) {
  if (i < 0) return hideTip();
  const node = nodes[i];
  tip.replaceChildren(made("strong", "", visible(path(i).map((each) => nodes[each].text).join(""))));
  const facts = [
    [label("fate"), label(node.fate)],
    [label("token"), `${percent(Math.exp(node.log_p))} · ${decimal(node.log_p)}`],
    [label("total"), decimal(node.total)],
    [label("score"), decimal(node.score, 3)],
  ];
  for (const [name, text] of facts) tip.append(made("span", "", name), made("b", "", text));
  tip.hidden = false;
  tipped?.removeAttribute("aria-describedby");
  tipped = node.box;
  tipped.setAttribute("aria-describedby", tip.id);
  const [box, around] = [tipped.getBoundingClientRect(), root.getBoundingClientRect()];
  const left = box.left + box.width / 2 - tip.offsetWidth / 2 - around.left;
  tip.style.left = `${Math.max(0, Math.min(left, around.width - tip.offsetWidth))}px`;
  const above = box.top - tip.offsetHeight - 8;
  tip.style.top = `${(above < 0 ? box.bottom + 8 : above) - around.top}px`;
}

function hideTip() {
  tip.hidden = true;
  tipped?.removeAttribute("aria-describedby");
  tipped = null;
}

function choose(i) {
  chosen = i;
  paint();
  trigger("select", { candidate: i });
}

const beside = (i, step) => nodes.findIndex((node) => node.depth === nodes[i].depth && node.row === nodes[i].row + step);
const MOVES = {
  ArrowLeft: (i) => nodes[i].parent,
  ArrowRight: (i) => nodes.findIndex((node) => node.parent === i),
  ArrowDown: (i) => beside(i, 1),
  ArrowUp: (i) => beside(i, -1),
  Home: () => 0,
  End: () => best,
};

stage.addEventListener("pointerover", (event) => showTip(at(event)));
stage.addEventListener("pointerleave", hideTip);
stage.addEventListener("focusin", (event) => showTip(at(event)));
stage.addEventListener("focusout", hideTip);
stage.addEventListener("click", (event) => at(event) >= 0 && choose(at(event)));
stage.addEventListener("keydown", (event) => {
  const from = at(event);
  if (from < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return hideTip();
  if (!MOVES[event.key]) return; // Enter and Space click
  event.preventDefault();
  const to = nodes[MOVES[event.key](from)];
  if (!to) return;
  nodes[from].box.tabIndex = -1;
  to.box.tabIndex = 0;
  to.box.focus();
});
scroll.addEventListener("scroll", () => {
  atEnd = scroll.scrollLeft + scroll.clientWidth >= scroll.scrollWidth - 8;
  hideTip();
});

watch("value", () => { frame ||= requestAnimationFrame(draw); });
watch("labels", relabel);
relabel();
