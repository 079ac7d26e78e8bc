// Adapts a figure to the page: width, fonts, theme.

/** @typedef {Record<string, string>} Partners  the dark theme's colours, keyed by the light theme's */

/**
 * Returns a copy with replaced colours, leaving labels unchanged.
 * @param {any} node @param {Partners} partners @param {boolean} [colour]
 * @returns {any}
 */
export function recoloured(node, partners, colour = false) {
  if (typeof node === "string") return (colour && partners[node]) || node;
  if (Array.isArray(node)) return node.map((item) => recoloured(item, partners, colour));
  if (!node || typeof node !== "object" || ArrayBuffer.isView(node)) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, recoloured(value, partners, /color/.test(key))]));
}

const CELL_TEXT = 52; // minimum width in px of a cell that shows a token

/**
 * Omits labels of columns narrower than 11 px, and texts in narrow cells. If `meta.column` is set to the selected
 * column, texts far from that column are omitted instead.
 * @param {{data: Record<string, any>[], layout: Record<string, any>}} figure @param {number} width
 */
export function thinLabels({ data, layout }, width) {
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

/**
 * Returns a copy of the figure for drawing, because plotly modifies the figure it draws.
 * @param {{data: object[], layout: Record<string, any>}} figure @param {HTMLElement} root @param {number} width @param {Partners} partners
 */
export function dressed(figure, root, width, partners) {
  const style = getComputedStyle(root);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--gb-${name}`).trim();
  const { data, layout } = recoloured(figure, partners);
  thinLabels({ data, layout }, width);
  const hoverFont = { family: colour("mono"), size: 12, color: colour("text") };
  const page = {
    width,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style.fontFamily, size: 12, color: colour("muted") },
    hoverlabel: { bgcolor: colour("raised"), bordercolor: colour("line"), font: hoverFont },
  };
  return { data, layout: { dragmode: false, ...layout, ...page } };
}
