/**
 * A player for moments whose data the server sends. It requests the next moment once the current one is shown.
 * @typedef {object} Moments
 * @property {number} [moments]  number of moments @property {number} [moment]  0-based index of the displayed moment
 * @property {string} [text]  the displayed moment's name
 */

import { find, setText } from "./dom.js";
import { t } from "./i18n.js";
import { defineWidget } from "./runtime.js";

const MOMENT_MS = 600; // minimum time for which a moment is shown

/** @type {import("./runtime.js").Mount} */
function mount(root, host) {
  const range = find(root, "input", HTMLInputElement);
  const [play, back, forward] = ["play", "back", "forward"].map((name) => find(root, `.gb-film-${name}`));
  let shown = 0;
  let last = 0;
  let text = "";
  /** @type {number | null} */ let wanted = null; // requested but not shown yet
  let isPlaying = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let timer;

  /** @param {number} moment */
  function ask(moment) {
    wanted = Math.max(0, Math.min(last, moment));
    host.send({ moment: wanted }, "input");
    render();
  }

  function render() {
    const at = wanted ?? shown;
    range.max = String(last);
    range.value = String(at);
    range.style.setProperty("--share", `${(100 * at) / Math.max(1, last)}%`);
    range.setAttribute("aria-valuetext", text);
    setText(find(root, "output"), text);
    setText(play, isPlaying ? "❚❚" : "▶");
    root.setAttribute("aria-label", t("train.film.name"));
    range.setAttribute("aria-label", t("train.film.name"));
    play.setAttribute("aria-label", t(isPlaying ? "train.film.pause" : "train.film.play"));
    back.setAttribute("aria-label", t("train.film.back"));
    forward.setAttribute("aria-label", t("train.film.forward"));
  }

  function goOn() {
    clearTimeout(timer);
    if (!isPlaying || wanted !== null) return;
    if (shown >= last) return setPlaying(false);
    timer = setTimeout(() => root.isConnected && isPlaying && ask(shown + 1), MOMENT_MS);
  }

  /** @param {boolean} playing */
  function setPlaying(playing) {
    isPlaying = playing;
    clearTimeout(timer);
    if (playing && shown >= last) ask(0);
    else if (playing) ask(shown + 1);
    render();
  }

  /** @param {number} moment */
  function go(moment) {
    isPlaying = false;
    clearTimeout(timer);
    ask(moment);
  }

  /** @param {Moments} data */
  function draw({ moments = 0, moment = 0, text: name = "" }) {
    root.hidden = moments < 2;
    [last, shown, text] = [moments - 1, moment, name];
    if (wanted === shown || (wanted ?? 0) > last) wanted = null;
    render();
    goOn();
  }

  play.addEventListener("click", () => setPlaying(!isPlaying));
  back.addEventListener("click", () => go((wanted ?? shown) - 1));
  forward.addEventListener("click", () => go((wanted ?? shown) + 1));
  range.addEventListener("input", () => go(Number(range.value)));
  return { draw, destroy: () => clearTimeout(timer) };
}

defineWidget("player", mount);
