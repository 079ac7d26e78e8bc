// Which session this browser tab has: a random id and the text that the page kept, both in sessionStorage.

import { store } from "./widgets/runtime.js";

const ID = "glassbox-session";
const SAVED = "glassbox-saved";
const LINK = "glassbox-link"; // the query of the address that the page was opened with last
const LANGUAGE = "glassbox-lang";
const ANSWER_MS = 60; // that another tab with the same id has to answer

/** Storage may be closed to the page: then everything lasts as long as the page. @type {Map<string, string>} */
const memory = new Map();

/** @param {"sessionStorage" | "localStorage"} kind @param {string} name */
function read(kind, name) {
  try {
    return window[kind].getItem(name);
  } catch {
    return memory.get(name) ?? null;
  }
}

/** @param {"sessionStorage" | "localStorage"} kind @param {string} name @param {string} value */
function write(kind, name, value) {
  try {
    window[kind].setItem(name, value);
  } catch {
    memory.set(name, value);
  }
}

/** 128 random bits in hexadecimal; crypto.randomUUID is missing on plain HTTP. */
function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

let id = "";
const channel = "BroadcastChannel" in window ? new BroadcastChannel("glassbox") : null;
channel?.addEventListener("message", ({ data }) => {
  if (data.asks === id && data.from !== self) channel.postMessage({ alive: id });
});
const self = newId();

/** Whether another tab is alive with this id: then this one is its duplicate. @param {string} asked */
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
  const asked = new URLSearchParams(location.search).getAll("lang").at(-1) || read("localStorage", LANGUAGE);
  return asked || navigator.language.slice(0, 2);
}

let query = location.search.slice(1);

/** Whether the page is as it was, not opened by another link: after a reload, and after going back to it. */
function isLoadedAgain() {
  const [navigation] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  return navigation?.type !== "navigate" || read("sessionStorage", LINK) === location.search;
}

/**
 * The values of the event that opens the page: the id of the session, the text that is kept of it, the language, and
 * whatever else the event reads.
 * @param {any[]} values
 */
export async function arrive(values) {
  const kept = read("sessionStorage", ID);
  if (kept && isLoadedAgain()) query = ""; // its text has gone on from what its link asked for
  write("sessionStorage", LINK, location.search);
  id = kept && !(await isTaken(kept)) ? kept : newId();
  write("sessionStorage", ID, id);
  return [id, (kept && read("sessionStorage", SAVED)) ?? "", language(), ...values.slice(3)];
}

/** @type {(id: string) => void} */ let begin;
/** @type {Promise<string>} */
const begun = new Promise((resolve) => (begin = resolve));

/** The id of the session, once the server has it: events that are raised sooner wait. */
export const session = () => begun;

/** The link that the page was opened with; "" if it is loaded again. */
export const linkQuery = () => query;

store.on("saved", (saved) => saved && write("sessionStorage", SAVED, JSON.stringify(saved)));
store.on("session", (known) => known && begin(known));
store.on("restore", () => location.reload());
store.on("language", (chosen) => {
  document.documentElement.lang = chosen;
});
