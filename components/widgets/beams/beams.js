/**
 * The tree of a beam search: one column per step, candidates by descending probability, linked to their parents.
 * @typedef {object} Beams
 * @property {string} [search]  identifies the search; a new value clears the tree
 * @property {string} [root]  the end of the prompt
 * @property {number | null} [chosen]  the selected candidate; null for the best
 * @property {number | null} [best]  the last candidate of the best text so far
 * @property {boolean} [done]  whether the search is complete
 * @property {string[]} [lines]  JSON of each candidate's properties, from parent to outcome, in order
 */

import { find, make, makeButton, makeShape, modified, setAll, setHint, setText } from "../dom.js";
import { t } from "../i18n.js";
import { decimal, percent, visible } from "../labels.js";
import { defineWidget } from "../runtime.js";
import { createTip } from "../tip.js";

/**
 * @typedef {{
 *   parent: number, text: string, depth: number, logProbability: number, total: number, score: number,
 *   outcome: "kept" | "pruned" | "finished", row: number,
 * }} Candidate  parent: its parent's index, -1 for the prompt. depth: its step, 1-based. logProbability: in nats; total: its sum over
 *   all tokens of the search up to this one. row: its position among its step's candidates.
 */

export class Search {
  /** @param {Beams} data */
  constructor({ lines = [], best, done = true }) {
    /** @type {number[]} */ const rows = [0]; // number of candidates in each step
    this.best = best ?? -1;
    this.done = done;
    this.candidates = lines.map((line) => {
      const [parent, text, depth, logProbability, total, score, outcome] = JSON.parse(line);
      rows[depth] = (rows[depth] ?? 0) + 1;
      return /** @type {Candidate} */ ({ parent, text, depth, logProbability, total, score, outcome, row: rows[depth] - 1 });
    });
    this.depth = rows.length - 1; // the newest step
    this.height = Math.max(1, ...rows); // number of candidates in the largest step
  }

  /** Returns the numbers of the candidates on the path from the first step to this one. @param {number} number @returns {number[]} */
  path(number) {
    const found = this.candidates[number];
    return found ? [...this.path(found.parent), number] : [];
  }

  /** Returns the active and finished candidates with their ancestors. */
  alive() {
    const ends = this.candidates.map(({ outcome, depth }) => outcome === "finished" || (outcome === "kept" && depth === this.depth && !this.done));
    return new Set(ends.flatMap((isEnd, i) => (isEnd ? this.path(i) : [])));
  }

  /** Returns the index of the candidate that an arrow key moves to, or -1 for none. @param {string} key @param {number} from */
  next(key, from) {
    const { depth, row, parent } = this.candidates[from];
    const beside = (/** @type {number} */ step) => this.candidates.findIndex((each) => each.depth === depth && each.row === row + step);
    const child = this.candidates.findIndex((each) => each.parent === from);
    return { ArrowLeft: parent, ArrowRight: child, ArrowDown: beside(1), ArrowUp: beside(-1), Home: 0, End: this.best }[key] ?? -1;
  }
}

const [COLUMN, ROW, WIDTH, HEIGHT, EDGE] = [106, 30, 84, 24, 6]; // px
const NAMES = ["best", "kept", "pruned", "finished"]; // in legend order

