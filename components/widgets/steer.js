/**
 * The mixing desk: a slider for each concept, and the text as it is beside the changed one.
 * @typedef {[layer: number, feature: number, name: string, position: number]} Slider  position from 0 to 100
 * @typedef {object} Steer
 * @property {Slider[]} [sliders]  if missing, the widget is hidden
 * @property {[label: string, pieces: [text: string, differs: boolean][]][]} [texts]  the last one is the changed text
 * @property {boolean} [babbles]  whether the changed text makes no sense any more
 * @property {boolean} [stale]  whether new texts are on their way
 * @property {string} [note]
 */

import { find, make, setCount, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";

const REST_MS = 600; // how long a slider moved by a person ignores the server's value
const SHOWN = 6; // the first sliders; the list scrolls if there are more
const CENTRE = 50;
const STOP = 4; // how near the centre a dragged thumb falls into it

defineWidget("steer", (root, host) => {
  const [list, texts] = [find(root, ".gb-steer-sliders"), find(root, ".gb-steer-texts")];
  const [reset, more] = [find(root, "header button", HTMLButtonElement), find(root, ".gb-steer-more", HTMLButtonElement)];
  /** @type {Steer} */ let shown = {};
  let all = false;
  let dragged = false;
  let moved = { key: "", at: -Infinity }; // the slider that a person moved last, and when
  /** @type {Map<string, number>} */ const positions = new Map(); // of all sliders
  /** @type {Set<string>} */ const used = new Set(); // sliders that stay on the desk
  /** @type {Map<string, number>} */ const limits = new Map(); // the lowest positions at which this text babbled
  let limited = ""; // the text to which the limits belong

  const createRow = () => {
    const range = make("input", "", "", { type: "range", min: "0", max: "100", step: "1" });
    const scale = make("span", "gb-steer-scale", [make("i", "gb-steer-limit"), range, make("output")]);
    return make("div", "gb-steer-row", [make("span", "gb-steer-name"), scale]);
  };

  /** Shows where a slider is. @param {HTMLElement} row @param {number} position */
  function place(row, position) {
    row.style.setProperty("--low", String(Math.min(position, CENTRE) / 100));
    row.style.setProperty("--high", String(Math.max(position, CENTRE) / 100));
    row.dataset.side = position < CENTRE ? "less" : position > CENTRE ? "more" : "";
    setText(find(row, "output"), String(Math.round(position)));
  }

  /** Remembers from where on the text babbles, as far as a single idea is at work. @param {Steer} data */
  function findLimit({ texts: [plain] = [], babbles, stale }) {
    const on = [...positions].filter(([, position]) => position !== CENTRE);
    const text = plain?.[1].map(([piece]) => piece).join("") ?? limited;
    if (text !== limited) limits.clear();
    limited = text;
    if (stale || !plain || on.length !== 1 || on[0][1] < CENTRE) return;
    const [key, position] = on[0];
    const limit = limits.get(key) ?? Infinity;
    if (babbles) limits.set(key, Math.min(limit, position));
    else if (limit <= position) limits.delete(key);
  }

  /** @param {Steer} data */
  function drawSliders({ sliders = [] }) {
    const rows = sliders.filter(([layer, feature], i) => all || i < SHOWN || used.has(`${layer}.${feature}`));
    setCount(list, rows.length, createRow);
    rows.forEach(([layer, feature, name], i) => {
      const row = /** @type {HTMLElement} */ (list.children[i]);
      const [key, range, limit] = [`${layer}.${feature}`, find(row, "input", HTMLInputElement), find(row, ".gb-steer-limit")];
      row.dataset.key = key;
      setText(find(row, ".gb-steer-name"), name);
      row.title = limits.has(key) ? t("concepts.babbles") : "";
      range.setAttribute("aria-label", name);
      range.value = String(positions.get(key));
      limit.hidden = !limits.has(key);
      limit.style.setProperty("--limit", String((limits.get(key) ?? 0) / 100));
      place(row, positions.get(key) ?? CENTRE);
    });
    list.setAttribute("aria-label", t("concepts.question"));
    more.hidden = sliders.length <= SHOWN;
    more.setAttribute("aria-expanded", String(all));
    setText(more, t(all ? "concepts.less" : "concepts.more"));
  }

  /** @param {Steer} data */
  function drawTexts({ texts: columns, stale }) {
    texts.hidden = !columns;
    texts.classList.toggle("gb-steer-stale", Boolean(stale));
    setCount(texts, columns?.length || 1, () => make("figure", "", [make("figcaption"), make("p")]));
    [...texts.children].forEach((figure, i) => {
      const [label, pieces] = columns?.[i] ?? ["", [[t("concepts.start"), false]]];
      setText(find(figure, "figcaption"), label);
      find(figure, "p").replaceChildren(...pieces.map(([text, differs]) => (differs ? make("mark", "", text) : text)));
    });
  }

  /** @param {Steer} data */
  function draw(data) {
    shown = data;
    const { sliders = [] } = data;
    root.hidden = !sliders.length;
    const held = performance.now() - moved.at < REST_MS ? moved.key : "";
    const before = new Map(positions);
    positions.clear();
    for (const [layer, feature, , position] of sliders) {
      const key = `${layer}.${feature}`;
      positions.set(key, (key === held ? before.get(key) : undefined) ?? position);
      if (positions.get(key) !== CENTRE) used.add(key);
    }
    findLimit(data);
    setText(find(root, "h2"), t("concepts.question"));
    setText(reset, t("concepts.reset"));
    reset.disabled = [...positions.values()].every((position) => position === CENTRE);
    ["weaker", "usual", "stronger"].forEach((end, i) => setText(find(root, ".gb-steer-ends").children[i], t(`concepts.${end}`)));
    drawSliders(data);
    drawTexts(data);
    const note = find(root, ".gb-steer-note");
    note.classList.toggle("gb-steer-babbles", Boolean(data.babbles));
    setText(note, data.note ?? "");
  }

  const send = () =>
    host.send({ on: [...positions].filter(([, position]) => position !== CENTRE).map(([key, position]) => [...key.split(".").map(Number), position]) });

  list.addEventListener("pointerdown", () => (dragged = true));
  list.addEventListener("keydown", () => (dragged = false));
  list.addEventListener("input", ({ target }) => {
    const row = target instanceof HTMLInputElement ? target.closest(".gb-steer-row") : null;
    if (!(row instanceof HTMLElement) || !(target instanceof HTMLInputElement)) return;
    if (dragged && Math.abs(target.valueAsNumber - CENTRE) < STOP) target.value = String(CENTRE);
    moved = { key: row.dataset.key ?? "", at: performance.now() };
    positions.set(moved.key, target.valueAsNumber);
    place(row, target.valueAsNumber);
    send();
  });
  more.addEventListener("click", () => {
    all = !all;
    list.scrollTop = 0;
    draw(shown);
  });
  reset.addEventListener("click", () => {
    moved.at = -Infinity;
    used.clear();
    for (const key of positions.keys()) positions.set(key, CENTRE);
    send();
  });
  return { draw };
});
