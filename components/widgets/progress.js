// A visitor's progress in this browser, such as the lessons seen and answered, and the last one opened.

import { read as stored, write } from "../storage.js";

/** @typedef {{done: Record<string, number>, best: Record<string, number>, last: string}} Progress  done: level of each item, 1 for seen, 2 for answered or solved; best: highest score for each item; last: the last opened item */

/** Manages the progress in one list. @param {string} list the list's name in the storage */
export function createProgress(list) {
  const key = `glassbox-${list}`;
  const changed = new EventTarget();

  /** @returns {Progress} */
  function read() {
    try {
      return { done: {}, best: {}, last: "", ...JSON.parse(stored("localStorage", key) || "{}") };
    } catch {
      return { done: {}, best: {}, last: "" };
    }
  }

  return {
    read,

    /** Records that an item was seen (1), or answered or solved (2). @param {string} item @param {number} level @param {number | null} [score] */
    keep(item, level, score) {
      if (document.body.hasAttribute("data-following")) return; // done on the followed page, not by this visitor
      const progress = read();
      progress.done[item] = Math.max(progress.done[item] || 0, level);
      if (typeof score === "number") progress.best[item] = Math.max(progress.best[item] || 0, score);
      progress.last = item;
      write("localStorage", key, JSON.stringify(progress));
      changed.dispatchEvent(new Event("change"));
    },

    /** @param {() => void} listener @param {AbortSignal} signal */
    onChange: (listener, signal) => changed.addEventListener("change", listener, { signal }),
  };
}

export const lessons = createProgress("lessons");
export const challenges = createProgress("challenges");
export const films = createProgress("films");
