// Client-side workarounds for Gradio, each with the version in which it was last needed.

import { ended } from "./answer_stream.js";

// 6.31: a broken response stream is treated as open, so the page waits forever for responses to later events.
const { fetch: request } = window;
window.fetch = async (input, init) => {
  const response = await request(input, init);
  return /\/queue\/data(\?|$)/.test(response.url) ? ended(response, init?.signal) : response;
};

// 6.31: each tab in a row is a separate Tab stop, and arrow keys do nothing.
/** @param {Element} tab */
const rowOf = (tab) => /** @type {HTMLElement[]} */ ([...(tab.closest("[role=tablist]")?.querySelectorAll("[role=tab]") ?? [])]);
document.addEventListener("focusin", ({ target, relatedTarget }) => {
  if (!(target instanceof HTMLElement) || target.getAttribute("role") !== "tab") return;
  const row = rowOf(target);
  const comesFromOutside = !row.some((tab) => tab === relatedTarget) && target.matches(":focus-visible");
  const stop = (comesFromOutside && row.find((tab) => tab.ariaSelected === "true")) || target;
  for (const tab of row) tab.tabIndex = tab === stop ? 0 : -1;
  stop.focus();
});
document.addEventListener("keydown", (event) => {
  if (!(event.target instanceof HTMLElement) || event.target.getAttribute("role") !== "tab") return;
  const row = rowOf(event.target);
  const at = row.indexOf(event.target);
  /** @type {Record<string, number>} */
  const places = { ArrowRight: (at + 1) % row.length, ArrowLeft: (at + row.length - 1) % row.length, Home: 0, End: row.length - 1 };
  if (!(event.key in places)) return;
  event.preventDefault();
  row[places[event.key]].focus();
});
