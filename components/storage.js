// What the page keeps in the browser, or only in memory if the browser blocks its storage or the storage is full.

/** @typedef {"sessionStorage" | "localStorage"} Kind */

/** @type {Map<string, string>} */
const memory = new Map();

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
