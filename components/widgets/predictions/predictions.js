/**
 * Next tokens as bars on a fixed axis.
 * @typedef {object} Predictions
 * @property {string} [title]  also the list's name
 * @property {string} [text]  the sentence beside it
 * @property {[string, number, number, string, object][]} [bars]  token, probability before and after the settings in
 *   0..1, name, payload
 * @property {object} [common]  payload common to all bars
 * @property {number} [chosen]  index of the token that follows in the text; -1 for none
 * @property {string} [others]  the line below the first bars
 */

import { find, make, roving, setText } from "../dom.js";
import { change } from "../labels.js";
import { defineWidget } from "../runtime.js";

const GLIDE_MS = 150;

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const list = find(root, ".gb-bars");
  const rows = /** @type {HTMLCollectionOf<HTMLElement>} */ (list.children);
  const { selectable } = host.options;
  /** @type {Predictions} */ let shown = {};

  function makeRow() {
    const row = make("div", "", "", selectable ? { role: "option", "aria-selected": "false", tabindex: "-1" } : { role: "listitem" });
    const track = make("span", "gb-track");
    const bars = make("span");
    bars.append(make("i", "gb-before"), make("i", "gb-after"));
    track.append(bars, make("b"));
    row.append(make("code"), track);
    return row;
  }

  /** Slides a row up or down from its previous place in the list. @param {HTMLElement} row @param {number} by rows */
  function glide(row, by) {
    if (!by || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    row.animate({ transform: [`translateY(${100 * by}%)`, "none"] }, { duration: GLIDE_MS, easing: "ease-out" });
  }

  /** @param {Predictions} data */
  function draw(data) {
    const isNew = data !== shown;
    const isElsewhere = JSON.stringify(data.common) !== JSON.stringify(shown.common);
    shown = data;
    const { bars = [], chosen = -1 } = data;
    root.hidden = !data.title && !bars.length;
    list.setAttribute("aria-label", data.title ?? "");
    setText(find(root, "h2"), data.title ?? "");
    setText(find(root, ".gb-says"), data.text ?? "");
    setText(find(root, ".gb-others"), data.others ?? "");
    const places = new Map([...rows].map((row, i) => [row, i]));
    const kept = new Map([...rows].map((row) => [row.dataset.token, row]));
    const entered = [...rows].findIndex((row) => row === document.activeElement);
    const focused = rows[entered];
    // Bars of the same prediction move to their new places; those of another one, such as the next, take their places.
    list.classList.toggle("gb-still", isElsewhere);
    const placed = bars.map(([token, , , , sent], i) => {
      const key = `${token} ${JSON.stringify(sent)}`;
      const row = (isElsewhere ? rows[i] : kept.get(key)) ?? makeRow();
      row.dataset.token = key;
      kept.delete(key);
      return row;
    });
    if (placed.length !== rows.length || placed.some((row, i) => row !== rows[i])) {
      list.replaceChildren(...placed);
      // The keyboard focus stays on its token, or at that token's former position.
      (focused?.isConnected ? focused : rows[Math.min(entered, rows.length - 1)])?.focus({ preventScroll: true });
    }
    bars.forEach(([token, before, after, name], i) => {
      setText(find(rows[i], "code"), token);
      setText(find(rows[i], "b"), change(before, after));
      rows[i].title = name;
      rows[i].setAttribute("aria-label", name);
      rows[i].classList.toggle("gb-chosen", i === chosen);
      if (selectable) rows[i].setAttribute("aria-selected", String(i === chosen));
      rows[i].classList.toggle("gb-changed", before !== after);
      rows[i].style.setProperty("--before", before.toFixed(4));
      rows[i].style.setProperty("--after", after.toFixed(4));
      if (!isElsewhere) glide(rows[i], (places.get(rows[i]) ?? i) - i);
    });
    if (isNew && entered < 0) list.scrollTop = 0;
    enter?.();
  }

  /** @param {number} i */
  function choose(i) {
    const bar = shown.bars?.[i];
    if (bar) host.send({ ...shown.common, ...bar[4] });
  }

  const enter = selectable ? roving(list, rows, choose) : null;
  if (!selectable) {
    list.setAttribute("role", "list");
    list.tabIndex = 0; // scrolls by keyboard
  }
  return { draw };
}

defineWidget("predictions", mount);
