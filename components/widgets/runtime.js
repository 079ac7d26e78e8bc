// Mounts the widgets, gives each the newest data for its view, and draws all changes in one animation frame: on new data
// or a change in width, theme or language, but not while a button is pressed. Only this module uses gradio's interface
// for scripts.

import { isLoading, t } from "./i18n.js";
import { Store } from "./store.js";

/** @typedef {import("./store.js").Data} Data */
/** @typedef {(root: HTMLElement, host: Host) => Widget} Mount  root: the element of the widget's template */
/** @typedef {{ widget: string, view: string, id: string, options: Record<string, any> }} Call  view: whose data it draws */
/** @typedef {(type: string, payload: object) => void} Trigger */
/**
 * @typedef {object} Host  the page, as seen by a widget
 * @property {string} id  the widget's id on the page
 * @property {Record<string, any>} options  set when the page was built; never change
 * @property {boolean} dark  whether the page is dark
 * @property {(payload: object, event?: string) => void} send  raises an event, by default "select"
 * @property {() => void} redraw  draws the same data again, with the next animation frame
 * @property {AbortSignal} gone  aborts when the widget is removed from the page
 *
 * @typedef {object} Widget
 * @property {(data: Data) => void} draw  shows the data; called again with the same data when width, theme or language change
 * @property {boolean} [always]  whether it is also drawn in a closed tab
 *
 * @typedef {object} Mounted
 * @property {HTMLElement} element
 * @property {Element} place  the container, which stays visible when the widget hides itself
 * @property {Widget} widget
 * @property {string} view
 * @property {number} width  of the last drawing, in px
 * @property {AbortController} leaving
 */

// Views that a page needs even while it follows another page.
const OF_SESSION = ["session", "saved", "voice", "restore"];
const LONGEST_REST = 100; // ms
const LONGEST_PRESS = 1000; // ms
const PRESSED = "a, button, label, summary, [role=button], [role=option], [role=gridcell], [role=switch]";
const LISTS = "[role=listbox], [role=list], [role=grid]"; // a press may reorder their items, so the whole list is held
const HELD_MS = 2000; // how long scrolling keeps the pressed element under the pointer
const SEEN = 0.45; // largest part of the window's height that is scrolled for an answer
const SETTLED_MS = 100;
const [SEEN_PX, GAP_PX] = [160, 16]; // at least this much of an answer is in sight, at this distance from the window's edge
const KEPT_PX = 64; // a widget above the pressed element that shrinks by at most this keeps its height

/** @type {Map<string, Mount>} */ const definitions = new Map();
/** @type {Set<Mounted>} */ const mounted = new Set();
/** @type {Set<Mounted>} */ const stale = new Set(); // widgets to draw
/** @type {ResizeObserver} */ let sizes;
/** @type {Map<number, Record<string, any>>} */ const newProperties = new Map(); // of gradio's components, by number
let navigated = 0; // time of the newest tab click
let scheduled = false;
/** Raises an event on the gr.HTML that receives the frames. @type {Trigger} */
let raise = () => {};
/** "follows": another page is shown; "leaves": until its own session is shown again. @type {"" | "follows" | "leaves"} */
let mirrors = "";
// After a frame, the page pauses drawing for as long as drawing took, which leaves time for events and for the text.
let restsUntil = 0;
/** What was pressed last and the block around it, with their distances from the page's top in px. @type {[Element, number][]} */
let held = [];
let heldUntil = 0;
let answerHeight = 0; // when last looked at; a part is scrolled to once its pictures are drawn
let awaited = ""; // id of the part that answers what was pressed, until a person does something else
// Nothing is drawn before this time: drawing might replace the button being pressed, and its click would be lost.
let pressedUntil = 0;

export const store = new Store();
store.onChange = (views) => refresh([...mounted].filter(({ view }) => views.has(view)));

/** Defines how a widget is mounted. Its module calls this once. @param {string} name @param {Mount} mount */
export const defineWidget = (name, mount) => void definitions.set(name, mount);

const answered = new Promise((resolve) => store.on("session", () => (window.requestIdleCallback ?? setTimeout)(resolve)));
/** @type {Promise<void> | undefined} */ let more;

/** Loads the scripts that the first view does not need, once the page has responded, so that they don't delay it. */
export const loadMore = () => (more ??= answered.then(() => import(new URL("more.js", import.meta.url).href)));

/**
 * Mounts a widget in the first child of an element.
 * @param {HTMLElement} element @param {Element} place @param {Call} call @param {(payload: object, event: string) => void} send
 */
export async function mount(element, place, call, send) {
  if (!definitions.has(call.widget)) await loadMore();
  const make = definitions.get(call.widget);
  if (!make) throw new Error(`no module defines the widget ${call.widget}`);
  removeOld();
  /** @type {Mounted} */
  const self = { element, place, widget: { draw() {} }, view: call.view, width: -1, leaving: new AbortController() };
  /** @type {Host} */ const host = {
    id: call.id,
    options: { ...window.glassbox.options[call.widget], ...call.options },
    get dark() {
      return element.closest(".dark") !== null;
    },
    send: (payload, event = "select") => send(payload, event),
    redraw: () => refresh([self]),
    gone: self.leaving.signal,
  };
  try {
    self.widget = make(/** @type {HTMLElement} */ (element.firstElementChild), host);
  } catch (error) {
    self.widget.draw = () => {
      throw error;
    };
  }
  mounted.add(self);
  for (const node of [element, place]) sizes.observe(node);
  refresh([self]);
}

