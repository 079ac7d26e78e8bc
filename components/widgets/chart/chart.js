/**
 * A plotly chart that shows the newest figure, with a caption.
 * @typedef {object} Chart
 * @property {Figure | null} [figure]  null shows only the caption
 * @property {string} [text]  a sentence that describes the figure
 * @property {string} [note]  a secondary sentence
 * @property {string[]} [cells]  rows of the first trace, a heatmap, as base64 of float32
 *
 * options: clickable: whether the pointer indicates that points can be clicked; dark: the dark theme's colour for each
 * light one; plotly: the address of plotly.js.
 *
 * @typedef {HTMLElement & {layout: any, data: any, _fullLayout: any, on: (event: string, listener: (event: any) => void) => void}} Plot
 */

import { theme } from "../canvas.js";
import { floats } from "../labels.js";
import { find, make, saveFile } from "../dom.js";
import { setWords } from "../glossary.js";
import { language, t } from "../i18n.js";
import { defineWidget } from "../runtime.js";

const NARROWEST = 160; // px; below this width, the layout is incomplete
const CELL_TEXT = 52; // minimum width in px of a cell that shows a token
const FORMATS = ["png", "svg", "html"];

/** @typedef {Record<string, string>} Partners  the dark theme's colours, keyed by the light theme's */
/** @typedef {{data: Record<string, any>[], layout: Record<string, any>}} Figure */

/** Returns a copy with replaced colours, leaving labels unchanged. @param {any} node @param {Partners} partners @returns {any} */
export function recoloured(node, partners, colour = false) {
  if (typeof node === "string") return (colour && partners[node]) || node;
  if (Array.isArray(node)) return node.map((item) => recoloured(item, partners, colour));
  if (!node || typeof node !== "object" || ArrayBuffer.isView(node)) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, recoloured(value, partners, /color/.test(key))]));
}

/**
 * Omits labels of columns narrower than 11 px, and texts in narrow cells. If `meta.column` is set to the selected
 * column, texts far from that column are omitted instead. @param {Figure} figure @param {number} width
 */
function thinLabels({ data, layout }, width) {
  const axis = layout.xaxis2;
  if (!axis?.tickvals || axis.tickvals.length < 2) return;
  const [room, count] = [width - 120, axis.tickvals.length];
  const fitting = Math.max(1, Math.floor(room / CELL_TEXT));
  if (layout.meta && count > fitting) {
    const first = Math.max(0, Math.min(layout.meta.column - Math.floor(fitting / 2), count - fitting));
    layout.xaxis.range = [first - 0.5, first + fitting - 0.5];
  }
  const cell = room / (layout.xaxis.range[1] - layout.xaxis.range[0]);
  if (cell < CELL_TEXT) for (const trace of data) delete trace.texttemplate;
  const every = Math.ceil(11 / cell / (axis.tickvals[1] - axis.tickvals[0]));
  for (const key of ["tickvals", "ticktext"]) axis[key] = axis[key].filter((/** @type {any} */ _, /** @type {number} */ i) => i % every === 0);
}

/** Returns a copy of the figure for drawing, because plotly modifies the figure it draws. @param {Figure} figure @param {HTMLElement} root @param {number} width @param {Partners} partners */
function dressed(figure, root, width, partners) {
  const { card, muted, text, raised, line, mono } = theme(root, ["card", "muted", "text", "raised", "line", "mono"]);
  const { data, layout } = recoloured(figure, partners);
  thinLabels({ data, layout }, width);
  const page = {
    width,
    paper_bgcolor: card,
    plot_bgcolor: card,
    modebar: { bgcolor: "transparent", color: muted, activecolor: text },
    font: { family: getComputedStyle(root).fontFamily, size: 12, color: muted },
    hoverlabel: { bgcolor: raised, bordercolor: line, font: { family: mono, size: 12, color: text } },
  };
  return { data, layout: { dragmode: false, ...layout, ...page } };
}

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

