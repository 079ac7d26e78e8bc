/**
 * Concepts to turn up.
 * @typedef {[layer: number, feature: number]} Place
 * @typedef {object} Steer
 * @property {{place: Place, name: string, on: boolean}[]} [chips]  if missing, the widget is hidden
 * @property {string} [more]  label of the button after the chips; if it is missing, there is no button
 * @property {{place: Place, name: string, value: number, min: number, max: number, step: number} | null} [slider]
 * @property {string} [note]  a remark about the slider's concept
 * @property {[label: string, text: string][]} [texts]  the last one is the changed text
 */

import { find, make, makeButton, setCount, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";

const REST_MS = 600; // how long a slider moved by a person ignores the server's value

/** @type {import("./runtime.js").Mount} */
function mount(root, host) {
  const chips = find(root, ".gb-steer-chips");
  const [control, texts] = [find(root, ".gb-steer-slider"), find(root, ".gb-steer-texts")];
  const [label, output] = [find(control, "label"), find(control, "output")];
  const range = find(control, "input", HTMLInputElement);
  const reset = find(control, "button", HTMLButtonElement);
  /** @type {Steer} */ let shown = {};
  let moved = -Infinity; // time at which a person last moved the slider
  range.id = `${host.id}-strength`;
  label.setAttribute("for", range.id);

  /** Formats a strength; below 0, as a share of the activity. @param {number} value */
  const written = (value) => (value < 0 ? `−${-100 * value}%` : value ? `+${value}` : "0");

  /** Sets both ends of the slider's filled part. */
  function fill() {
    const [value, min, max] = [range.value, range.min, range.max].map(Number);
    const [at, zero] = [value, 0].map((each) => (100 * (each - min)) / (max - min || 1));
    range.style.setProperty("--from", `${Math.min(zero, at)}%`);
    range.style.setProperty("--to", `${Math.max(zero, at)}%`);
    range.setAttribute("aria-valuetext", value < 0 ? t("concepts.weakened", { n: `${-100 * value}%` }) : t("concepts.strength", { n: value }));
    setText(output, written(value));
  }

  /** @param {Steer} data */
  function drawSlider({ slider }) {
    control.hidden = !slider;
    if (!slider) return;
    const place = slider.place.join(".");
    const isOther = range.dataset.place !== place;
    range.dataset.place = place;
    const { min, max, step } = slider;
    for (const [key, value] of Object.entries({ min, max, step })) range.setAttribute(key, String(value));
    if (isOther || performance.now() - moved > REST_MS) range.value = String(slider.value);
    setText(label, slider.name);
    setText(reset, t("concepts.reset"));
    const [low, high] = find(control, ".gb-steer-ends").children;
    setText(low, t("concepts.weaker"));
    setText(high, t("concepts.stronger"));
    fill();
  }

  /** @param {Steer} data */
  function draw(data) {
    shown = data;
    const { chips: offered = [], more = "", texts: rows = [] } = data;
    root.hidden = !offered.length;
    setText(find(root, "h2"), t("concepts.question"));
    setCount(chips, offered.length + Number(Boolean(more)), () => makeButton("gb-button"));
    offered.forEach(({ name, on }, i) => {
      setText(chips.children[i], name);
      chips.children[i].setAttribute("aria-pressed", String(on));
    });
    if (more) {
      const button = chips.children[offered.length];
      setText(button, more);
      button.removeAttribute("aria-pressed");
    }
    drawSlider(data);
    setText(find(root, ".gb-steer-note"), data.note ?? "");
    setCount(texts, 2 * rows.length, () => make(texts.children.length % 2 ? "dd" : "dt"));
    rows.flat().forEach((text, i) => setText(texts.children[i], text));
  }

  chips.addEventListener("click", ({ target }) => {
    const at = [...chips.children].findIndex((chip) => target instanceof Node && chip.contains(target));
    const chip = shown.chips?.[at];
    if (chip) host.send({ place: chip.place });
    else if (at >= 0) host.send({ more: true });
  });
  range.addEventListener("input", () => {
    moved = performance.now();
    fill();
    if (shown.slider) host.send({ place: shown.slider.place, strength: Number(range.value) });
  });
  reset.addEventListener("click", () => host.send({ reset: true }));
  return { draw };
}

defineWidget("steer", mount);
