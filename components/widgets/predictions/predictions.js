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
 * @property {boolean} [waiting]  whether they are being computed
 */

import { find, make, roving, setAll, setText } from "../dom.js";
import { change } from "../labels.js";
import { defineWidget } from "../runtime.js";

const GLIDE_MS = 150;

defineWidget("predictions", (root, host) => {
  const list = find(root, ".gb-bars");
  const rows = /** @type {HTMLCollectionOf<HTMLElement>} */ (list.children);
  const { selectable } = host.options;
  /** @type {Predictions} */ let shown = {};
  let isScrolled = false; // known without asking for a layout

  function makeRow() {
    const bars = make("span", "", [make("i", "gb-before"), make("i", "gb-after")]);
    const track = make("span", "gb-track", [bars, make("b")]);
    return make("div", "", [make("code"), track], selectable ? { role: "option", tabindex: "-1" } : { role: "listitem" });
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
    const { bars = [], chosen = -1, waiting } = data;
    root.hidden = !waiting && !data.title && !bars.length; // while it waits, it keeps its place
    list.setAttribute("aria-label", data.title ?? "");
    setText(find(root, "h2"), data.title ?? "");
    setText(find(root, ".gb-says"), data.text ?? "");
    setText(find(root, ".gb-others"), data.others ?? "");
    const before = [...rows];
    const kept = new Map(before.map((row) => [row.dataset.token, row]));
    const entered = before.findIndex((row) => row === document.activeElement);
    const focused = before[entered];
    // Bars of the same prediction move to their new places; those of another one, such as the next, take their places.
    list.classList.toggle("gb-still", isElsewhere);
    const placed = bars.map(([token, , , , sent], i) => {
      const key = `${token} ${JSON.stringify(sent)}`;
      const row = (isElsewhere ? before[i] : kept.get(key)) ?? makeRow();
      row.dataset.token = key;
      kept.delete(key);
      return row;
    });
    if (placed.length !== before.length || placed.some((row, i) => row !== before[i])) {
      list.replaceChildren(...placed);
      // The keyboard focus stays on its token, or at that token's former position.
      (focused?.isConnected ? focused : rows[Math.min(entered, rows.length - 1)])?.focus({ preventScroll: true });
    }
    placed.forEach((row, i) => {
      const [token, from, to, name] = bars[i];
      setText(find(row, "code"), token);
      setText(find(row, "b"), change(from, to));
      setAll(row, { title: name, "aria-label": name });
      row.classList.toggle("gb-chosen", i === chosen);
      if (selectable) row.setAttribute("aria-selected", String(i === chosen));
      row.classList.toggle("gb-changed", from !== to);
      row.style.setProperty("--before", from.toFixed(4));
      row.style.setProperty("--after", to.toFixed(4));
      if (!isElsewhere && before.includes(row)) glide(row, before.indexOf(row) - i);
    });
    if (isNew && isScrolled && entered < 0) list.scrollTop = 0;
    enter?.();
  }

  const enter = selectable ? roving(list, rows, (i) => host.send({ ...shown.common, ...shown.bars?.[i][4] })) : null;
  list.addEventListener("scroll", () => (isScrolled = list.scrollTop > 0));
  if (!selectable) {
    list.setAttribute("role", "list");
    list.tabIndex = 0; // scrolls by keyboard
  }
  return { draw };
});
