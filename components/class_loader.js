// Loads the scripts for a class when they are needed: when a sequence is open, another page is followed, or the dialog
// opens.

import { store } from "./widgets/runtime.js";

/** @typedef {{ open: (what: string) => void, draw: (shown: any) => void }} Classroom */

/** @type {any} */ let shown = null; // the newest signal
/** @type {Promise<void> | undefined} */ let loading;
/** @type {Classroom | null} */ let classroom = null;

/** Called by the loaded script. @param {Classroom} made */
export function register(made) {
  classroom = made;
  made.draw(shown);
}

const load = () => (loading ??= import(new URL("class.js", import.meta.url).href));

/** Opens the dialog, or presentation mode. @param {string} what */
export async function openClass(what) {
  await load();
  classroom?.open(what);
}

export function startClass() {
  store.on("class", (value) => {
    shown = value;
    if (value?.stop || value?.answer || value?.code) load();
    classroom?.draw(value);
  });
  if (new URLSearchParams(location.search).has("follow")) load();
}
