// Tooltips: one placed above its element, and one that follows the pointer.

import { make } from "./dom.js";

let made = 0;

/** Keeps a left edge within the width of `around`. @param {number} left @param {HTMLElement} tip @param {DOMRect} around */
const within = (left, tip, around) => Math.max(0, Math.min(left, around.width - tip.offsetWidth));

/** It is above its anchor, or below it if it would extend above the root. @param {HTMLElement} root the container @param {HTMLElement} tip */
export function createTip(root, tip) {
  /** @type {HTMLElement | null} */ let anchor = null;
  tip.id = `gb-tip-${(made += 1)}`;

  function place() {
    if (!anchor) return;
    const [box, around] = [anchor.getBoundingClientRect(), root.getBoundingClientRect()];
    tip.style.left = `${within(box.left + box.width / 2 - tip.offsetWidth / 2 - around.left, tip, around)}px`;
    const above = box.top - tip.offsetHeight - 8;
    tip.style.top = `${(above < Math.max(0, around.top) ? box.bottom + 8 : above) - around.top}px`;
  }

  function hide() {
    tip.hidden = true;
    anchor?.removeAttribute("aria-describedby");
    anchor = null;
  }

  /** @param {HTMLElement} target @param {string} title @param {[string, string][]} rows name and value */
  function show(target, title, rows) {
    anchor?.removeAttribute("aria-describedby");
    anchor = target;
    tip.replaceChildren(make("strong", "", title));
    for (const [name, value] of rows) tip.append(make("span", "", name), make("b", "", value));
    tip.hidden = false;
    target.setAttribute("aria-describedby", tip.id);
    place();
  }

  return { show, hide, place, anchor: () => anchor };
}

/** Creates a tooltip above a point of the window, such as the pointer. @param {HTMLElement} root the container @param {HTMLElement} tip */
export function createPointerTip(root, tip) {
  return {
    hide: () => void (tip.hidden = true),

    /** @param {{clientX: number, clientY: number}} at @param {HTMLElement[]} lines */
    show({ clientX, clientY }, lines) {
      tip.hidden = false;
      tip.replaceChildren(...lines);
      const around = root.getBoundingClientRect();
      const right = clientX - around.left + 20;
      const left = right + tip.offsetWidth > around.width ? right - tip.offsetWidth - 40 : right;
      tip.style.transform = `translate(${within(left, tip, around)}px, ${Math.max(0, clientY - around.top - tip.offsetHeight - 12)}px)`;
    },
  };
}