/** Forgets the widgets that are no longer on the page. */
function removeOld() {
  for (const each of mounted) {
    if (each.element.isConnected) continue;
    mounted.delete(each);
    stale.delete(each);
    each.leaving.abort();
  }
}

/**
 * Called by the hidden gr.HTML whose value is a frame.
 * @param {Trigger} trigger @param {(name: string, changed: () => void) => void} watch @param {Record<string, any>} props
 */
export function receive(trigger, watch, props) {
  const take = () => props.value && takeOwn(JSON.parse(props.value));
  store.onGap = () => trigger("retry", { seen: store.number });
  store.on("properties", (changes) => {
    for (const [number, { at, ...given }] of Object.entries(changes)) {
      if (!(at < navigated)) newProperties.set(Number(number), given); // unless another tab has been clicked since
    }
    trigger("controls", {});
  });
  raise = trigger;
  store.on("wanted", ({ tab }) => tab && tick());
  watch("value", take);
  take();
}

/** While the page follows another one, only the session's own views are used. @param {import("./store.js").Frame} frame */
function takeOwn(frame) {
  if (mirrors === "follows" || (mirrors && frame.base !== null)) return store.hear(frame, OF_SESSION);
  if (mirrors) document.body.removeAttribute("data-following");
  mirrors = "";
  store.apply(frame);
}

/** Makes the page show the frames passed to `mirror` and send nothing. */
export function follow() {
  mirrors = "follows";
  document.body.setAttribute("data-following", "");
}

/** Shows the page's own session again, from the session's next complete frame on. */
export const leave = () => void (mirrors &&= "leaves");

/** Applies a frame from the followed page. @param {import("./store.js").Frame} frame */
export const mirror = (frame) => mirrors === "follows" && store.apply(frame);

export const isFollowing = () => mirrors !== "";

/** Raises the event that runs the open tab's missing analyses; if none are missing, the server does nothing. */
export const tick = () => mirrors || raise("tick", {});

/** Asks the server to restore an address. @param {{ query: string, at: number }} address */
export const navigate = (address) => raise("navigate", address);

/** Sends a class request to the server. @param {Record<string, any>} payload "do" names the request */
export const askClass = (payload) => raise("classroom", payload);

/** Returns the time of the click that opened a tab, as text. */
export function clickOn() {
  navigated = Math.max(navigated, window.glassbox.clicked ?? 0);
  return String(window.glassbox.clicked ?? 0);
}

/** Returns the updates that the `controls` event makes to gradio's components. @param {number} n how many there are */
export function properties(n) {
  if (!newProperties.size) return;
  const updates = Array.from({ length: n }, (_, number) => ({ __type__: "update", ...newProperties.get(number) }));
  newProperties.clear();
  return updates;
}

/** Returns whether all received frames have been drawn and applied to gradio's components. */
export const isSettled = () => !scheduled && !newProperties.size;

/** Draws these widgets in the next animation frame. @param {Mounted[]} widgets */
function refresh(widgets) {
  for (const each of widgets) stale.add(each);
  if (scheduled || !widgets.length) return;
  scheduled = true;
  const rest = restsUntil - performance.now();
  if (rest > 0) setTimeout(() => requestAnimationFrame(drawStale), rest);
  else requestAnimationFrame(drawStale);
}

function drawStale() {
  if (performance.now() < pressedUntil) return requestAnimationFrame(drawStale);
  const loading = isLoading();
  if (loading) return loading.then(() => requestAnimationFrame(drawStale));
  scheduled = false;
  const began = performance.now();
  const due = [...stale].filter(({ widget, place }) => widget.always || place.getClientRects().length);
  // before anything is drawn: one layout for all
  const heights = due.map((each) => {
    const width = each.element.clientWidth;
    if (each.width !== width) each.element.style.minHeight = "";
    each.width = width;
    return isAbovePressed(each.element) ? each.element.offsetHeight : 0;
  });
  for (const each of due) {
    stale.delete(each);
    const data = store.view(each.view);
    if (data.waiting) each.element.dataset.waiting = "";
    else delete each.element.dataset.waiting;
    attempt(each.element, data.failed, () => each.widget.draw(data));
  }
  due.forEach(({ element }, i) => {
    const lost = heights[i] && heights[i] - element.offsetHeight;
    if (lost > 0 && lost <= KEPT_PX) element.style.minHeight = `${heights[i]}px`;
  });
  keepPressed();
  showAnswer();
  const ended = performance.now();
  restsUntil = ended + Math.min(LONGEST_REST, ended - began);
}

/**
 * Draws a picture or a control, or a sentence in its place if it fails in the browser or has failed on the server.
 * @param {HTMLElement} element @param {string | undefined} failed the server's sentence @param {() => void} draw
 */
