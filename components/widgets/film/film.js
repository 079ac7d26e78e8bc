/**
 * The player of the film: time, camera and controls.
 * @typedef {import("./scene.js").Film} Film
 * @typedef {import("./scene.js").Item} Item
 * @typedef {import("./scene.js").Box} Box
 */

import { find, modified, setText } from "../dom.js";
import { defineWidget } from "../runtime.js";
import { around, fitted } from "./camera.js";
import { build, MOVE } from "./scene.js";
import { beatAt, eased } from "./time.js";

const CAMERA = 0.16; // share of a beat in which the camera goes there
const NARROW = 700; // px
const TELL_MS = 300; // a beat that is shown for less is not told to the server

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const stage = find(root, ".gb-film-stage");
  const svg = find(root, "svg", SVGSVGElement);
  const range = find(root, "input", HTMLInputElement);
  const button = (/** @type {string} */ name) => find(root, `.gb-film-${name}`, HTMLButtonElement);
  /** @type {Film | null} */ let film = null;
  /** @type {Item[]} */ let items = [];
  /** @type {Record<string, Box>} */ let boxes = {};
  let starts = [0, 0];
  let time = 0;
  let isPlaying = false;
  let before = 0; // time of the last frame
  let told = 0; // the beat that was shown last
  let known = 1; // the beat that the server named last, from 1
  /** @type {number[]} */ let sent = []; // the beats that it was told since then
  let drawn = ""; // what the picture shows
  /** @type {number | undefined} */ let frame;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let telling;

  const total = () => starts[starts.length - 1];

  function render() {
    if (!film) return;
    const { beat, share: passed } = beatAt(starts, time);
    const share = still.matches ? 1 : passed;
    const lit = new Set(film.beats[beat].lit);
    for (const { node, part, at, from, begins, beat: born, ends } of items) {
      const moved = beat > born ? 1 : beat < born ? 0 : eased((share - begins) / MOVE);
      const isGone = moved === 0 && !(beat === born && begins === 0 && !from);
      const isOver = ends !== undefined && (beat > ends || (beat === ends && node.classList.contains("gb-film-visit") && share > 0.9));
      const [x, y] = from ? [from[0] + (at[0] - from[0]) * moved, from[1] + (at[1] - from[1]) * moved] : at;
      node.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
      node.style.opacity = isOver || isGone ? "0" : String((lit.has(part) ? 1 : 0.25) * (from ? 1 : Math.max(moved, beat > born ? 1 : 0) || 1));
    }
    look(beat, share);
    show(beat);
  }

  /** Moves the camera. @param {number} beat @param {number} share */
  function look(beat, share) {
    const { clientWidth: width, clientHeight: height } = stage;
    if (!film || !width || !height) return;
    const seen = (/** @type {number} */ i) => {
      const { lit, close } = /** @type {Film} */ (film).beats[i];
      return fitted(around(boxes, width < NARROW ? close : lit), width / height);
    };
    const [a, b] = [seen(Math.max(0, beat - 1)), seen(beat)];
    const part = still.matches ? 1 : eased(share / CAMERA);
    const mix = (/** @type {keyof Box} */ key) => a[key] + (b[key] - a[key]) * part;
    svg.setAttribute("viewBox", [mix("x"), mix("y"), mix("w"), mix("h")].map((value) => value.toFixed(1)).join(" "));
  }

  /** The words and the controls. @param {number} beat */
  function show(beat) {
    if (!film) return;
    const { name } = film.beats[beat];
    setText(find(root, "h3"), host.t(`${name}.title`));
    setText(find(root, "p"), host.t(name));
    setText(find(root, "output"), host.t("of", { n: beat + 1, total: film.beats.length }));
    range.value = String(time);
    range.style.setProperty("--share", `${(100 * time) / total()}%`);
    range.setAttribute("aria-valuetext", host.t(`${name}.title`));
    setText(button("play"), isPlaying ? "❚❚" : "▶");
    button("play").setAttribute("aria-label", host.t(isPlaying ? "pause" : "play"));
    if (beat !== told) {
      told = beat;
      clearTimeout(telling);
      telling = setTimeout(() => {
        sent.push(beat + 1);
        host.send({ beat: beat + 1 }, "input");
      }, TELL_MS);
    }
  }

  /** @param {number} now */
  function tick(now) {
    frame = undefined;
    if (!isPlaying || !root.isConnected) return;
    const isShown = root.getClientRects().length > 0; // the film rests while its tab is closed
    if (isShown) time = Math.min(total(), time + Math.min(0.1, (now - before) / 1000));
    before = now;
    if (time >= total()) isPlaying = false;
    render();
    if (isPlaying) frame = requestAnimationFrame(tick);
  }

  /** @param {boolean} playing */
  function play(playing) {
    isPlaying = playing && !still.matches;
    if (isPlaying && time >= total()) time = 0;
    before = performance.now();
    if (isPlaying && frame === undefined) frame = requestAnimationFrame(tick);
    render();
  }

  /** To the end of a beat's moves. @param {number} by */
  function step(by) {
    if (!film) return;
    const { beat } = beatAt(starts, time);
    go(Math.max(0, Math.min(film.beats.length - 1, beat + by)));
    play(isPlaying);
  }

  /** @param {number} beat */
  function go(beat) {
    time = isPlaying ? starts[beat] : starts[beat + 1] - 0.01; // paused: with everything in its place
  }

  /** @param {boolean} leave */
  function close(leave) {
    const { beat } = beatAt(starts, time);
    isPlaying = false;
    root.hidden = true;
    clearTimeout(telling);
    host.send({ leave, beat: beat + 1 });
  }

  /** @param {Partial<Film>} data */
  function draw(data) {
    const isOpen = (data.beats ?? []).length > 0 && data.tokens !== undefined;
    if (!isOpen) {
      [film, isPlaying, drawn] = [null, false, ""];
      clearTimeout(telling);
      root.hidden = true;
      return;
    }
    const wasOpen = film !== null;
    film = /** @type {Film} */ (data);
    root.hidden = false;
    const { beat: open = 1, labels: _, ...rest } = /** @type {Film & {labels?: object}} */ (film);
    const content = JSON.stringify([rest, host.t("part.tok"), host.t("earlier")]);
    if (content !== drawn) {
      drawn = content;
      starts = film.beats.reduce((sums, { seconds }) => [...sums, sums[sums.length - 1] + seconds], [0]);
      range.max = String(total());
      ({ items, boxes } = build(svg, film, host.t));
    }
    setText(find(root, "h2"), host.t("name"));
    setText(button("leave"), host.t("leave"));
    stage.setAttribute("aria-label", host.t("name"));
    for (const name of ["close", "back", "forward"]) button(name).setAttribute("aria-label", host.t(name));
    range.setAttribute("aria-label", host.t("scrub"));
    const isOwn = sent.includes(open);
    if (!wasOpen) {
      [told, sent, time] = [open - 1, [], starts[open - 1]];
      play(!still.matches);
      root.scrollIntoView({ block: "nearest" });
    } else if (open !== known && !isOwn) {
      [told, sent] = [open - 1, []]; // by Back or Forward
      go(open - 1);
    }
    if (open !== known && isOwn) sent = sent.slice(sent.indexOf(open) + 1);
    known = open;
    render();
  }

  button("play").addEventListener("click", () => play(!isPlaying));
  button("back").addEventListener("click", () => step(-1));
  button("forward").addEventListener("click", () => step(1));
  button("close").addEventListener("click", () => close(false));
  button("leave").addEventListener("click", () => close(true));
  range.addEventListener("input", () => {
    time = Number(range.value);
    play(false);
  });
  root.addEventListener("keydown", (event) => {
    if (modified(event)) return;
    const isOnButton = event.target instanceof HTMLButtonElement;
    if (event.key === "Escape") close(false);
    else if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === " " && !isOnButton) play(!isPlaying);
    else return;
    event.preventDefault();
  });
  return { draw };
}

defineWidget("film", mount);
