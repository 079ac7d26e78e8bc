/**
 * A text with one chip per token. Only what has changed is updated.
 * @typedef {object} Tokens
 * @property {string} [doc]  identifies the text; a new value selects the newest token again
 * @property {string[]} [lines]  the tokens, each a line built by `token_line`
 * @property {number} [selected]  a position; -1 follows the newest token as the text grows
 * @property {string} [shade]  from `shade_value`, drawn instead of the tint; "" for none
 * @property {string} [by]  the quantity that tints the tokens: "probability", "rank", "entropy" or "surprisal"
 * @property {number} [parted]  position of the first difference from the text beside it; -1 for none
 * @property {boolean} [marks]  whether spaces are shown
 * @property {[place: number, line: string, position: number][]} [hidden]  hidden tokens: the chip before which each stands;
 *   a click on one sends {"shown": position}. They are not counted anywhere else.
 *
 * options: ids: small chips with their ids; selectable; one_line: scrolls sideways; name, empty, shade: endings of the
 * keys of these texts
 */

import { find, modified, setAll, setText } from "../dom.js";
import { bytes, isExact, percent } from "../labels.js";
import { t } from "../i18n.js";
import { defineWidget } from "../runtime.js";
import { createTip } from "../tip.js";
import { chipByKey, inUnit, makeChip, nameOf, readToken, surprisal, tintEnds, tintLevel } from "./chips.js";

const FULL = 65535; // the largest level of a shade

