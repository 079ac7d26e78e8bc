// What the page keeps in the browser, or only in memory if the browser blocks its storage or the storage is full.

/** @typedef {"sessionStorage" | "localStorage"} Kind */

/** @type {Map<string, string>} */ const memory = new Map();

/** @param {Kind} kind @param {string} name @returns {string | null} null if there is none */
export function read(kind, name) {
  try {
    return memory.get(name) ?? window[kind].getItem(name);
  } catch {
    return null;
  }
}

/** @param {Kind} kind @param {string} name @param {string} value */
export function write(kind, name, value) {
  try {
    window[kind].setItem(name, value);
    memory.delete(name);
  } catch {
    memory.set(name, value);
  }
}

// A visitor's progress in this browser: the lessons seen and answered, and the last one opened

/** @typedef {{done: Record<string, number>, best: Record<string, number>, last: string}} Progress  done: level of each item, 1 for seen, 2 for answered or solved; best: highest score for each item; last: the last opened item */

export const PROGRESS = "glassbox-progress"; // event on the document: there is progress

/** Manages the progress in one list. @param {string} list the list's name in the storage */
export function createProgress(list) {
  const key = `glassbox-${list}`;
  /** @returns {Progress} */
  const load = () => ({ done: {}, best: {}, last: "", ...JSON.parse(read("localStorage", key) || "{}") });

  return {
    read: load,

    /** Records that an item was seen (1), or answered or solved (2). @param {string} item @param {number} level @param {number | null} [score] */
    keep(item, level, score) {
      if (document.body.hasAttribute("data-following")) return; // done on the followed page, not by this visitor
      const progress = load();
      progress.done[item] = Math.max(progress.done[item] || 0, level);
      if (typeof score === "number") progress.best[item] = Math.max(progress.best[item] || 0, score);
      progress.last = item;
      write("localStorage", key, JSON.stringify(progress));
      document.dispatchEvent(new Event(PROGRESS));
    },
  };
}

export const lessons = createProgress("lessons");
export const challenges = createProgress("challenges");
export const films = createProgress("films");
