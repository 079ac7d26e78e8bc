/**
 * The player of the film: time, camera and controls.
 * @typedef {import("./scene.js").Film} Film
 * @typedef {import("./scene.js").Item} Item
 * @typedef {import("./scene.js").Box} Box
 */

import { find, modified, setText } from "../dom.js";
import { films } from "../progress.js";
import { defineWidget } from "../runtime.js";
import { around, fitted } from "./camera.js";
import { build, MOVE } from "./scene.js";
import { NAME } from "./shapes.js";
import { beatAt, eased } from "./time.js";

const CAMERA = 0.16; // share of a beat in which the camera goes there
const NARROW = 700; // px
const LEAST = 260; // height of what the camera shows, at least
const CLOSE = 150; // of a line of text
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
    const lit = new Set([...film.beats[beat].lit, "names", "sentence"]);
    const edge = look(beat, share);
    const hidesLeft = namesOf(beat) !== "none"; // what was told before is not behind the names
    for (const { node, part, at, from, begins, beat: born, ends, fades, grows, turns, isName, isFollowed } of items) {
      const moved = beat > born ? 1 : beat < born ? 0 : eased((share - begins) / MOVE);
      const isThere = moved > 0 || (beat === born && ((begins === 0 && !from) || turns !== undefined));
      const isOver = ends !== undefined && (beat > ends || (beat === ends && share > fades));
      const isElsewhere = isName && beat > born && !isNamed(beat, isFollowed);
      const to = isName ? [edge, at[1]] : at;
      const [x, y] = from ? [from[0] + (to[0] - from[0]) * moved, from[1] + (to[1] - from[1]) * moved] : to;
      const width = grows ? ` scaleX(${Math.max(1e-4, grows[0] + (grows[1] - grows[0]) * moved).toFixed(4)})` : "";
      const turn = turns ? ` rotate(${(turns[0] + (turns[1] - turns[0]) * moved).toFixed(1)}deg)` : "";
      const isShown = isThere && !isOver && !isElsewhere;
      node.style.visibility = isShown ? "visible" : "hidden";
      if (!isShown) continue;
      node.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)${width}${turn}`;
      const left = hidesLeft && !isName && at[0] < edge + NAME ? 1 - Math.min(1, share / CAMERA) : 1;
      const faded = from || grows || turns || beat > born || begins === 0 ? 1 : moved;
      node.style.opacity = String((lit.has(part) ? 1 : 0.25) * left * faded);
    }
    show(beat);
  }

  /** Which names stand at the left edge; a narrow screen has no room for that of the followed token alone. @param {number} beat */
  function namesOf(beat) {
    const { names } = /** @type {Film} */ (film).beats[beat];
    return names === "followed" && isNarrow() ? "none" : names;
  }

  /** Whether the name of a token stands at the left edge of a beat. @param {number} beat @param {boolean} [isFollowed] */
  const isNamed = (beat, isFollowed) => namesOf(beat) === "all" || (namesOf(beat) === "followed" && isFollowed === true);

  /** The parts that the camera shows in a beat, with room for the names. @param {number} beat @returns {Box & {edge: number}} */
  function seen(beat) {
    const { lit, close } = /** @type {Film} */ (film).beats[beat];
    const box = around(boxes, isNarrow() ? close : lit);
    const edge = box.x - NAME - 12;
    return namesOf(beat) === "none" ? { ...box, edge } : { ...box, x: edge, w: box.w + NAME + 12, edge };
  }

  const isNarrow = () => stage.clientWidth < NARROW;

  /** Moves the camera. @param {number} beat @param {number} share @returns {number} where the names are */
  function look(beat, share) {
    const { clientWidth: width, clientHeight: height } = stage;
    const [before, now] = [seen(Math.max(0, beat - 1)), seen(beat)];
    const part = still.matches ? 1 : eased(share / CAMERA);
    const between = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * part;
    if (width && height) {
      const [a, b] = [before, now].map((box) => fitted(box, width / height, isNarrow() ? 10 : 24, box.h < CLOSE ? CLOSE : LEAST));
      const mix = (/** @type {keyof Box} */ key) => between(a[key], b[key]).toFixed(1);
      svg.setAttribute("viewBox", [mix("x"), mix("y"), mix("w"), mix("h")].join(" "));
    }
    return namesOf(Math.max(0, beat - 1)) === "none" ? now.edge : between(before.edge, now.edge);
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
    const content = JSON.stringify([rest, host.t("part.tok"), host.t("earlier"), isNarrow()]);
    if (content !== drawn) {
      drawn = content;
      starts = film.beats.reduce((sums, { seconds }) => [...sums, sums[sums.length - 1] + seconds], [0]);
      range.max = String(total());
      ({ items, boxes } = build(svg, film, host.t, isNarrow()));
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
      films.keep("token", 1);
      document.body.setAttribute("data-film-seen", "");
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
  /** The keys are the film's unless something else has the focus. @param {KeyboardEvent} event */
  function onKey(event) {
    const isOurs = event.target === document.body || (event.target instanceof Node && root.contains(event.target));
    if (modified(event) || !isOurs || !root.getClientRects().length) return;
    const isOnButton = event.target instanceof HTMLButtonElement;
    if (event.key === "Escape") close(false);
    else if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === " " && !isOnButton) play(!isPlaying);
    else return;
    event.preventDefault();
  }
  document.addEventListener("keydown", onKey);
  return { draw, destroy: () => document.removeEventListener("keydown", onKey) };
}

defineWidget("film", mount);
