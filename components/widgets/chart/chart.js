// Draws props.value, JSON of {figure, text, note}, with Plotly: the newest one only, once a frame.
const root = element.querySelector(".gb-chart");
const plot = root.querySelector(".gb-plot");
const says = root.querySelector(".gb-says");
const note = root.querySelector(".gb-note");
root.classList.toggle("gb-clickable", CLICKABLE);

const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false, showTips: false };
const NARROWEST = 160; // px; less is a page that is still being laid out
let frame = 0;
let drawnAt = 0; // the width of the last drawing; 0: nothing drawn yet
let restsUntil = 0; // after a drawing the page rests as long as it took, so that a stream leaves time for the text
let stale = true; // whether something newer than the drawing waits

function parse(value) {
  try {
    const content = JSON.parse(value);
    const { figure } = content;
    return figure === null || (Array.isArray(figure.data) && figure.layout) ? content : null;
  } catch {
    return null;
  }
}

// Swaps colours for their partners on the dark theme; only where a colour is meant, never in labels.
function darken(node, colour) {
  if (typeof node === "string") return colour && DARK[node] ? DARK[node] : node;
  if (Array.isArray(node)) return node.map((item) => darken(item, colour));
  if (node && typeof node === "object") {
    for (const key of Object.keys(node)) node[key] = darken(node[key], /color/.test(key));
  }
  return node;
}

// Leaves out labels of narrow columns: each needs 11 px.
function thin(layout, width) {
  const axis = layout.xaxis2;
  if (!axis?.tickvals || axis.tickvals.length < 2) return;
  const cell = (width - 120) / (layout.xaxis.range[1] - layout.xaxis.range[0]);
  const every = Math.ceil(11 / cell / (axis.tickvals[1] - axis.tickvals[0]));
  for (const key of ["tickvals", "ticktext"]) axis[key] = axis[key].filter((_, i) => i % every === 0);
}

// The figure with what only the page knows: its width, its fonts, its theme.
function dress(figure, width) {
  const style = getComputedStyle(root);
  const colour = (name) => style.getPropertyValue(`--gb-${name}`).trim();
  thin(figure.layout, width);
  const worn = root.closest(".dark") ? darken(figure, false) : figure;
  const mono = style.getPropertyValue("--gb-mono").trim();
  worn.layout = {
    dragmode: false,
    ...worn.layout,
    width,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style.fontFamily, size: 12, color: colour("muted") },
    hoverlabel: { bgcolor: colour("raised"), bordercolor: colour("line"), font: { family: mono, size: 12, color: colour("text") } },
  };
  return worn;
}

function clear() {
  if (drawnAt) window.Plotly.purge(plot);
  drawnAt = 0;
  root.classList.add(says.textContent ? "gb-undrawn" : "gb-nothing");
}

function draw() {
  frame = 0;
  const content = parse(props.value);
  says.textContent = content?.text ?? "";
  note.textContent = content?.note ?? "";
  plot.setAttribute("aria-label", says.textContent);
  root.classList.remove("gb-nothing", "gb-undrawn");
  if (!content?.figure) return clear();
  rows.draw(content.rows);
  plot.style.height = `${content.figure.layout.height ?? 320}px`;
  const width = plot.clientWidth;
  if (width < NARROWEST || !window.Plotly) return;
  const first = !drawnAt;
  drawnAt = width;
  stale = false;
  const began = performance.now();
  const { data, layout } = dress(content.figure, width);
  window.Plotly.react(plot, data, layout, CONFIG).then(rows.place).catch(clear);
  restsUntil = 2 * performance.now() - began;
  if (first) plot.on("plotly_click", pass);
}

function pass(event) {
  const point = event.points[0];
  if (!point) return;
  const { x, y, pointNumber, curveNumber, customdata } = point;
  trigger("select", { x, y, pointNumber, curveNumber, customdata: customdata ?? null });
}

function schedule() {
  stale = true;
  if (frame) return;
  const rest = restsUntil - performance.now();
  frame = rest > 0 ? setTimeout(() => requestAnimationFrame(draw), rest) : requestAnimationFrame(draw);
}

watch("value", schedule);
new ResizeObserver(() => (stale || plot.clientWidth !== drawnAt) && schedule()).observe(plot);
const theme = new MutationObserver(schedule);
for (const node of [document.documentElement, document.body]) {
  theme.observe(node, { attributes: true, attributeFilter: ["class"] });
}
if (!window.Plotly) document.querySelector("script[data-glassbox=plotly]")?.addEventListener("load", schedule);
draw();
