// What gradio 6.31 lacks, made up for on the page. tests/browser/test_gradio_workarounds.py fails once gradio does it.

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
