/**
 * The box that a text is written in. Under a textarea lies a copy of its text with an element for each token, followed
 * by the token that may come next.
 * @typedef {object} Composer
 * @property {string[]} [lines]  JSON of [text, probability of a token that the model wrote, else null, 1 for a control token]
 * @property {string | null} [unwritten]  the text of the box if the tokens are of an older one
 * @property {number} [selected]  the position that the prediction follows
 * @property {string} [ghost]  the text that may come after the last token
 * @property {[number, number][]} [arcs]  position and weight, in 0..1, of the tokens that the selected one attends to
 * @property {boolean} [generating]  whether the text grows by itself
 * @property {string | null} [typed]  the typed text that became this text, if it is another one
 * @property {number} [n_after]  number of characters that were put after it
 * @property {number} [edited]  time of the last key that the data answers, in ms
 * @property {string} [document]  another one replaces what was typed
 */

import { find, make, modified, setText } from "../dom.js";
import { defineWidget } from "../runtime.js";
import { drawArcs } from "./arcs.js";
import { createCopy, tokenAt } from "./copy.js";

const TYPING_MS = 150; // from the last key to the question what comes next
const CARET_MS = 80; // from the last move of the caret to the selection
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"];

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const area = find(root, "textarea", HTMLTextAreaElement);
  const svg = find(root, "svg", SVGSVGElement);
  const copy = createCopy(find(root, ".gb-copy"));
  /** @type {Composer} */ let shown = {};
  let text = ""; // of the server
  let isTyped = false; // whether the server does not know yet what a person has typed
  let isComposing = false; // by an input method
  let edited = 0; // time of the last key
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let typing;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let moving;

  const isAtEnd = () => area.selectionStart === area.value.length;

  /** The text that may come next; "" where none is to be taken. */
  function ghost() {
    const { ghost: next = "", generating, selected = -1 } = shown;
    const isLast = selected === copy.count() - 1;
    const isElsewhere = document.activeElement === area && !isAtEnd();
    return isTyped || generating || shown.unwritten != null || !isLast || isElsewhere ? "" : next;
  }

  function refresh() {
    const isOld = isTyped || shown.unwritten != null;
    copy.draw(area.value, ghost(), isOld ? -1 : (shown.selected ?? -1));
    drawArcs(svg, copy, isOld ? [] : (shown.arcs ?? []), shown.selected ?? -1);
    document.body.classList.toggle("gb-stale", isOld);
  }

  /** @param {Composer} data */
  function draw(data) {
    const wasAtEnd = root.scrollTop + root.clientHeight >= root.scrollHeight - 8;
    if ((data.document ?? "") !== (shown.document ?? "") || (data.edited ?? 0) >= edited) isTyped = false;
    shown = data;
    area.placeholder = host.t("placeholder");
    area.setAttribute("aria-label", host.t("name"));
    copy.read(data.lines ?? []);
    text = data.unwritten ?? copy.text();
    settle();
    refresh();
    if (wasAtEnd) root.scrollTop = root.scrollHeight;
  }

  /** Makes the box the server's text, unless a person types: setting a text ends what an input method composes. */
  function settle() {
    if (isTyped || isComposing || area.value === text) return;
    if (area.value === shown.typed) rewrite(shown.n_after ?? 0);
    else write();
  }

  /** Puts the server's text into the box; what was only added leaves the caret where it is, unless it was at the end. */
  function write() {
    const end = area.value.length;
    if (!isAtEnd() && text.startsWith(area.value)) area.setRangeText(text.slice(end), end, end, "preserve");
    else area.value = text;
  }

  /** Replaces what was typed by what it became: the caret keeps its distance from the end. @param {number} after */
  function rewrite(after) {
    const fromEnd = area.value.length - area.selectionStart;
    area.value = text;
    const caret = Math.max(0, text.length - after - fromEnd);
    area.setSelectionRange(caret, caret);
  }

  function type() {
    [isTyped, edited] = [true, Math.max(edited + 1, Date.now())];
    area.dataset.edited = String(edited);
    refresh();
    clearTimeout(moving);
    clearTimeout(typing);
    typing = setTimeout(ask, TYPING_MS);
  }

  function ask() {
    clearTimeout(typing);
    typing = undefined;
    host.send({ text: area.value, edited, document: shown.document ?? "" }, "input");
  }

  /** Selects the token before the caret. */
  function select() {
    refresh();
    clearTimeout(moving);
    moving = setTimeout(() => {
      if (isTyped || shown.unwritten != null || area.selectionStart !== area.selectionEnd) return;
      const index = tokenAt(copy.pieces(), area.selectionStart);
      if (index >= 0 && index !== shown.selected) host.send({ index });
    }, CARET_MS);
  }

  area.addEventListener("input", type);
  area.addEventListener("compositionstart", () => (isComposing = true));
  area.addEventListener("compositionend", () => {
    isComposing = false;
    settle();
    refresh();
  });
  area.addEventListener("keydown", (event) => {
    const next = ghost();
    if (event.key !== "ArrowRight" || !next || modified(event) || event.shiftKey || event.isComposing) return;
    if (!isAtEnd()) return;
    event.preventDefault();
    area.setRangeText(next, area.value.length, area.value.length, "end");
    type();
  });
  area.addEventListener("keyup", ({ key }) => MOVES.includes(key) && select());
  area.addEventListener("pointerup", select);
  area.addEventListener("focus", refresh);
  area.addEventListener("blur", () => {
    if (typing !== undefined) ask();
    refresh();
  });
  document.fonts.ready.then(host.redraw);
  return { draw };
}

defineWidget("composer", mount);