defineWidget("tokens", (root, host) => {
  const { ids, selectable, one_line: oneLine, name: ofText, empty: ofEmpty, shade: meaning } = host.options;
  const [empty, strip, marks] = [".gb-empty", ".gb-strip", ".gb-marks"].map((name) => find(root, name));
  const [scale, from, to] = [".gb-scale", ".gb-from", ".gb-to"].map((name) => find(root, name));
  const all = /** @type {HTMLCollectionOf<HTMLElement>} */ (strip.children); // hidden tokens included
  const tip = createTip(root, find(root, ".gb-tip"));
  /** @type {HTMLElement[]} */ const chips = [];
  /** @type {string[]} */ const lines = [];
  /** @type {import("./chips.js").Token[]} */ const tokens = [];
  /** @type {string | undefined} */ let doc;
  let chosen = -1; // the selected position; -1 for the newest
  let serverSelection = -1;
  /** @type {HTMLElement | undefined} */ let framed; // the framed chip
  let hidden = "[]"; // the hidden tokens, as JSON
  let largest = 0; // the weight that the largest level stands for
  /** @type {Uint16Array | null} */ let levels = null;
  let showsMarks = false;
  let width = 0; // the last drawing's width; 0 in a closed tab
  let atEnd = true; // whether the view is scrolled to the end
  const chipAt = (/** @type {Event} */ { target }) => (target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest(".gb-chip")) : null);
  const format = meaning === "surprisal" ? inUnit : percent;

  /**
   * Reads new lines and returns whether the text has changed.
   * @param {string[]} fresh @param {string | undefined} name @param {NonNullable<Tokens["hidden"]>} struck
   */
  function readLines(fresh, name, struck) {
    let kept = 0;
    while (kept < lines.length && fresh[kept] === lines[kept]) kept += 1;
    const isOther = name !== doc || kept < lines.length;
    if (!isOther && kept === fresh.length && hidden === JSON.stringify(struck)) return false;
    hidden = JSON.stringify(struck);
    for (const chip of strip.querySelectorAll(".gb-hidden")) chip.remove();
    if (name !== doc) chosen = -1;
    doc = name;
    if (isOther) {
      atEnd = true;
      tip.hide();
    }
    while (all.length > kept) strip.lastChild?.remove();
    lines.length = tokens.length = chips.length = kept;
    const added = document.createDocumentFragment();
    for (const line of fresh.slice(kept)) {
      const token = readToken(line);
      const nodes = makeChip(token, host.options);
      added.append(...nodes);
      chips.push(nodes[0]);
      lines.push(line);
      tokens.push(token);
    }
    strip.append(added);
    for (const [place, line, position] of struck) {
      const token = readToken(line);
      const [chip] = makeChip(token, host.options);
      const name = t("prompt.show", { word: token.text.trim() });
      chip.classList.add("gb-hidden");
      setAll(chip, { "data-position": position, "aria-label": name, title: name });
      strip.insertBefore(chip, chips[place] ?? null);
    }
    return true;
  }

  /** Tints the chips: by the shade or, without one, by the chosen quantity. @param {string} shade @param {string} by */
  function tint(shade, by) {
    const [most, data] = shade.split(":");
    [largest, levels] = shade ? [Number(most), new Uint16Array(bytes(data).buffer)] : [0, null];
    root.classList.toggle("gb-shaded", Boolean(levels));
    root.dataset.shade = meaning;
    tokens.forEach((token, i) => {
      const level = levels ? (levels[i] ?? 0) / FULL : tintLevel(by, token);
      if (level === null) chips[i].style.removeProperty("--p");
      else chips[i].style.setProperty("--p", level.toFixed(4));
    });
    const none = meaning === "surprisal" ? "0" : "0%";
    const [low, high] = levels ? [`${t(`strip.shading.${meaning}`)} ${none}`, format(largest)] : tintEnds(by);
    setText(from, low);
    setText(to, high);
    scale.style.visibility = levels && !largest ? "hidden" : ""; // no shading
  }

  /** @param {boolean} [slides] whether the line may scroll; a chip stays under the pointer that has pressed it */
  function frameChosen(slides = true) {
    const last = chips.length - 1;
    const now = selectable && last >= 0 ? chips[chosen < 0 ? last : Math.min(chosen, last)] : undefined;
    if (now === framed) return;
    for (const chip of [framed, now]) {
      if (chip) setAll(chip, { "aria-selected": String(chip === now), tabindex: chip === now ? 0 : -1 });
    }
    framed = now;
    if (slides) scrollSideways();
  }

  /** Scrolls the framed chip into the middle half of the line. */
  function scrollSideways() {
    if (!framed || !oneLine) return;
    const [left, room] = [framed.offsetLeft, strip.clientWidth / 4];
    strip.scrollLeft = Math.min(Math.max(strip.scrollLeft, left + framed.offsetWidth + room - strip.clientWidth), left - room);
  }

  /** Scrolls the strip, but not the page. @param {Element} chip */
  function reveal(chip) {
    const [view, place] = [strip.getBoundingClientRect(), chip.getBoundingClientRect()];
    if (place.top < view.top) strip.scrollTop -= view.top - place.top + 8;
    else if (place.bottom > view.bottom) strip.scrollTop += place.bottom - view.bottom + 8;
  }

  /** @param {boolean} on */
  function showMarks(on) {
    marks.setAttribute("aria-pressed", String(on));
    root.classList.toggle("gb-marked", on);
  }

  /** @param {Tokens} data */
  function draw(data) {
    setText(empty, ofEmpty ? t(`strip.empty.${ofEmpty}`) : "");
    setText(marks, t("strip.marks"));
    strip.setAttribute("aria-label", t(ofText ? `strip.name.${ofText}` : "strip.name"));
    const changed = readLines(data.lines ?? [], data.doc, data.hidden ?? []);
    tint(data.shade ?? "", data.by ?? "");
    const asked = data.selected ?? -1;
    if (asked !== serverSelection) chosen = asked;
    frameChosen();
    if (asked !== serverSelection && asked >= 0 && framed) reveal(framed);
    serverSelection = asked;
    chips.forEach((chip, i) => chip.classList.toggle("gb-parted", i === data.parted));
    if (Boolean(data.marks) !== showsMarks) showMarks((showsMarks = !showsMarks));
    root.classList.toggle("gb-nothing", chips.length === 0);
    // This is faster than `:has`, which is evaluated on every change.
    if (host.id === "dock") document.body.dataset.text = chips.length ? "some" : "none";
    if (atEnd && (changed || width !== strip.clientWidth)) strip.scrollTop = strip.scrollHeight;
    if (width !== strip.clientWidth) scrollSideways();
    width = strip.clientWidth;
    const anchor = tip.anchor();
    if (anchor) showTip(anchor);
  }

  /** Selects a chip, or shows a hidden word again. @param {HTMLElement} chip */
  function press(chip) {
    if (chip.dataset.position) return host.send({ shown: Number(chip.dataset.position) });
    chosen = chips.indexOf(chip);
    frameChosen(false);
    host.send({ index: chosen });
  }

  /** @param {HTMLElement} chip */
  function showTip(chip) {
    const index = chips.indexOf(chip);
    const token = tokens[index];
    if (!token) return tip.hide();
    /** @type {[string, string][]} */ const rows = [...token.unseen];
    if (isExact()) rows.push([t("strip.id"), String(token.id)]);
    if (token.probability !== null) rows.push([t("strip.probability"), percent(token.probability)]);
    if (token.rank !== null) rows.push([t("strip.shading.rank"), String(token.rank)]);
    if (token.entropy !== null) rows.push([t("strip.shading.surprisal"), inUnit(surprisal(token))], [t("strip.shading.entropy"), inUnit(token.entropy)]);
    if (levels && (meaning !== "surprisal" || token.probability !== null)) rows.push([t(`strip.shading.${meaning}`), format(((levels[index] ?? 0) / FULL) * largest)]);
    tip.show(chip, nameOf(token), rows);
  }

  const tell = (/** @type {Event} */ event) => {
    const chip = chipAt(event);
    if (chip) showTip(chip);
  };
  for (const type of ["pointerover", "focusin"]) strip.addEventListener(type, tell);
  for (const type of ["pointerleave", "focusout"]) strip.addEventListener(type, tip.hide);
  strip.addEventListener("scroll", () => {
    atEnd = strip.scrollTop + strip.clientHeight >= strip.scrollHeight - 8;
    tip.place();
  });
  marks.addEventListener("click", () => showMarks(marks.getAttribute("aria-pressed") !== "true"));
  root.classList.toggle("gb-ids", ids);
  root.classList.toggle("gb-selectable", selectable);
  root.classList.toggle("gb-one-line", oneLine);
  strip.classList.toggle("gb-sideways", oneLine);
  strip.setAttribute("role", selectable ? "listbox" : "group");
  if (!selectable) return { draw };
  strip.addEventListener("click", (event) => {
    const chip = chipAt(event);
    if (chip) press(chip);
  });
  strip.addEventListener("keydown", (event) => {
    const chip = chipAt(event);
    if (!chip || modified(event)) return;
    if (event.key === "Escape") return tip.hide();
    const to = chipByKey(event.key, [...all], chip);
    if (event.key === "Enter" || event.key === " ") press(chip);
    else if (to) to.focus();
    else return;
    event.preventDefault();
  });
  return { draw };
});
