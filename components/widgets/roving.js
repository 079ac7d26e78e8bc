// Lists with a roving tabindex: Tab enters one item, and the arrow keys move to the others.

import { modified } from "./dom.js";

/** Numbers of rows and columns by which an arrow key moves. @type {Record<string, [number, number]>} */
export const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Makes a vertical list in which a click, Enter or Space chooses an item.
 * @param {HTMLElement} list @param {HTMLCollectionOf<HTMLElement>} items  its current items
 * @param {(index: number) => void} choose
 * @returns {(to?: number) => void} makes Tab enter the item `to`; by default, the same item as before
 */
export function roving(list, items, choose) {
  let current = 0;
  const indexOf = (/** @type {EventTarget | null} */ target) =>
    target instanceof Node ? [...items].findIndex((item) => item.contains(target)) : -1;

  function turn(to = current) {
    current = Math.max(0, Math.min(items.length - 1, to));
    [...items].forEach((item, i) => item.setAttribute("tabindex", i === current ? "0" : "-1"));
  }

  list.addEventListener("click", ({ target }) => indexOf(target) >= 0 && choose(indexOf(target)));
  list.addEventListener("focusin", ({ target }) => turn(indexOf(target)));
  list.addEventListener("keydown", (event) => {
    const to = { ArrowUp: current - 1, ArrowDown: current + 1, Home: 0, End: items.length - 1 }[event.key];
    if (modified(event) || indexOf(event.target) < 0) return;
    if (event.key === "Enter" || event.key === " ") choose(current);
    else if (to === undefined) return;
    else {
      turn(to);
      items[current].focus();
    }
    event.preventDefault();
  });
  return turn;
}
