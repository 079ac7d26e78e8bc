// Identifies the session of this browser tab: a random id and the saved session, both in sessionStorage.

import { read, write } from "./storage.js";
import { speak } from "./widgets/i18n.js";
import { setExact } from "./widgets/labels.js";
import { isSettled, store } from "./widgets/runtime.js";

const ID = "glassbox-session";
const SAVED = "glassbox-saved";
const LINK = "glassbox-link"; // query of the page's last address
const LANGUAGE = "glassbox-lang";
const NUMBERS = "glassbox-numbers";

/** Returns 128 random bits in hexadecimal; crypto.randomUUID is missing on plain HTTP. */
export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function language() {
  const asked = new URLSearchParams(opened).getAll("lang").at(-1) || read("localStorage", LANGUAGE);
  return asked || navigator.language.slice(0, 2);
}

const opened = location.search; // read before the first frame changes the address
const [navigation] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
/** Whether the page was reloaded or restored from history rather than opened through another link. */
const isLoadedAgain = navigation?.type !== "navigate" || read("sessionStorage", LINK) === opened;
let query = opened.slice(1);

/** Records that the address belongs to the session, so that a reload does not open it as a link. */
export const rememberLink = () => write("sessionStorage", LINK, location.search);

/**
 * Returns the inputs to the page's load event: the session id, and the saved session, language and Numbers switch. While
 * the page is open, the id is not in the storage, because a duplicate of this browser tab starts with a copy of it.
 */
export function arrive() {
  const [before, kept] = [read("sessionStorage", ID), read("sessionStorage", SAVED)];
  if ((before || kept) && isLoadedAgain) query = ""; // the saved text is newer than the link's
  rememberLink();
  const id = before || newId();
  write("sessionStorage", ID, "");
  addEventListener("pagehide", () => write("sessionStorage", ID, id));
  addEventListener("pageshow", ({ persisted }) => persisted && write("sessionStorage", ID, ""));
  return [id, JSON.stringify({ kept: kept ?? "", language: language(), numbers: read("localStorage", NUMBERS) === "on" })];
}

let hasBegun = false;
/** @type {(id: string) => void} */ let begin;
/** @type {Promise<string>} */ const begun = new Promise((resolve) => (begin = resolve));

/** Resolves to the session id once the server knows it; earlier events wait for it. */
export const session = () => begun;

/** Returns whether the page shows the session: its first frame is drawn and applied to gradio's components. */
export const isBack = () => hasBegun && isSettled();

/** The query of the page's address; "" after a reload. */
export const linkQuery = () => query;

let saved = {};
store.on("saved", (changes) => {
  saved = { ...saved, ...changes };
  write("sessionStorage", SAVED, JSON.stringify(saved));
});
store.on("session", ({ id }) => {
  hasBegun = true;
  begin(id);
});
store.on("restore", () => location.reload());
const { languages } = window.glassbox.options.page;
speak(languages.includes(language()) ? language() : languages[0]);
store.on("voice", ({ spoken }) => {
  speak(spoken.language);
  setExact(spoken.exact);
  document.body.toggleAttribute("data-numbers", spoken.exact); // redraws everything
});
