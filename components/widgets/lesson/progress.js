// Progress of the course in this browser: seen and answered lessons, and the last one.

/** @typedef {{done: Record<string, number>, last: string}} Progress  done: by lesson, 1 seen, 2 answered */

const KEY = "glassbox-lessons";
const changed = new EventTarget();

/** @returns {Progress} */
export function readProgress() {
  try {
    return { done: {}, last: "", ...JSON.parse(localStorage.getItem(KEY) || "{}") };
  } catch {
    return { done: {}, last: "" };
  }
}

/** A lesson was seen (1) or answered (2). @param {string} lesson @param {number} level */
export function keepProgress(lesson, level) {
  const progress = readProgress();
  progress.done[lesson] = Math.max(progress.done[lesson] || 0, level);
  progress.last = lesson;
  try {
    localStorage.setItem(KEY, JSON.stringify(progress));
  } catch {
    // without storage the course works too
  }
  changed.dispatchEvent(new Event("change"));
}

/** @param {() => void} listener @param {AbortSignal} signal */
export const onProgress = (listener, signal) => changed.addEventListener("change", listener, { signal });
