// The film's stage: time, caption and controls. It fills the window and returns the focus when it is left.

import { sizedContext } from "../canvas.js";
import { find, make, makeButton, modified, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { endPresentation, isPresenting, present, steppers } from "../presenting.js";
import { films } from "../../storage.js";
import { defineWidget, isFollowing } from "../runtime.js";
import { beatAt, paintFilm, prepared } from "./paint.js";

/** @typedef {import("./paint.js").Film} Film */
/** @typedef {{film?: Film | null, beat?: string | null, played?: string, clicks?: number, plays?: boolean}} Shown  film: null until its numbers are ready */

const TELL_MS = 300; // beats shown for less time than this are not reported to the server
const IDLE_MS = 3000; // without movement, after which the controls fade
const END = 0.01; // s before the next beat, where a beat shows everything in its final position

const still = matchMedia("(prefers-reduced-motion: reduce)");

defineWidget("film", (element, host) => {
  const root = /** @type {HTMLDialogElement} */ (element);
  const [says, chapters, over] = [".gb-film-says", "ol", ".gb-film-end"].map((name) => find(root, name));
  const title = find(root, "h2");
  const canvas = find(root, "canvas", HTMLCanvasElement);
  const range = find(root, "input", HTMLInputElement);
  const button = (/** @type {string} */ name) => find(root, `.gb-film-${name}`, HTMLButtonElement);
  /** @type {import("./paint.js").Prepared | null} */ let film = null;
  /** @type {Film | null} */ let given = null; // what it was made from
  /** @type {CanvasRenderingContext2D} */ let context;
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
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let fading;

  const total = () => starts[starts.length - 1];

  /** Shows the moment, its words and the controls. */
  function render() {
    if (!film) return;
    const { beat, share } = beatAt(starts, time);
    const { name } = film.beats[beat];
    const words = film.words[name];
    const isOver = time >= total();
    setText(title, isOver ? "" : words.title);
    setText(says, isOver ? "" : words.says);
    over.hidden = !isOver;
    if (!isPlaying) root.classList.remove("gb-film-idle");
    range.value = String(time);
    range.setAttribute("aria-valuetext", words.title);
    /** @type {NodeListOf<HTMLElement>} */ (chapters.querySelectorAll("li")).forEach((each, i) => {
      const [from, to] = [starts[first(i)], starts[first(i + 1)] ?? total()];
      each.style.setProperty("--share", `${100 * Math.max(0, Math.min(1, (time - from) / (to - from)))}%`);
      find(each, "button").toggleAttribute("aria-current", time >= from && (time < to || to === total()));
    });
    const play = button("play");
    setText(play, isPlaying ? "❚❚" : "▶");
    play.hidden = still.matches;
    play.setAttribute("aria-label", t(isPlaying ? "film.pause" : "film.play"));
    paintFilm(context, film, isOver ? null : { beat, share: still.matches ? 1 : share, w: canvas.clientWidth, h: canvas.clientHeight });
    if (name === told) return;
    told = name;
    clearTimeout(telling);
    if (!isFollowing()) telling = setTimeout(() => host.send({ beat: name }), TELL_MS);
  }

  /** Returns the first beat of a chapter, counted from 0. @param {number} chapter */
  const first = (chapter) => film?.beats.findIndex((each) => each.chapter === chapter + 1) ?? 0;

  /** @param {number} now */
  function tick(now) {
    frame = undefined;
    if (!isPlaying || !root.isConnected) return;
    time = Math.min(until, time + Math.max(0, Math.min(0.1, (now - before) / 1000))); // a frame may have begun before the click
    before = now;
    if (time >= until) isPlaying = false;
    render();
    if (isPlaying) frame = requestAnimationFrame(tick);
  }

  /** @param {boolean} playing */
  function play(playing, end = total()) {
    isPlaying = playing && !still.matches;
    until = end;
    if (isPlaying && time >= total()) time = 0;
    before = performance.now();
    if (isPlaying && frame === undefined) frame = requestAnimationFrame(tick);
    render();
  }

  /** Moves to the next or previous beat, and returns whether it exists. After the last one comes the end. @param {number} by */
  function step(by) {
    if (!film) return false;
    if (time >= total() && by < 0) by = 0;
    const beat = beatAt(starts, time).beat + by;
    const isLast = beat >= film.beats.length && (time >= total() || "class" in document.body.dataset);
    if (beat < 0 || isLast) {
      clearTimeout(telling); // another stop may already have been requested
      return false;
    }
    go(beat);
    return true;
  }

  /** Shows a beat from its beginning, or its end with reduced motion. Pauses after it unless the film was playing. @param {number} beat */
  function go(beat) {
    if (!film) return;
    if (beat >= film.beats.length) [time, isPlaying] = [total(), false];
    else time = still.matches ? starts[beat + 1] - END : starts[beat];
    play(time < total(), isPlaying && until === total() ? total() : starts[beat + 1] - END);
  }

  /** Plays the beat that another link or the followed page has opened. @param {string} name @param {string} played */
  function jump(name, played) {
    if ((name === played && !isFollowing()) || name === known) return;
    const beat = film?.beats.findIndex((each) => each.name === name) ?? -1;
    if (beat < 0) return;
    until = 0;
    go(beat);
  }

  /** @param {string} [next] what to do after the film */
  function close(next) {
    clearTimeout(telling);
    host.send({ beat: null, next });
    closed = shown.clicks ?? null;
    leave();
  }

  function leave() {
    film = given = null;
    isPlaying = false;
    told = "";
    steppers.film = null;
    removeEventListener("resize", fit);
    root.close();
    document.body.removeAttribute("data-film");
    for (const each of [title, says]) setText(each, ""); // the next film begins on an empty stage
    over.hidden = true;
    canvas.width = 0;
  }

  function fit() {
    context = sizedContext(canvas, canvas.clientWidth, canvas.clientHeight);
    render();
  }

  /** @param {Film} fresh */
  function begin(fresh) {
    const [isFirst, beat] = [!film, shown.beat ?? ""];
    given = fresh;
    film = prepared(fresh, root);
    starts = film.beats.reduce((sums, { seconds }) => [...sums, sums[sums.length - 1] + seconds], [0]);
    range.max = String(total());
    const texts = { back: t("film.back"), forward: t("film.forward"), screen: t("film.screen"), close: t("film.leave") };
    for (const [name, title] of Object.entries(texts)) setAll(button(name), { "aria-label": title, title });
    range.setAttribute("aria-label", t("film.scrub"));
    const items = film.chapters.map((name, i) => {
      const chapter = make("li", "", [makeButton("", name)]);
      chapter.style.flexGrow = String((starts[first(i + 1)] ?? total()) - starts[first(i)]);
      chapter.addEventListener("click", () => go(first(i)));
      return chapter;
    });
    chapters.replaceChildren(...items);
    setText(find(over, "h2"), t("film.end.title"));
    for (const each of over.querySelectorAll("button")) setText(each, t(`film.end.${each.dataset.next ?? "again"}`, { n: film.layer }));
    if (!isFirst) return fit();
    steppers.film = step;
    told = beat;
    addEventListener("resize", fit);
    fit();
    const number = Math.max(0, film.beats.findIndex(({ name }) => name === beat));
    isPlaying = Boolean(shown.plays) && !isFollowing(); // links open it paused
    until = total();
    if (isPlaying) go(number);
    else time = starts[number + 1] - END;
    render();
    films.keep("token", 1);
    document.body.setAttribute("data-film-seen", "");
  }

  /** Shows the controls, and fades them after a while, unless they are used by keyboard. @param {boolean} fades */
  function awake(fades) {
    root.classList.remove("gb-film-idle");
    clearTimeout(fading);
    if (fades && !still.matches) fading = setTimeout(() => root.classList.toggle("gb-film-idle", isPlaying), IDLE_MS);
  }

  const actions = {
    back: () => step(-1),
    forward: () => step(1),
    play: () => play(!isPlaying),
    close: () => close(),
    screen: () => (isPresenting() ? endPresentation() : present()),
    start: () => go(0),
    end: () => go(film?.beats.length ?? 0),
  };
  /** @type {Record<string, keyof typeof actions>} */
  const KEYS = { ArrowLeft: "back", PageUp: "back", ArrowRight: "forward", PageDown: "forward", Home: "start", End: "end", Escape: "close", " ": "play" };

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const { target, key } = event;
    if (!root.open || modified(event) || !KEYS[key]) return;
    if (key === " " && target instanceof HTMLElement && target.closest("button")) return;
    if (target instanceof HTMLElement && target !== document.body && !root.contains(target)) return;
    event.preventDefault();
    actions[KEYS[key]]();
  }
  document.addEventListener("keydown", onKey, { signal: host.gone });
  root.addEventListener("keydown", () => awake(false));
  for (const kind of ["pointermove", "pointerdown"]) root.addEventListener(kind, () => awake(true));
  root.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  canvas.addEventListener("click", actions.play);
  over.addEventListener("click", ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) return;
    if (target.dataset.next) return close(target.dataset.next);
    isPlaying = true;
    until = total();
    go(0);
  });
  for (const name of /** @type {const} */ (["back", "forward", "play", "close", "screen"])) button(name).addEventListener("click", actions[name]);
  range.addEventListener("input", () => {
    time = Number(range.value);
    play(false);
  });

  /** @type {Shown} */ let shown = {};
  return {
    /** Opens the film, continues it with newer numbers, or closes it. @param {Shown} data */
    draw(data) {
      const isSame = data === shown;
      shown = data;
      if (!data.beat) {
        closed = null;
        if (root.open) leave();
      } else if (data.clicks !== closed) {
        if (!root.open) {
          root.setAttribute("aria-label", t("film.name"));
          if ("class" in document.body.dataset) root.show(); // the class bar stays in reach
          else root.showModal();
          root.focus();
          document.body.toggleAttribute("data-film", true);
          awake(true);
        }
        if (data.film && data.film !== given) begin(data.film);
        else if (!isSame) jump(data.beat, data.played ?? "");
        known = data.beat;
      }
    },
    always: true,
  };
});
