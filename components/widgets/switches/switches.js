// Layers x heads of switches. A part is a key such as "h3.2", "a3" or "f3"; what has no factor here is at 1.
const root = element.querySelector(".gb-switches");
const grid = root.querySelector(".gb-switch-grid");
const now = root.querySelector(".gb-switch-now");
const [said, slider, number] = ["span", "input", "output"].map((tag) => now.querySelector(tag));
const STEP = 0.25; // of the keys + and −
const name = `gb-switch-${Math.random().toString(36).slice(2)}`;
const factors = new Map();
let value = null;
let cells = []; // [row][column]; row 0 and column 0 stand for whole columns and layers; a number of a head has none
let at = [1, 2]; // the switch that keys and slider are for
const label = (key) => props.labels?.[key] ?? "";
const layers = () => Array.from({ length: value.n_layer }, (_, layer) => layer);

function parse(text) {
  try {
    const content = JSON.parse(text);
    return content.n_layer > 0 && content.n_head > 0 ? content : null;
  } catch {
    return null;
  }
}

// The parts that a switch is for.
function parts(row, column) {
  const last = value.n_head + 2;
  const kind = column === 1 ? "a" : "f";
  if (row === 0) return layers().map((layer) => kind + layer);
  if (column === 0) return [`a${row - 1}`, `f${row - 1}`];
  return [column === 1 || column === last ? kind + (row - 1) : `h${row - 1}.${column - 2}`];
}

const factor = (part) => factors.get(part) ?? 1;

function title(row, column) {
  const layer = fill(label("layer"), { layer: row - 1 });
  const last = value.n_head + 2;
  if (column === 0) return layer;
  if (column > 1 && column < last) return `${layer} ${fill(label("head"), { head: column - 2 })}`;
  return `${row ? layer : label("all")} ${label(column === 1 ? "attention" : "feed")}`;
}

function state(row, column) {
  const own = new Set(parts(row, column).map(factor));
  if (own.size > 1) return "";
  const [x] = own;
  return x === 1 ? label("on") : x === 0 ? label("off") : fill(label("times"), { factor: x });
}

function describe(row, column) {
  const cost = value.costs && row > 0 && column > 1 && column < value.n_head + 2 ? value.costs[(row - 1) * value.n_head + column - 2] : null;
  const words = fill(label("state"), { part: title(row, column), state: state(row, column) });
  return cost === null ? words : `${words} · ${fill(label("cost"), { bits: cost.toPrecision(2) })}`;
}

function node(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function cell(row, column, text) {
  const made = node("span", "gb-switch", text);
  made.id = `${name}-${row}-${column}`;
  made.setAttribute("role", "gridcell");
  made.dataset.at = `${row},${column}`;
  return made;
}

function build() {
  value = parse(props.value);
  root.classList.toggle("gb-nothing", !value);
  grid.replaceChildren();
  factors.clear();
  if (!value) return;
  for (const part of value.edits.split(",").filter(Boolean)) factors.set(part.split("=")[0], Number(part.split("=")[1]));
  const last = value.n_head + 2;
  const [short, every] = [label("short").split("|"), Math.ceil(value.n_head / 13)];
  cells = [];
  for (let row = 0; row <= value.n_layer; row += 1) {
    const line = node("div", "gb-switch-row");
    line.setAttribute("role", "row");
    cells.push([]);
    for (let column = 0; column <= last; column += 1) {
      const end = column === 1 || column === last;
      const plain = row === 0 && !end;
      const text = row === 0 ? (end ? short[column === 1 ? 0 : 1] : column && (column - 2) % every === 0 ? String(column - 2) : "") : column === 0 ? String(row - 1) : "";
      const made = plain ? node("span", "gb-switch-number", text) : cell(row, column, text);
      if (plain) made.setAttribute("role", "presentation");
      else made.classList.add(row === 0 || column === 0 ? "gb-switch-many" : end ? "gb-switch-branch" : "gb-switch-head");
      cells[row].push(plain ? null : made);
      line.append(made);
    }
    grid.append(line);
  }
  grid.style.setProperty("--heads", value.n_head);
  root.classList.toggle("gb-switch-dense", value.n_layer > 16 || value.n_head > 16);
  if (!cells[at[0]]?.[at[1]]) at = [1, 2];
}

function paint() {
  if (!value) return;
  const most = Math.max(...(value.costs ?? [0]), 1e-9);
  cells.forEach((line, row) => {
    line.forEach((made, column) => {
      if (!made) return;
      const words = describe(row, column);
      made.setAttribute("aria-label", words);
      made.title = words;
      if (row === 0 || column === 0) return;
      const x = factor(parts(row, column)[0]);
      const head = made.classList.contains("gb-switch-head");
      made.style.setProperty("--v", Math.min(1, Math.abs(x)));
      made.classList.toggle("gb-off", x === 0);
      made.classList.toggle("gb-more", x > 1 || x < 0);
      made.classList.toggle("gb-moot", head && factor(`a${row - 1}`) === 0);
      if (head && value.costs) made.style.setProperty("--c", Math.sqrt(value.costs[(row - 1) * value.n_head + column - 2] / most));
    });
  });
  root.classList.toggle("gb-costs", Boolean(value.costs));
  root.querySelector(".gb-note").textContent = value.costs ? `${fill(label("legend"), { most: most.toPrecision(2), n: value.measured })} ${label("keys")}` : label("keys");
  point();
}

function point() {
  if (!value) return;
  grid.querySelector(".gb-current")?.classList.remove("gb-current");
  const made = cells[at[0]][at[1]];
  made.classList.add("gb-current");
  grid.setAttribute("aria-activedescendant", made.id);
  said.textContent = describe(...at);
  const x = factor(parts(...at)[0]);
  slider.value = x;
  slider.setAttribute("aria-label", title(...at));
  number.textContent = `× ${x.toFixed(2)}`;
}

function set(x) {
  for (const part of parts(...at)) {
    if (x === 1) factors.delete(part);
    else factors.set(part, x);
  }
  paint();
}

const send = () => trigger("select", { edits: [...factors].map(([part, x]) => `${part}=${x}`).join(",") });

function toggle() {
  set(parts(...at).some((part) => factor(part) !== 0) ? 0 : 1);
  send();
}

function move(rows, columns) {
  const last = value.n_head + 2;
  const row = Math.max(0, Math.min(value.n_layer, at[0] + rows));
  const column = Math.max(row === 0 ? 1 : 0, Math.min(last, at[1] + (row === 0 && columns ? columns * last : columns)));
  if (cells[row][column]) at = [row, column];
  point();
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
grid.addEventListener("click", (event) => {
  const target = event.target.closest(".gb-switch");
  if (!target) return;
  at = target.dataset.at.split(",").map(Number);
  if (event.shiftKey) point(); // for the slider alone
  else toggle();
});
grid.addEventListener("keydown", (event) => {
  if (!value || event.ctrlKey || event.metaKey || event.altKey) return;
  const more = { "+": STEP, "=": STEP, "-": -STEP }[event.key];
  if (MOVES[event.key]) move(...MOVES[event.key]);
  else if (event.key === "Enter" || event.key === " ") toggle();
  else if (more) {
    set(Math.max(0, Math.min(2, factor(parts(...at)[0]) + more)));
    send();
  } else return;
  event.preventDefault();
});
slider.addEventListener("input", () => set(Number(slider.value)));
slider.addEventListener("change", send);

function relabel() {
  grid.setAttribute("aria-label", label("name"));
  build();
  paint();
}
watch(["value", "labels"], relabel);
relabel();
