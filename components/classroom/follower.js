// Follows another page: shows its frames and blocks the visitor's own actions until the visitor leaves the class.

import { newId, session } from "../arrival.js";
import { isLoading, language } from "../widgets/i18n.js";
import { askClass, follow as showOther, leave as showOwn, mirror, store } from "../widgets/runtime.js";

const RETRY_MS = 2000; // delay after a failed request
const OPEN = "#class-bar, #class-dialog, #more, #language, .gb-term, .gb-skip"; // parts of the page that stay usable
const SCROLLS = ["Tab", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", "Escape"];

/** @param {number} ms */
const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {() => void} onChange called when following starts or ends */
export function createFollower(onChange) {
  const page = newId();
  let code = ""; // the followed class
  let ended = ""; // why following ended without a click: "over", or "busy" if the class is full
  let running = new AbortController();

  /** Puts the followed class into the address, so that a reload follows it again. @param {string} value */
  function name(value) {
    const address = new URL(location.href);
    if (value) address.searchParams.set("follow", value);
    else address.searchParams.delete("follow");
    history.replaceState(null, "", address);
  }

  /** Requests frames in a loop. @param {AbortSignal} signal */
  async function listen(signal) {
    await session();
    await isLoading(); // until the session's language is used
    let seen = "";
    while (!signal.aborted) {
      const numbers = document.body.hasAttribute("data-numbers") ? "1" : "";
      const query = new URLSearchParams({ page, seen, numbers, language: language() });
      try {
        const answer = await fetch(`glassbox/class/${code}?${query}`, { signal });
        if (answer.status === 404 || answer.status === 409) return end(answer.status === 409 ? "busy" : "over");
        if (answer.status >= 400) await rest(RETRY_MS);
        if (answer.status !== 200) continue;
        const { epoch, n, frames } = await answer.json();
        for (const frame of frames) mirror({ ...frame, epoch });
        seen = `${epoch}.${n}`;
      } catch {
        if (!signal.aborted) await rest(RETRY_MS);
      }
    }
  }

  /** @param {string} asked */
  function follow(asked) {
    [code, ended] = [asked, ""];
    name(code);
    showOther();
    again();
    onChange();
  }

  function again() {
    running.abort();
    running = new AbortController();
    listen(running.signal);
  }

  /** @param {string} why */
  function end(why) {
    running.abort();
    showOwn();
    name("");
    askClass({ do: "alone", code });
    [code, ended] = ["", why];
    onChange();
  }

  /** Blocks a person's actions; the bar explains how to leave. @param {Event} event */
  function hold(event) {
    if (!code || !event.isTrusted || !(event.target instanceof Element) || event.target.closest(OPEN)) return;
    if (event instanceof KeyboardEvent && (SCROLLS.includes(event.key) || event.ctrlKey || event.metaKey)) {
      if (event.key !== "Tab") event.stopImmediatePropagation();
      return;
    }
    event.stopImmediatePropagation();
    if (event.type !== "pointerdown") event.preventDefault(); // a touch may still scroll
    const button = /** @type {HTMLElement | null} */ (document.querySelector("#class-bar button"));
    if (event.type === "click" || event.type === "keydown") button?.animate({ scale: [1, 1.12, 1] }, { duration: 300 });
  }

  for (const type of ["pointerdown", "mousedown", "click", "keydown", "input"]) addEventListener(type, hold, true);
  store.on("voice", () => code && again()); // the language or the number format changed
  const asked = new URLSearchParams(location.search).get("follow");
  if (asked) queueMicrotask(() => follow(asked));

  /** Hides the message about why following ended. */
  function forget() {
    if (ended === "over") askClass({ do: "alone", code: "" }); // nobody can follow it again
    ended = "";
    onChange();
  }

  return { follow, forget, leave: () => end(""), code: () => code, ended: () => ended };
}
