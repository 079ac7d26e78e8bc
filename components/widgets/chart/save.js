// Saves a chart as displayed, with its width, theme and card colour.

import { find } from "../dom.js";

/** @typedef {"png" | "svg" | "html"} Format */

/**
 * @param {import("./rows.js").Plot} plot @param {HTMLElement} root  the widget's root
 * @param {string} name  the file's name @param {Format} format
 */
export async function saveChart(plot, root, name, format) {
  const ground = getComputedStyle(root).getPropertyValue("--gb-card").trim();
  const layout = { ...plot.layout, paper_bgcolor: ground, plot_bgcolor: ground };
  const link = document.createElement("a");
  if (format === "html") link.href = URL.createObjectURL(await htmlFile(plot, layout, root, name));
  else {
    const size = { width: plot.clientWidth, height: plot.clientHeight };
    link.href = await window.Plotly.toImage({ data: plot.data, layout }, { format, scale: 2, ...size });
  }
  link.download = `${name}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * Returns a page with the chart, its sentences and plotly.js, so that it needs no network.
 * @param {import("./rows.js").Plot} plot @param {Record<string, any>} layout @param {HTMLElement} root @param {string} name
 */
async function htmlFile(plot, layout, root, name) {
  const { src } = find(document, "script[data-glassbox=plotly]", HTMLScriptElement);
  const page = document.implementation.createHTMLDocument(name);
  page.documentElement.lang = document.documentElement.lang;
  /** @param {HTMLElement} parent @param {string} tag @param {string} text */
  const add = (parent, tag, text) => parent.appendChild(page.createElement(tag)).append(text);
  const { color, fontFamily } = getComputedStyle(find(root, ".gb-says"));
  const width = `${plot.clientWidth}px`;
  page.head.prepend(page.createElement("meta"));
  page.head.children[0].setAttribute("charset", "utf-8");
  add(page.head, "style", `body { background: ${layout.paper_bgcolor}; color: ${color}; font: 14px/1.5 ${fontFamily}; max-width: ${width}; margin: 16px auto; }`);
  add(page.head, "script", await (await fetch(src)).text());
  page.body.append(Object.assign(page.createElement("div"), { id: "chart" }));
  for (const sentence of root.querySelectorAll("figcaption p")) add(page.body, "p", sentence.textContent ?? "");
  const figure = window.Plotly.Plots.graphJson({ data: plot.data, layout }, false, "keepall").replaceAll("<", "\\u003c");
  add(page.body, "script", `Plotly.newPlot("chart", { ...${figure}, config: { displayModeBar: false } });`);
  return new Blob(["<!doctype html>", page.documentElement.outerHTML], { type: "text/html" });
}
