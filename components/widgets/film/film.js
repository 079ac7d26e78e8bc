// The film's player: time, text and controls. The film plays in the picture of the model (see `flow/flow.js`).

import { find, make, modified, setText } from "../dom.js";
import { t } from "../i18n.js";
import { endPresentation, isPresenting, present, steppers } from "../presenting.js";
import { films } from "../progress.js";
import { isFollowing } from "../runtime.js";
import { beatAt } from "./time.js";

/** @typedef {import("./paint.js").Film} Film */
/** @typedef {{film?: Film | null, beat?: string | null, played?: string, words?: Record<string, string>}} Shown */

const NARROW = 700; // stage px
const TELL_MS = 300; // beats shown for less time than this are not reported to the server
const EDGE = 8; // px around the displayed parts

const still = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * @param {HTMLElement} root @param {import("../runtime.js").Host} host
 * @param {(part: string | undefined) => void} onClose called with the last displayed part of the picture
 */
export function createFilm(root, host, onClose) {
  const [holder, stage, says, bar] = [".gb-flow-film", ".gb-flow-scroll", ".gb-film-says", ".gb-film-bar"].map((name) => find(root, name));
  const range = find(root, ".gb-film-bar input", HTMLInputElement);
  const details = find(says, "details", HTMLDetailsElement);
  const button = (/** @type {string} */ name) => find(root, `.gb-film-${name}`, HTMLButtonElement);
  /** @type {Film | null} */ let film = null;
  /** @type {Record<string, string>} */ let words = {}; // texts of the parts of the picture
  let starts = [0, 0];
  let time = 0;
  let isPlaying = false;
  /** @type {number | null} */ let closed = null; // `clicks` of the film if it is closed here but not yet on the server
  let before = 0; // time of the last frame
  let told = ""; // the last displayed beat
  let known = ""; // the open beat according to the server
  let until = 0; // time at which the film pauses
  /** @type {number | undefined} */ let frame;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let telling;

  const total = () => starts[starts.length - 1];
  const at = () => beatAt(starts, time);

  /** Returns the moment to paint. @returns {import("./paint.js").Moment} */
  function moment() {
    const { beat, share } = at();
    const [width, height] = [stage.clientWidth, stage.clientHeight];
    const isNarrow = width < NARROW;
    const taken = isNarrow ? 0 : says.offsetWidth;
    const area = { x: EDGE, y: EDGE, w: width - taken - 2 * EDGE, h: height - 2 * EDGE };
    return { film: /** @type {Film} */ (film), beat, share: still.matches ? 1 : share, area, width, height, isNarrow };
  }

  /** Updates the text and the controls. */
  function show() {
    if (!film) return;
    const { beat } = at();
    const { name, more } = film.beats[beat];
    const { act, title, says: sentence, more: own } = film.words[name];
    setText(find(says, "small"), act);
    setText(find(says, "h3"), title);
    setText(find(says, "p"), sentence);
    const lines = [...(own ? [own] : []), ...more.filter((part) => words[part]).map((part) => words[part])].map((text) => text.split("\n"));
    details.hidden = !lines.length;
    setText(find(details, "summary"), t("film.more"));
    const key = JSON.stringify(lines);
    if (details.dataset.shown !== key) {
      details.dataset.shown = key;
      details.querySelectorAll("p").forEach((each) => each.remove());
      details.append(
        ...lines.map(([first, second = "", formula = ""]) => {
          const line = make("p");
          line.append(second ? make("strong", "", first) : first, second ? ` ${second} ` : "");
          if (formula) line.append(make("code", "", formula));
          return line;
        }),
      );
    }
    setText(find(bar, "output"), t("film.of", { n: beat + 1, total: film.beats.length }));
    range.value = String(time);
    range.style.setProperty("--share", `${(100 * time) / total()}%`);
    range.setAttribute("aria-valuetext", title);
    setText(button("play"), isPlaying ? "❚❚" : "▶");
    button("play").hidden = still.matches;
    button("play").setAttribute("aria-label", t(isPlaying ? "film.pause" : "film.play"));
    if (name === told) return;
    told = name;
    clearTimeout(telling);
    if (isFollowing()) return;
    telling = setTimeout(() => host.send({ beat: name }), TELL_MS);
    if (name === "written" && film.draw.writes) host.send({}, "input");
  }

  function render() {
    show();
    host.redraw();
  }

  /** @param {number} now */
  function tick(now) {
    frame = undefined;
    if (!isPlaying || !root.isConnected) return;
    const isShown = root.getClientRects().length > 0; // the film pauses while its tab is closed
    if (isShown) time = Math.min(until, time + Math.min(0.1, (now - before) / 1000));
    before = now;
    if (time >= until) isPlaying = false;
    render();
    if (isPlaying) frame = requestAnimationFrame(tick);
  }

  /** @param {boolean} playing */
  function play(playing, end = total()) {
    isPlaying = playing && !still.matches;
    until = end;
    if (isPlaying && time >= total() - 0.02) time = 0;
    before = performance.now();
    if (isPlaying && frame === undefined) frame = requestAnimationFrame(tick);
    render();
  }

  /** Shows the next or previous beat, and returns whether it exists. @param {number} by */
  function step(by) {
    const beat = at().beat + by;
    if (!film || !film.beats[beat]) {
      clearTimeout(telling); // another stop may already have been requested
      return false;
    }
    go(beat);
    render();
    return true;
  }

  /** @param {number} beat */
  function go(beat) {
    time = isPlaying ? starts[beat] : starts[beat + 1] - 0.01; // while paused, show everything in its final position
  }

  /** Plays the beat that another link or the followed page has opened. @param {string} name @param {string} played */
  function jump(name, played) {
    if (name === played && !isFollowing()) return;
    const beat = film?.beats.findIndex((each) => each.name === name) ?? -1;
    if (name === known || beat < 0) return;
    time = still.matches ? starts[beat + 1] - 0.01 : starts[beat];
    play(true, starts[beat + 1] - 0.01);
  }

  function close() {
    const part = film?.beats[at().beat].view.at(-1);
    clearTimeout(telling);
    host.send({ beat: null });
    closed = film?.clicks ?? null;
    leave(part);
  }

  /** @param {string} [part] */
  function leave(part) {
    [film, isPlaying, steppers.film] = [null, false, null];
    holder.hidden = true;
    root.classList.remove("gb-filming");
    document.body.removeAttribute("data-film");
    stage.removeAttribute("tabindex");
    onClose(part);
  }

  /** @param {Film} shown @param {string} beat @param {string} played */
  function open(shown, beat, played) {
    const isFirst = !film;
    film = shown;
    starts = film.beats.reduce((sums, { seconds }) => [...sums, sums[sums.length - 1] + seconds], [0]);
    range.max = String(total());
    const texts = { back: t("film.back"), forward: t("film.forward"), screen: t("film.screen"), leave: t("film.leave") };
    for (const [name, text] of Object.entries(texts)) {
      if (name === "leave") setText(button(name), text);
      else button(name).setAttribute("aria-label", text);
      button(name).title = text;
    }
    range.setAttribute("aria-label", t("film.scrub"));
    stage.setAttribute("aria-label", t("film.name"));
    if (!isFirst) jump(beat, played);
    known = beat;
    if (!isFirst) return show();
    holder.hidden = false;
    steppers.film = step;
    root.classList.add("gb-filming");
    document.body.setAttribute("data-film", "");
    stage.tabIndex = 0;
    stage.scrollLeft = 0;
    told = beat;
    isPlaying = !still.matches && film.plays && !isFollowing(); // links open it paused
    go(film.beats.findIndex(({ name }) => name === beat));
    play(isPlaying);
    root.scrollIntoView({ block: "nearest" });
    films.keep("token", 1);
    document.body.setAttribute("data-film-seen", "");
  }

  button("play").addEventListener("click", () => play(!isPlaying));
  button("back").addEventListener("click", () => step(-1));
  button("forward").addEventListener("click", () => step(1));
  button("leave").addEventListener("click", close);
  button("screen").addEventListener("click", () => (isPresenting() ? endPresentation() : present()));
  range.addEventListener("input", () => {
    time = Number(range.value);
    play(false);
  });

  const KEYS = /** @type {Record<string, () => void>} */ ({
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    PageUp: () => step(-1),
    PageDown: () => step(1),
    Escape: close,
    " ": () => play(!isPlaying),
  });

  /** Handles the film's keys, unless something else has the focus. @param {KeyboardEvent} event */
  function onKey(event) {
    const { target, key } = event;
    const isOurs = target === document.body || (target instanceof Node && root.contains(target));
    if (!film || modified(event) || !isOurs || !root.getClientRects().length || !KEYS[key]) return;
    if (key === " " && target instanceof HTMLElement && target.closest("button, summary")) return;
    if (target === range && key.startsWith("Page")) return;
    event.preventDefault();
    KEYS[key]();
  }
  document.addEventListener("keydown", onKey);

  return {
    moment,
    isOpen: () => film !== null,

    /** Opens the film, continues it with newer numbers, or closes it. @param {Shown} data */
    update({ film: shown, beat, played = "", words: captions = {} }) {
      words = captions;
      if (!shown || !beat) {
        closed = null;
        if (film) leave();
      } else if (shown.clicks !== closed) open(shown, beat, played);
    },
    destroy: () => document.removeEventListener("keydown", onKey),
  };
}
