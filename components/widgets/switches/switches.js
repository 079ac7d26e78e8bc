/**
 * A grid of switches, layers x heads, that turn each head, attention and feed-forward network on and off or scale them.
 * @typedef {object} Switches
 * @property {number} [n_layer]  if missing, nothing is shown
 * @property {number} [n_head]
 * @property {string} [edits]  the factors other than 1, as `gpt.documents.edit_text` writes them
 * @property {number[] | null} [costs]  for each head in each layer, the divergence caused by removing it, in bits
 * @property {number} [measured]  number of tokens on which the costs were measured
 * @property {number} [answered]  number of the last change that `edits` contains
 * @property {[layer: number, head: number] | null} [selected]
 * @property {boolean} [of_heads]  whether there are only heads, which are on or off @property {number[][]} [marked]  framed heads
 */

import { MOVES, find, make, modified, setHint } from "../dom.js";
import { language, t } from "../i18n.js";
import { defineWidget } from "../runtime.js";

/** @typedef {{n_layer: number, n_head: number, of_heads?: boolean}} Size  of_heads: whether only heads have switches */
/** @typedef {[row: number, column: number]} Place  the first row and column are for all layers, and for both branches */

/** Returns whether the switch affects a single head. @param {Size} size @param {Place} place */
const isHead = ({ n_head }, [row, column]) => row > 0 && column > 1 && column < n_head + 2;

/** Returns whether a place has a switch, which head numbers do not. @param {Size} size @param {Place} place */
export const hasSwitch = (size, [row, column]) => (size.of_heads ? isHead(size, [row, column]) : row > 0 || column === 1 || column === size.n_head + 2);

/** @param {Size} size @param {Place} place @returns {string[]} */
export function partsOf(size, [row, column]) {
  const kind = column === 1 ? "a" : "f";
  if (row === 0) return Array.from({ length: size.n_layer }, (_, layer) => kind + layer);
  if (column === 0) return [`a${row - 1}`, `f${row - 1}`];
  return isHead(size, [row, column]) ? [`h${row - 1}.${column - 2}`] : [kind + (row - 1)];
}

/** Parses factors by part from text such as "h3.2=0,a1=0.5". @param {string} edits */
export const readFactors = (edits) =>
  new Map(edits.split(",").filter(Boolean).map((edit) => /** @type {[string, number]} */ ([edit.split("=")[0], Number(edit.split("=")[1])])));

/** @param {Map<string, number>} factors */
export const writeFactors = (factors) => [...factors].map(([part, factor]) => `${part}=${factor}`).join(",");

const STEP = 0.25; // step for the keys + and −
const WIDEST = 13; // maximum number of head numbers
let grids = 0;

