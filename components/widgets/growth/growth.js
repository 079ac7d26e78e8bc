/**
 * What a model wrote at each moment of its training. Moments are evenly spaced, because a model learns most at first.
 * @typedef {object} Growth
 * @property {string} [title]
 * @property {[number, string, number][]} [moments]  step, text and validation loss of each
 */

import { find, setText } from "../dom.js";
import { t } from "../i18n.js";
import { defineWidget } from "../runtime.js";

const MOMENT_MS = 900;

/** @type {import("../runtime.js").Mount} */
function mount(root) {
  const range = find(root, "input", HTMLInputElement);
  const play = find(root, "button");
  /** @type {Required<Growth>["moments"]} */ let moments = [];
  /** @type {ReturnType<typeof setInterval> | undefined} */ let timer;

  function show() {
    const [step, text] = moments[Number(range.value)] ?? [0, ""];
    const [steps] = moments.at(-1) ?? [0];
    const name = t("growth.step", { step: step.toLocaleString("en"), steps: steps.toLocaleString("en") });
    setText(find(root, ".gb-growth-text"), text);
    setText(find(root, "output"), name);
    range.setAttribute("aria-valuetext", name);
    range.style.setProperty("--share", `${(100 * Number(range.value)) / Math.max(1, moments.length - 1)}%`);
    setText(play, timer === undefined ? "▶" : "❚❚");
    play.setAttribute("aria-label", t(timer === undefined ? "train.film.play" : "train.film.pause"));
  }

  function stop() {
    clearInterval(timer);
    timer = undefined;
    show();
  }

  function next() {
    if (!root.isConnected || Number(range.value) >= moments.length - 1) return stop();
    range.value = String(Number(range.value) + 1);
    show();
  }

  /** @param {Growth} data */
  function draw({ title = "", moments: fresh = [] }) {
    moments = fresh;
    root.hidden = fresh.length < 2;
    setText(find(root, "h2"), title);
    range.max = String(fresh.length - 1);
    range.setAttribute("aria-label", title);
    const losses = fresh.map(([, , loss]) => loss);
    const most = Math.max(...losses, 1e-9);
    const points = losses.map((loss, i) => `${(100 * i) / (losses.length - 1)} ${(100 - (100 * loss) / most).toFixed(1)}`);
    find(root, "path", SVGPathElement).setAttribute("d", fresh.length < 2 ? "" : `M${points.join("L")}L100 100L0 100Z`);
    show();
  }

  range.addEventListener("input", stop);
  play.addEventListener("click", () => {
    if (timer !== undefined) return stop();
    if (Number(range.value) >= moments.length - 1) range.value = "0";
    timer = setInterval(next, MOMENT_MS);
    show();
  });
  return { draw, destroy: () => clearInterval(timer) };
}

defineWidget("growth", mount);
