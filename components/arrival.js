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
const ANSWER_MS = 250; // time allowed for another, possibly busy, tab with the same id to answer

/** Returns 128 random bits in hexadecimal; crypto.randomUUID is missing on plain HTTP. */
function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

let id = "";
const channel = "BroadcastChannel" in window ? new BroadcastChannel("glassbox") : null;
channel?.addEventListener("message", ({ data }) => {
  if (data.asks === id && data.from !== self) channel.postMessage({ alive: id });
});
const self = newId();

/** Resolves to true if another tab has this id, which makes this tab a duplicate. @param {string} asked */
function isTaken(asked) {
  if (!channel) return Promise.resolve(false);
  return new Promise((resolve) => {
    /** @param {MessageEvent} event */
    const hear = ({ data }) => data.alive === asked && done(true);
    /** @param {boolean} taken */
    const done = (taken) => {
      channel.removeEventListener("message", hear);
      resolve(taken);
    };
    channel.addEventListener("message", hear);
    channel.postMessage({ asks: asked, from: self });
    setTimeout(() => done(false), ANSWER_MS);
  });
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

/** Returns the inputs to the page's load event: the session id, and the saved session, language and Numbers switch. */
export async function arrive() {
  const before = read("sessionStorage", ID);
  if (before && isLoadedAgain) query = ""; // the saved text is newer than the link's
  rememberLink();
  id = before && !(await isTaken(before)) ? before : newId();
  write("sessionStorage", ID, id);
  const kept = (before && read("sessionStorage", SAVED)) ?? "";
  return [id, JSON.stringify({ kept, language: language(), numbers: read("localStorage", NUMBERS) === "on" })];
}

let hasBegun = false;
/** @type {(id: string) => void} */ let begin;
/** @type {Promise<string>} */
const begun = new Promise((resolve) => (begin = resolve));

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
store.on("session", (known) => {
  if (!known) return;
  hasBegun = true;
  begin(known);
});
store.on("restore", () => location.reload());
const { languages } = window.glassbox.options.page;
speak(languages.includes(language()) ? language() : languages[0]);
store.on("voice", (voice) => {
  if (!hasBegun) return; // the frame in the page's HTML is in English for every visitor
  speak(voice.language);
  setExact(voice.exact);
  document.body.toggleAttribute("data-numbers", voice.exact); // redraws everything
});