defineWidget("switches", (root, host) => {
  const grid = find(root, ".gb-switch-grid");
  const now = find(root, ".gb-switch-now");
  const [said, number] = [find(now, "span"), find(now, "output")];
  const slider = find(now, "input", HTMLInputElement);
  const name = `gb-switch-${(grids += 1)}`;
  /** @type {Map<string, number>} */ let factors = new Map();
  /** @type {Switches} */ let shown = {};
  let labelled = ""; // language of the labels
  /** @type {Size} */ let size = { n_layer: 0, n_head: 0 };
  /** @type {(HTMLElement | null)[][]} */ let cells = []; // null for a number without a switch
  /** @type {Place} */ let at = [1, 2]; // the switch that keys and slider affect
  let changes = 0; // number of changes sent

  const factor = (/** @type {string} */ part) => factors.get(part) ?? 1;

  /** @param {Place} place */
  function title([row, column]) {
    const layer = t("change.part.layer", { layer: row - 1 });
    if (column === 0) return layer;
    if (isHead(size, [row, column])) return t("part.head", { layer: row - 1, head: column - 2 });
    return `${row ? layer : t("change.switches.all")} ${t(column === 1 ? "flow.short.att" : "flow.short.out")}`;
  }

  /** @param {Place} place */
  function state(place) {
    const [x, ...others] = new Set(partsOf(size, place).map(factor));
    if (others.length) return "";
    return x === 1 ? t("change.switches.on") : x === 0 ? t("change.switches.off") : t("change.switches.times", { factor: x });
  }

  /** @param {Place} place */
  const cost = ([row, column]) => (shown.costs && isHead(size, [row, column]) ? shown.costs[(row - 1) * size.n_head + column - 2] : null);

  /** @param {Place} place */
  function describe(place) {
    const words = t("change.switches.state", { part: title(place), state: state(place) });
    const bits = cost(place);
    return bits === null ? words : `${words} · ${t("change.switches.cost", { bits: bits.toPrecision(2) })}`;
  }

  /** Returns a cell's text: layer or head numbers, or short names above the other two columns. @param {Place} place */
  function text([row, column]) {
    if (row > 0) return column === 0 ? String(row - 1) : "";
    if (column === 0) return "";
    if (column === 1 || column === size.n_head + 2) return size.of_heads ? "" : t("change.switches.short").split("|")[column === 1 ? 0 : 1];
    return (column - 2) % Math.ceil(size.n_head / WIDEST) === 0 ? String(column - 2) : "";
  }

  /** @param {Place} place */
  function makeCell(place) {
    const [row, column] = place;
    if (!hasSwitch(size, place)) return make("span", "gb-switch-number", text(place), { role: "presentation" });
    const kind = row === 0 || column === 0 ? "many" : isHead(size, place) ? "head" : "branch";
    const attributes = { id: `${name}-${row}-${column}`, role: "gridcell", "data-at": `${row},${column}` };
    return make("span", `gb-switch gb-switch-${kind}`, text(place), attributes);
  }

  function build() {
    grid.replaceChildren();
    cells = Array.from({ length: size.n_layer + 1 }, (_, row) => {
      const made = Array.from({ length: size.n_head + 3 }, (_, column) => makeCell([row, column]));
      grid.append(make("div", "gb-switch-row", made, { role: "row" }));
      return made.map((cell) => (cell.id ? cell : null));
    });
    grid.setAttribute("aria-label", t("change.switches.name"));
    grid.style.setProperty("--heads", String(size.n_head));
    root.classList.toggle("gb-switch-of-heads", Boolean(size.of_heads));
    root.classList.toggle("gb-switch-dense", size.n_layer > 16 || size.n_head > 16);
    if (!cells[at[0]]?.[at[1]]) at = [1, 2];
  }

  function paint() {
    const { costs, marked, measured } = shown;
    const most = Math.max(...(costs ?? [0]), 1e-9);
    cells.forEach((line, row) => {
      line.forEach((cell, column) => {
        if (!cell) return;
        const place = /** @type {Place} */ ([row, column]);
        cell.title = describe(place);
        cell.setAttribute("aria-label", cell.title);
        if (row === 0 || column === 0) return;
        const x = factor(partsOf(size, place)[0]);
        cell.style.setProperty("--v", String(Math.min(1, Math.abs(x))));
        cell.classList.toggle("gb-off", x === 0);
        cell.classList.toggle("gb-more", x > 1 || x < 0);
        cell.classList.toggle("gb-marked", Boolean(marked?.some(([layer, head]) => layer === row - 1 && head === column - 2)));
        cell.classList.toggle("gb-moot", isHead(size, place) && factor(`a${row - 1}`) === 0);
        const bits = cost(place);
        if (bits !== null) cell.style.setProperty("--c", String(Math.sqrt(bits / most)));
      });
    });
    root.classList.toggle("gb-costs", Boolean(costs));
    const legend = costs ? `${t("change.switches.legend", { most: most.toPrecision(2), n: measured })} ` : "";
    setHint(find(root, ".gb-note"), legend + t("change.switches.hint"), t("change.switches.keys"));
    point();
  }

  function point() {
    const cell = cells[at[0]]?.[at[1]];
    if (!cell) return;
    grid.querySelector(".gb-current")?.classList.remove("gb-current");
    cell.classList.add("gb-current");
    grid.setAttribute("aria-activedescendant", cell.id);
    said.textContent = describe(at);
    const x = factor(partsOf(size, at)[0]);
    slider.value = String(x);
    slider.setAttribute("aria-label", title(at));
    number.textContent = `× ${x.toFixed(2)}`;
  }

  /** @param {Switches} data */
  function draw(data) {
    const { n_layer = 0, n_head = 0, edits = "", answered = 0, selected, of_heads = false } = data;
    const isSameSize = n_layer === size.n_layer && n_head === size.n_head;
    const isBuilt = isSameSize && language() === labelled;
    if (selected && String(selected) !== String(shown.selected)) at = [selected[0] + 1, selected[1] + 2];
    [shown, labelled, size] = [data, language(), { n_layer, n_head, of_heads }];
    root.classList.toggle("gb-nothing", !n_layer || !n_head);
    if (!isSameSize || answered >= changes) factors = readFactors(edits); // otherwise, the last change is still being sent
    if (!isBuilt) build();
    paint();
  }

  /** @param {number} x */
  function set(x) {
    for (const part of partsOf(size, at)) {
      if (x === 1) factors.delete(part);
      else factors.set(part, x);
    }
    paint();
  }

  function send() {
    const selected = isHead(size, at) ? { layer: at[0] - 1, head: at[1] - 2, on: factor(partsOf(size, at)[0]) !== 0 } : {};
    host.send({ edits: writeFactors(factors), n: (changes += 1), ...selected });
  }

  function toggle() {
    set(partsOf(size, at).some((part) => factor(part) !== 0) ? 0 : 1);
    send();
  }

  /** Moves to the next place that has a switch, if there is one. @param {[rows: number, columns: number]} by */
  function move([rows, columns]) {
    let [row, column] = at;
    do [row, column] = [row + rows, column + columns];
    while (cells[row]?.[column] === null);
    if (cells[row]?.[column]) at = [row, column];
    point();
  }

  grid.addEventListener("click", (event) => {
    const cell = event.target instanceof Element ? event.target.closest(".gb-switch") : null;
    if (!(cell instanceof HTMLElement)) return;
    const [row, column] = (cell.dataset.at ?? "").split(",").map(Number);
    at = [row, column];
    if (event.shiftKey) point(); // only moves the slider to this switch
    else toggle();
  });
  grid.addEventListener("keydown", (event) => {
    if (modified(event)) return;
    const more = size.of_heads ? undefined : { "+": STEP, "=": STEP, "-": -STEP }[event.key];
    if (MOVES[event.key]) move(MOVES[event.key]);
    else if (event.key === "Enter" || event.key === " ") toggle();
    else if (more) {
      set(Math.max(0, Math.min(2, factor(partsOf(size, at)[0]) + more)));
      send();
    } else return;
    event.preventDefault();
  });
  slider.addEventListener("input", () => set(Number(slider.value)));
  slider.addEventListener("change", send);
  return { draw };
});
