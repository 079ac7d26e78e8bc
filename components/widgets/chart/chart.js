/**
 * A plotly chart that shows the newest figure, with a caption.
 * @typedef {object} Chart
 * @property {{data: object[], layout: Record<string, any>} | null} [figure]  null shows only the caption
 * @property {string} [text]  a sentence that describes the figure
 * @property {string} [note]  a secondary sentence
 * @property {import("./rows.js").Rows | null} [rows]  for bars that are buttons
 * @property {string[]} [cells]  rows of the first trace, a heatmap, as base64 of float32
 *
 * options: clickable: whether the pointer indicates that points can be clicked; dark: the dark theme's colour for each
 * light one; save: labels of the buttons that save the picture, by language.
 */

import { floats } from "../bytes.js";
import { find, make } from "../dom.js";
import { setWords } from "../glossary.js";
import { defineWidget } from "../runtime.js";
import { createRows } from "./rows.js";
import { dressed } from "./dress.js";
import { saveChart } from "./save.js";

const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false, showTips: false };
const NARROWEST = 160; // px; below this width, the layout is incomplete

/** @type {Promise<unknown> | undefined} */ let plotly;

/** Loads plotly.js. Because it is large, this waits for the first chart. @param {string} src */
function load(src) {
  plotly ??= new Promise((loaded) => {
    const script = make("script", "", "", { src, "data-glassbox": "plotly" });
    script.addEventListener("load", loaded);
    document.head.append(script);
  });
  return plotly;
}

/** @param {NonNullable<Chart["figure"]>} figure @param {string[]} cells */
function withCells(figure, cells) {
  if (!cells.length) return figure;
  const [first, ...others] = figure.data;
  return { ...figure, data: [{ ...first, z: cells.map((row) => [...floats(row)]) }, ...others] };
}

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const plot = /** @type {import("./rows.js").Plot} */ (find(root, ".gb-plot"));
  const [says, note, save] = [".gb-says", ".gb-note", ".gb-save"].map((name) => find(root, name));
  const rows = createRows(plot, host.send);
  let drawn = false;
  let isNear = true; // whether the chart is on the screen, or nearly
  let isOld = false; // whether a newer figure waits until the chart comes near
  const watcher = new IntersectionObserver((entries) => {
    isNear = entries[entries.length - 1].isIntersecting;
    if (isNear && isOld) host.redraw();
  }, { rootMargin: "20px" });
  watcher.observe(plot);
  root.classList.toggle("gb-clickable", Boolean(host.options.clickable));

  function clear() {
    if (drawn) window.Plotly?.purge(plot);
    drawn = false;
    root.classList.add(says.textContent ? "gb-undrawn" : "gb-nothing");
  }

  /** @param {Chart} data */
  function draw({ figure, text = "", note: second = "", rows: bars = null, cells = [] }) {
    setWords(says, text);
    setWords(note, second);
    nameButtons();
    plot.setAttribute("aria-label", text);
    root.classList.remove("gb-nothing", "gb-undrawn");
    if (!figure) return clear();
    rows.draw(bars);
    plot.style.height = `${figure.layout.height ?? 320}px`;
    isOld = drawn && !isNear;
    if (isOld) return; // plotly is slow, and a text being generated changes the figure often
    const width = plot.clientWidth;
    if (width < NARROWEST || !window.Plotly) return;
    const { data, layout } = dressed(withCells(figure, cells), root, width, host.dark ? host.options.dark : {});
    window.Plotly.react(plot, data, layout, CONFIG).then(rows.place).catch(clear);
    if (!drawn) plot.on("plotly_click", click);
    drawn = true;
  }

  /** @param {{points: any[]}} event */
  function click({ points: [point] }) {
    if (!point) return;
    const { x, y, pointNumber, curveNumber, customdata } = point;
    host.send({ x, y, pointNumber, curveNumber, customdata: customdata ?? null });
  }

  function nameButtons() {
    const words = host.options.save[document.documentElement.lang] ?? host.options.save.en;
    for (const button of save.querySelectorAll("button")) {
      button.title = words.replace("{kind}", button.textContent);
      button.setAttribute("aria-label", button.title);
    }
  }

  for (const button of save.querySelectorAll("button")) {
    const format = /** @type {import("./save.js").Format} */ (button.textContent.toLowerCase());
    button.addEventListener("click", () => saveChart(plot, root, `glassbox-${host.id}`, format));
  }
  if (!window.Plotly) load(host.options.plotly).then(host.redraw);
  return {
    draw,
    destroy() {
      watcher.disconnect();
      if (drawn) window.Plotly?.purge(plot);
    },
  };
}

defineWidget("chart", mount);
