/**
 * What a model wrote at each moment of its training. Moments are evenly spaced, because a model learns most at first.
 * @typedef {object} Growth
 * @property {string} [title]
 * @property {[number, string, number][]} [moments]  step, text and validation loss of each
 * @property {number} [steps]  length of the training
 * @property {number | null} [moment]  index of the one whose pictures the page shows; null if there are none
 */

import { find, setText } from "../dom.js";
import { t } from "../i18n.js";
import { defineWidget } from "../runtime.js";

const MOMENT_MS = 900; // minimum time for which a moment is shown

defineWidget("growth", (root, host) => {
  const range = find(root, "input", HTMLInputElement);
  const play = find(root, "button");
  /** @type {Required<Growth>} */ let data = { title: "", moments: [], steps: 0, moment: null };
  let at = 0;
  /** @type {number | null} */ let wanted = null; // requested from the server but not shown yet
  let isPlaying = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let timer;

  const last = () => data.moments.length - 1;

  function show() {
    const [step, text] = data.moments[at] ?? [0, ""];
    const name = t("growth.step", { step: step.toLocaleString("en"), steps: data.steps.toLocaleString("en") });
    setText(find(root, ".gb-growth-text"), text);
    setText(find(root, "output"), name);
    range.value = String(at);
    range.setAttribute("aria-valuetext", name);
    range.style.setProperty("--share", `${(100 * at) / Math.max(1, last())}%`);
    setText(play, isPlaying ? "❚❚" : "▶");
    play.setAttribute("aria-label", t(isPlaying ? "film.pause" : "film.play"));
  }

  /** @param {number} moment */
  function go(moment) {
    at = moment;
    if (data.moment !== null) host.send({ moment: (wanted = at) }, "input");
    show();
  }

  /** @param {boolean} playing */
  function setPlaying(playing) {
    isPlaying = playing;
    clearTimeout(timer);
    if (playing && wanted === null) timer = setTimeout(next, MOMENT_MS);
    show();
  }

  function next() {
    if (!root.isConnected || at >= last()) return setPlaying(false);
    go(at + 1);
    setPlaying(at < last());
  }

  /** @param {Growth} fresh */
  function draw({ title = "", moments = [], steps = 0, moment = null }) {
    data = { title, moments, steps, moment };
    root.hidden = moments.length < 2;
    if (wanted === moment || (wanted ?? 0) > last()) wanted = null;
    if (wanted === null) at = Math.min(moment ?? at, Math.max(0, last()));
    find(root, ".gb-growth-text").hidden = moments.every(([, text]) => !text);
    setText(find(root, "h2"), title);
    range.max = String(last());
    range.setAttribute("aria-label", title);
    const losses = moments.map(([, , loss]) => loss);
    const most = Math.max(...losses, 1e-9);
    const points = losses.map((loss, i) => `${(100 * i) / (losses.length - 1)} ${(100 - (100 * loss) / most).toFixed(1)}`);
    find(root, "path", SVGPathElement).setAttribute("d", moments.length < 2 ? "" : `M${points.join("L")}L100 100L0 100Z`);
    setPlaying(isPlaying && (at < last() || wanted !== null));
  }

  range.addEventListener("input", () => {
    go(Number(range.value));
    setPlaying(false);
  });
  play.addEventListener("click", () => {
    if (!isPlaying && at >= last()) go(0);
    setPlaying(!isPlaying);
  });
  return { draw };
});
