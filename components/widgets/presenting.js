// Presentation mode: full screen, large text, and a presenter's keys. A step moves through an open film or,
// without one, the stops of a class. If neither is open, it adds or undoes a word in Write, or moves the selection in
// other tabs.

import { modified } from "./dom.js";

/** @typedef {(by: number) => boolean} Stepper  moves by 1 or -1; returns whether that was possible */

const STEPS = /** @type {Record<string, number>} */ ({ ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1 });
export const CHANGED = "gb-presenting"; // document event when the mode begins or ends
const TYPING = "input, textarea, select, [contenteditable], dialog"; // elements that use most keys themselves

/** Steppers for the open film and the open stops. @type {{ film: Stepper | null, stops: Stepper | null }} */
export const steppers = { film: null, stops: null };

export const isPresenting = () => document.body.hasAttribute("data-presenting");

/** Starts the mode. Browsers only allow full screen in response to a click or key press. */
export function present() {
  document.body.setAttribute("data-presenting", "");
  document.dispatchEvent(new Event(CHANGED));
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  document.documentElement.requestFullscreen?.().catch(() => {}); // if this is refused, the page only fills the window
}

export function endPresentation() {
  document.body.removeAttribute("data-presenting");
  document.dispatchEvent(new Event(CHANGED));
  if (document.fullscreenElement) document.exitFullscreen();
}

/** @param {number} by */
export function step(by) {
  if (steppers.film?.(by) || steppers.stops?.(by) || steppers.film) return;
  const [text, button] = /** @type {(HTMLElement | null)[]} */ (["#prompt", by > 0 ? "#step" : "#undo"].map((id) => document.querySelector(id)));
  if (text?.offsetParent) return button?.click(); // the button may be among the closed controls
  const tokens = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("#dock [role=option]")]);
  tokens[tokens.findIndex((each) => each.ariaSelected === "true") + by]?.click();
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const { key, target } = event;
  const by = STEPS[key];
  const leaves = key === "Escape" && !steppers.film; // Escape closes an open film first
  if (!isPresenting() || modified(event) || (!by && !leaves)) return;
  if (target instanceof Element && target.closest(TYPING) && !key.startsWith("Page")) return;
  if (key === " " && target instanceof Element && target.closest("button, summary, [role]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (by) step(by);
  else endPresentation();
}

document.addEventListener("keydown", onKey, true);
document.addEventListener("fullscreenchange", () => document.fullscreenElement || endPresentation());
