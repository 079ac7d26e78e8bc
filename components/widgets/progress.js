// What a visitor has reached in this browser, such as the lessons that were seen and answered, and the last one.

/** @typedef {{done: Record<string, number>, last: string}} Progress  done: by item, 1 seen, 2 answered or solved */

/** Keeps the progress of one list. @param {string} list its name in the storage */
export function createProgress(list) {
  const key = `glassbox-${list}`;
  const changed = new EventTarget();

  /** @returns {Progress} */
  function read() {
    try {
      return { done: {}, last: "", ...JSON.parse(localStorage.getItem(key) || "{}") };
    } catch {
      return { done: {}, last: "" };
    }
  }

  return {
    read,

    /** An item was seen (1), or answered or solved (2). @param {string} item @param {number} level */
    keep(item, level) {
      const progress = read();
      progress.done[item] = Math.max(progress.done[item] || 0, level);
      progress.last = item;
      try {
        localStorage.setItem(key, JSON.stringify(progress));
      } catch {
        // without storage the list works too
      }
      changed.dispatchEvent(new Event("change"));
    },

    /** @param {() => void} listener @param {AbortSignal} signal */
    onChange: (listener, signal) => changed.addEventListener("change", listener, { signal }),
  };
}

export const lessons = createProgress("lessons");
export const challenges = createProgress("challenges");
export const films = createProgress("films");
