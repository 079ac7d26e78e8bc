// The page's tools for a class: the bar with stops, following another page, and the dialog with links and their codes.

import { make, makeButton } from "../widgets/dom.js";
import { SPOKEN, t } from "../widgets/i18n.js";
import { OPENS_CLASS } from "../widgets/menu/menu.js";
import { CHANGED, endPresentation, isPresenting, present, steppers } from "../widgets/presenting.js";
import { askClass, store } from "../widgets/runtime.js";
import { createDialog } from "./dialog.js";
import { createFollower } from "./follower.js";

/** @typedef {import("./dialog.js").Answer} Answer */
/** @typedef {{ stop: { at: number, n: number, title: string } | null, answer: Answer | null, code: string }} Shown */

const LOST_MS = 2000; // a requested stop counts as lost after this time

/** @type {Shown | null} */ let shown = null;
let waitsUntil = 0;
const bar = make("nav", "", "", { id: "class-bar" });
bar.hidden = true;
document.body.prepend(bar);

const follower = createFollower(draw);
const dialog = createDialog();

/** @param {string} text @param {() => void} act @param {string} [name] for a button without text @param {string} [style] */
function button(text, act, name, style = "") {
  return makeButton(style, text, name ? { "aria-label": name, title: name } : {}, act);
}

/** Moves by a number of stops, unless one is still loading; returns whether the stop exists. @param {number} by */
function step(by) {
  const stop = shown?.stop;
  if (stop && performance.now() < waitsUntil) return true;
  if (!stop || follower.code() || stop.at + by < 0 || stop.at + by >= stop.n) return false;
  askClass({ do: "stop", at: stop.at + by });
  waitsUntil = performance.now() + LOST_MS;
  return true;
}

/** Builds the bar's content. */
function parts() {
  const { stop = null, code = "" } = shown ?? {};
  const place = stop ? [make("b", "", t("class.stop", { at: stop.at + 1, total: stop.n })), make("span", "", stop.title)] : [];
  if (follower.code()) return [make("i", "", t("class.following")), ...place, button(t("class.alone"), follower.leave)];
  const why = follower.ended();
  const again = code && why !== "over" ? [button(t("class.again"), () => follower.follow(code))] : [];
  const ended = why ? [make("i", "", t(`class.${why}`)), button("×", follower.forget, t("share.close"))] : [];
  if (!stop) return [...ended, ...again];
  const back = button("←", () => step(-1), t("class.back"));
  const next = button("→", () => step(1), t("class.next"));
  [back.disabled, next.disabled] = [stop.at === 0, stop.at === stop.n - 1];
  const whole = button(isPresenting() ? t("class.leave") : t("share.present"), () => (isPresenting() ? endPresentation() : present()), "", "gb-class-present");
  return [...ended, back, next, ...place, ...again, whole, button("×", () => askClass({ do: "end" }), t("share.close"))];
}

const measure = () => document.body.style.setProperty("--gb-bar", `${bar.offsetHeight}px`); // sticky elements stay below the bar

function draw() {
  bar.setAttribute("aria-label", t("class.name"));
  const focused = [...bar.children].indexOf(/** @type {Element} */ (document.activeElement));
  bar.replaceChildren(...(shown ? parts() : []));
  if (focused >= 0) /** @type {HTMLElement | undefined} */ (bar.children[focused])?.focus();
  bar.hidden = !bar.childElementCount;
  document.body.toggleAttribute("data-class", !bar.hidden);
  measure();
  steppers.stops = shown?.stop ? step : null;
}

addEventListener("resize", measure);
for (const event of [CHANGED, SPOKEN]) document.addEventListener(event, draw);

/** @param {import("../widgets/store.js").Data} fields */
function take({ shown: value = null }) {
  if (value?.stop?.at !== shown?.stop?.at) waitsUntil = 0;
  shown = value;
  draw();
  if (value?.answer) dialog.draw(value.answer);
}

document.addEventListener(OPENS_CLASS, dialog.open);
store.on("class", take);
take(store.view("class"));