/**
 * Returns plotly's options: its bar has a button for each format in which the chart can be saved as it is shown.
 * @param {string} id @param {string[]} sentences below the chart in an HTML file
 */
function configOf(id, sentences) {
  const filename = `glassbox-${id}`;
  const buttons = FORMATS.map((format) => {
    const kind = format.toUpperCase();
    const title = t("chart.save", { kind });
    const icon = { svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 16"><text x="20" y="13" font-size="14" text-anchor="middle">${kind}</text></svg>` };
    /** @param {Plot} plot */
    const click = async (plot) => {
      const size = { width: plot.clientWidth, height: plot.clientHeight };
      if (format !== "html") return window.Plotly.downloadImage(plot, { format, filename, scale: 2, ...size });
      const url = URL.createObjectURL(await htmlFile(plot, filename, sentences));
      saveFile(url, `${filename}.html`);
      URL.revokeObjectURL(url);
    };
    return { name: title, title, icon, click };
  });
  return { modeBarButtons: [buttons], displaylogo: false, responsive: false, doubleClick: false, scrollZoom: false, showTips: false };
}

/** The page contains plotly.js, so that it needs no network. @param {Plot} plot @param {string} title @param {string[]} sentences */
async function htmlFile(plot, title, sentences) {
  const script = await (await fetch(find(document, "script[data-glassbox=plotly]", HTMLScriptElement).src)).text();
  const figure = window.Plotly.Plots.graphJson(plot, false, "keepall").replaceAll("<", "\\u003c");
  const { paper_bgcolor: ground, font, width } = plot.layout;
  const words = make("div", "", sentences.map((sentence) => make("p", "", sentence)));
  const page = `<!doctype html><html lang="${language()}"><meta charset="utf-8"><title>${title}</title>
<body style="background: ${ground}; color: ${font.color}; font: 14px/1.5 ${font.family.replaceAll('"', "'")}; max-width: ${width}px; margin: 16px auto">
<div id="chart"></div>${words.innerHTML}
<script>${script}</script>
<script>Plotly.newPlot("chart", { ...${figure}, config: { displayModeBar: false } });</script>`;
  return new Blob([page], { type: "text/html" });
}

defineWidget("chart", (root, host) => {
  const plot = /** @type {Plot} */ (find(root, ".gb-plot"));
  const [says, note] = [".gb-says", ".gb-note"].map((name) => find(root, name));
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
  function draw({ figure, text = "", note: second = "", cells = [] }) {
    setWords(says, text);
    setWords(note, second);
    plot.setAttribute("aria-label", text);
    root.classList.remove("gb-nothing", "gb-undrawn");
    if (!figure) return clear();
    plot.style.height = `${figure.layout.height ?? 320}px`;
    isOld = drawn && !isNear;
    if (isOld) return; // plotly is slow, and a text being generated changes the figure often
    const width = plot.clientWidth;
    if (width < NARROWEST || !window.Plotly) return;
    const { data, layout } = dressed(figure, root, width, host.dark ? host.options.dark : {});
    if (cells.length) data[0].z = cells.map((row) => [...floats(row)]);
    const silence = () => plot.querySelectorAll(".main-svg").forEach((svg) => svg.setAttribute("aria-hidden", "true")); // the sentence says it
    window.Plotly.react(plot, data, layout, configOf(host.id, [text, second])).then(silence).catch(clear);
    if (!drawn) plot.on("plotly_click", click);
    drawn = true;
  }

  /** @param {{points: any[]}} event */
  function click({ points: [point] }) {
    if (!point) return;
    const { x, y, pointNumber, curveNumber, customdata } = point;
    host.send({ x, y, pointNumber, curveNumber, customdata: customdata ?? null });
  }

  if (!window.Plotly) load(host.options.plotly).then(host.redraw);
  host.gone.addEventListener("abort", () => {
    watcher.disconnect();
    if (drawn) window.Plotly?.purge(plot);
  });
  return { draw };
});