defineWidget("beams", (root, host) => {
  const [empty, scroll, stage, legend] = [".gb-empty", ".gb-beams-scroll", ".gb-beams-stage", ".gb-beams-legend"].map((name) => find(root, name));
  const curves = find(stage, "svg", SVGSVGElement);
  const tip = createTip(root, find(root, ".gb-tip"));
  const start = make("span", "gb-beam gb-beam-start");
  let search = new Search({});
  let name = ""; // of the search, and the number of candidates
  /** @type {HTMLElement[]} */ let boxes = [];
  let chosen = -1; // the selected candidate; -1 for the best
  /** @type {number | undefined} */ let clicked; // a candidate that the server has not selected yet
  let atEnd = true; // whether the view is scrolled to the newest step
  stage.append(start);

  /** @param {HTMLElement} node @param {number} column @param {number} row */
  function place(node, column, row) {
    node.style.left = `${EDGE + column * COLUMN}px`;
    node.style.top = `${EDGE + row * ROW}px`;
  }

  /** @param {Candidate} candidate */
  function add({ parent, text, depth, logProbability, outcome, row }) {
    const box = makeButton("gb-beam", visible(text), { tabindex: "-1", "data-outcome": outcome });
    box.style.setProperty("--p", Math.exp(logProbability).toFixed(4));
    place(box, depth, row);
    const [x0, y0] = [EDGE + (depth - 1) * COLUMN + WIDTH, EDGE + (search.candidates[parent]?.row ?? 0) * ROW + HEIGHT / 2];
    const [x1, y1] = [EDGE + depth * COLUMN, EDGE + row * ROW + HEIGHT / 2];
    curves.append(makeShape("path", { d: `M${x0} ${y0}C${x0 + 16} ${y0} ${x1 - 16} ${y1} ${x1} ${y1}` }));
    stage.append(box);
    boxes.push(box);
  }

  /** Builds the tree and returns whether it has grown or been replaced. @param {Beams} data */
  function read(data) {
    const named = `${data.search} ${data.lines?.length}`;
    Object.assign(search, { best: data.best ?? -1, done: data.done });
    if (named === name) return false;
    if (named.split(" ")[0] !== name.split(" ")[0]) [clicked, atEnd] = [undefined, true];
    name = named;
    for (const box of boxes) box.remove();
    curves.replaceChildren();
    [search, boxes] = [new Search(data), []];
    tip.hide();
    place(start, 0, 0);
    setText(start, visible(data.root ?? ""));
    search.candidates.forEach(add);
    return true;
  }

  function paint() {
    const [alive, winning, picked] = [search.alive(), search.path(search.best), search.path(chosen)];
    const target = boxes[chosen < 0 ? search.best : chosen] ?? boxes[0];
    const focused = stage.contains(document.activeElement);
    boxes.forEach((box, i) => {
      for (const node of [box, curves.children[i]]) {
        node.classList.toggle("gb-dead", !alive.has(i));
        node.classList.toggle("gb-best", winning.includes(i));
        node.classList.toggle("gb-picked", picked.includes(i));
      }
      box.setAttribute("aria-pressed", String(i === chosen));
      if (!focused) box.tabIndex = box === target ? 0 : -1;
      const { text, depth, outcome, total, score } = search.candidates[i];
      const words = [`${t("beams.step")} ${depth}`, t(`beams.outcome.${outcome}`), `${t("beams.total")} ${decimal(total)}`, `${t("beams.score")} ${decimal(score)}`];
      box.setAttribute("aria-label", [visible(text), ...words].join(", "));
    });
  }

  function relabel() {
    setText(empty, t("beams.empty"));
    stage.setAttribute("aria-label", t("beams.tree.name"));
    const hint = make("li");
    setHint(hint, t("beams.hint"), t("beams.keys"));
    legend.replaceChildren(...NAMES.map((each) => make("li", "", [make("i", `gb-key-${each}`), t(`beams.outcome.${each}`)])), hint);
  }

  /** @param {Beams} data */
  function draw(data) {
    relabel();
    const changed = read(data);
    if (data.chosen === clicked) clicked = undefined;
    chosen = clicked ?? data.chosen ?? -1;
    root.classList.toggle("gb-nothing", boxes.length === 0);
    const [width, height] = [2 * EDGE + search.depth * COLUMN + WIDTH, 2 * EDGE + search.height * ROW];
    Object.assign(stage.style, { width: `${width}px`, height: `${height}px` });
    setAll(curves, { width, height });
    paint();
    if (changed && atEnd) scroll.scrollLeft = scroll.scrollWidth;
  }

  const at = (/** @type {Event} */ { target }) => (target instanceof Element ? boxes.findIndex((box) => box === target.closest("button.gb-beam")) : -1);

  /** @param {number} i */
  function showTip(i) {
    if (i < 0) return tip.hide();
    const { outcome, logProbability, total, score } = search.candidates[i];
    const text = search.path(i).map((each) => search.candidates[each].text).join("");
    tip.show(boxes[i], visible(text), [
      [t("beams.outcome"), t(`beams.outcome.${outcome}`)],
      [t("beams.token"), `${percent(Math.exp(logProbability))} · ${decimal(logProbability)}`],
      [t("beams.total"), decimal(total)],
      [t("beams.score"), decimal(score, 3)],
    ]);
  }

  for (const type of ["pointerover", "focusin"]) stage.addEventListener(type, (event) => showTip(at(event)));
  for (const type of ["pointerleave", "focusout"]) stage.addEventListener(type, tip.hide);
  stage.addEventListener("click", (event) => {
    if (at(event) < 0) return;
    chosen = clicked = at(event);
    paint();
    host.send({ candidate: chosen });
  });
  stage.addEventListener("keydown", (event) => {
    const from = at(event);
    if (from < 0 || modified(event)) return;
    if (event.key === "Escape") return tip.hide();
    if (/^(Arrow|Home$|End$)/.test(event.key)) event.preventDefault(); // Enter and Space already click
    const to = boxes[search.next(event.key, from)];
    if (!to) return;
    boxes[from].tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
  scroll.addEventListener("scroll", () => {
    atEnd = scroll.scrollLeft + scroll.clientWidth >= scroll.scrollWidth - 8;
    tip.hide();
  });
  return { draw };
});
