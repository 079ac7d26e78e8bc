// What gradio 6.31 lacks, made up for on the page. tests/browser/test_gradio_workarounds.py fails once gradio does it.

import { tick } from "./widgets/runtime.js";

// The list of a Dropdown stays open over the page when the focus leaves it by Tab.
document.addEventListener("keydown", ({ key, target }) => {
  if (key !== "Tab" || !(target instanceof Element) || target.getAttribute("role") !== "combobox") return;
  target.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
});

// A Textbox raises `input` for keys that write, and not for what is pasted, deleted or composed by an input method.
let pressed = false;
document.addEventListener("keypress", () => {
  pressed = true;
  setTimeout(() => (pressed = false));
});
document.addEventListener("input", ({ target }) => {
  if (pressed || !(target instanceof Element) || !target.matches("[data-testid=textbox]")) return;
  target.dispatchEvent(new KeyboardEvent("keypress"));
});

// The stream of answers is closed when all events are answered. An event that is sent at that moment is answered on the
// next stream, which only another event opens, and until then its control does nothing.
const NEXT_EVENT_MS = 1000;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let ticking = false;

/** Called for each event; sends another one, which changes nothing, a while after the last. */
export function eventSent() {
  if (!ticking) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      ticking = true;
      tick();
    }, NEXT_EVENT_MS);
  }
  ticking = false;
}