export function attempt(element, failed, draw) {
  let problem = failed;
  try {
    if (!problem) draw();
  } catch (error) {
    console.error(error);
    problem = t("view.failed");
  }
  if (problem) element.dataset.failed = problem;
  else delete element.dataset.failed;
}

/** Redraws widgets that have appeared or changed in width; they set their heights themselves. @param {ResizeObserverEntry[]} entries */
function onSizes(entries) {
  const touched = new Set(entries.map(({ target }) => target));
  removeOld();
  const concerned = [...mounted].filter(({ element, place }) => touched.has(element) || touched.has(place));
  refresh(concerned.filter((each) => stale.has(each) || each.width !== each.element.clientWidth));
}

/** Redraws everything when the language, the theme, the numbers, the size of the letters or that of a pixel change. */
function watchPage() {
  const { documentElement: html, body } = document;
  const isOn = (/** @type {string} */ mark) => document.querySelector(`:is(html, body)${mark}`) !== null;
  const state = () => [html.lang, isOn(".dark"), isOn("[data-numbers]"), isOn("[data-presenting]"), window.devicePixelRatio].join();
  let before = state();
  const look = () => {
    if (state() === before) return;
    before = state();
    refresh([...mounted]);
  };
  const observer = new MutationObserver(look);
  for (const node of [html, body]) observer.observe(node, { attributeFilter: ["class", "lang", "data-numbers", "data-presenting"] });
  addEventListener("resize", look);
}

/** @param {Element} element */
const fromTop = (element) => element.getBoundingClientRect().top + scrollY;

/** Scrolls by as much as the content above has moved what was pressed. */
function keepPressed() {
  if (performance.now() > heldUntil) return hold(null);
  const [element, top] = held.find(([each]) => each.getClientRects().length) ?? [];
  if (!element || top === undefined) return;
  const moved = fromTop(element) - top;
  if (!moved) return;
  held = held.map(([each]) => [each, fromTop(each)]);
  scrollBy({ top: moved, behavior: "instant" });
}

/** Keeps the part that answers what was pressed in sight, also while it grows. @param {string} id */
export function reveal(id) {
  awaited = id;
  answerHeight = 0;
  showAnswer();
}

function showAnswer() {
  const box = awaited ? document.getElementById(awaited)?.getBoundingClientRect() : undefined;
  if (!box?.height) return; // not on the page yet
  const { top, height } = box;
  if (height !== answerHeight) {
    answerHeight = height;
    return void setTimeout(showAnswer, SETTLED_MS);
  }
  const bottom = top + Math.max(SEEN_PX, Math.min(height, SEEN * innerHeight));
  const by = top < 0 ? top - GAP_PX : Math.max(0, bottom + GAP_PX - innerHeight);
  if (!by) return;
  hold(null);
  scrollBy({ top: by, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
}

/** @param {Element} element */
function isAbovePressed(element) {
  const [[pressed] = []] = held;
  if (!pressed || performance.now() > heldUntil || element.contains(pressed)) return false;
  return (pressed.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
}

/** @param {Element | null} pressed */
function hold(pressed) {
  const element = pressed?.closest(LISTS) ?? pressed;
  const block = element?.parentElement?.closest("[id]");
  held = element && block && !isPinned(element) ? [element, block].map((each) => [each, fromTop(each)]) : [];
  heldUntil = held.length ? performance.now() + HELD_MS : Infinity;
  document.documentElement.style.overflowAnchor = held.length ? "none" : ""; // the browser would scroll as well
}

/** @param {Element | null} element @returns {boolean} whether it stays in the window when the page scrolls */
const isPinned = (element) => element !== null && (/sticky|fixed/.test(getComputedStyle(element).position) || isPinned(element.parentElement));

function watchPresses() {
  /** @param {Event & { key?: string }} event */
  const press = ({ target, key = " " }) => {
    awaited = "";
    if (key === " " && target instanceof Element && target.closest(PRESSED)) pressedUntil = performance.now() + LONGEST_PRESS;
  };
  const release = () => setTimeout(() => (pressedUntil = 0)); // the click comes first
  for (const begin of ["pointerdown", "keydown"]) addEventListener(begin, press, true);
  for (const end of ["pointerup", "pointercancel", "keyup"]) addEventListener(end, release, true);
  for (const scroll of ["wheel", "touchmove"]) addEventListener(scroll, () => (awaited = ""), { capture: true, passive: true });
  addEventListener("click", ({ target }) => target instanceof Element && hold(target.closest(`${PRESSED}, input`)), true);
  new ResizeObserver(keepPressed).observe(document.body);
}

/** Catches up on calls made before this module was loaded. @param {() => void} opened called once gradio has drawn the page */
export function start(opened, calls = {}) {
  sizes = new ResizeObserver(onSizes);
  watchPage();
  watchPresses();
  loadMore();
  const { waiting, options } = window.glassbox;
  window.glassbox = { ...calls, receive, opened, options, waiting: [] };
  for (const call of waiting) call();
}
