/**
 * The box for writing. Under the textarea lies a copy of its text with an element for each token, followed by the
 * token that may come next.
 * @typedef {object} Composer
 * @property {string[]} [lines]  JSON: [text, probability if written by the model or else null, 1 for a control token]
 * @property {string | null} [unwritten]  the text in the box, if it differs from the text of the tokens
 * @property {number} [selected]  the position before the prediction
 * @property {string} [ghost]  the text that may come after the last token
 * @property {number[]} [words]  the position at which each word begins
 * @property {number[]} [hidden]  positions of the hidden words
 * @property {[number, number][]} [arcs]  [position, weight in 0..1] for each word that the prediction depends on
 * @property {boolean} [generating]  whether the text is being generated
 * @property {string} [held]  white space after the last token, which belongs to the next one
 * @property {string | null} [typed]  the typed text from which this text was made, if they differ
 * @property {number} [n_after]  number of characters added after the typed text
 * @property {number} [edited]  time of the last key press that this data reflects, in ms
 * @property {string} [document]  identifies the text; a new value replaces what was typed
 */

import { find, modified, setAll } from "../dom.js";
import { defineWidget } from "../runtime.js";
import { drawArcs } from "./arcs.js";
import { createCopy, tokenAt } from "./copy.js";
import { toggled, wordAt } from "./words.js";

const TYPING_MS = 150; // delay from the last key press to the request for a prediction
const CARET_MS = 80; // delay from the last caret move to the selection
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"];

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const area = find(root, "textarea", HTMLTextAreaElement);
  const svg = find(root, "svg", SVGSVGElement);
  const box = find(root, ".gb-copy");
  const invitation = find(root, ".gb-invite");
  const copy = createCopy(box);
  /** @type {Composer} */ let shown = {};
  let text = ""; // text from the server
  let isTyped = false; // whether typed text has not reached the server yet
  let isComposing = false; // whether an input method is composing
  let edited = 0; // time of the last key press
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let typing;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let moving;
  let hidden = /** @type {Set<number>} */ (new Set());
  let entered = 0; // the word that receives the keyboard focus first
  /** @type {{ caret: number, isTouch: boolean } | null} */ let pressed = null; // caret and kind of pointer before the pointer went down

  const isAtEnd = () => area.selectionStart === area.value.length;

  /** Returns the suggested next text, or "" if it cannot be accepted now. */
  function ghost() {
    const { ghost: next = "", generating, selected = -1 } = shown;
    const isLast = selected === copy.count() - 1;
    const isElsewhere = document.activeElement === area && !isAtEnd();
    return isTyped || generating || shown.unwritten != null || !isLast || isElsewhere || !area.value ? "" : next;
  }

  function refresh() {
    const isOld = isTyped || shown.unwritten != null;
    copy.draw(area.value, ghost(), isOld ? -1 : (shown.selected ?? -1), isOld ? new Set() : hidden);
    const arcs = (shown.arcs ?? []).filter(([position]) => !hidden.has(position));
    drawArcs(svg, copy, isOld ? [] : arcs, shown.selected ?? -1);
    nameWords(isOld);
    document.body.classList.toggle("gb-stale", isOld);
  }

  /** @param {Composer} data */
  function draw(data) {
    const wasAtEnd = root.scrollTop + root.clientHeight >= root.scrollHeight - 8;
    if ((data.document ?? "") !== (shown.document ?? "") || (data.edited ?? 0) >= edited) isTyped = false;
    if (String(data.hidden ?? []) !== String(shown.hidden ?? [])) hidden = new Set(data.hidden);
    shown = data;
    area.placeholder = host.t("placeholder");
    area.setAttribute("aria-label", host.t("name"));
    copy.read(data.lines ?? []);
    invite();
    text = data.unwritten ?? copy.text() + (data.held ?? "");
    settle();
    refresh();
    if (wasAtEnd) root.scrollTop = root.scrollHeight;
  }

  /** Puts the server's text into the box unless a person is typing, because this would end an input method's composition. */
  function settle() {
    if (isTyped || isComposing || area.value === text) return;
    if (area.value === shown.typed) rewrite(shown.n_after ?? 0);
    else write();
  }

  /** Puts the server's text into the box. If the text has only grown, a caret that is not at the end stays in place. */
  function write() {
    const end = area.value.length;
    if (!isAtEnd() && text.startsWith(area.value)) area.setRangeText(text.slice(end), end, end, "preserve");
    else area.value = text;
  }

  /** Replaces the typed text with the text it became, keeping the caret's distance from the end. @param {number} after */
  function rewrite(after) {
    const fromEnd = area.value.length - area.selectionStart;
    area.value = text;
    const caret = Math.max(0, text.length - after - fromEnd);
    area.setSelectionRange(caret, caret);
  }

  function type() {
    [isTyped, edited] = [true, Math.max(edited + 1, Date.now())];
    area.dataset.edited = String(edited);
    delete document.body.dataset.invite;
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

  /** Returns the token under the pointer, or -1 for none. @param {MouseEvent} event */
  function tokenUnder({ clientX, clientY }) {
    const node = document.elementsFromPoint(clientX, clientY).find((each) => each.parentElement === box);
    return node ? copy.tokenOf(node) : -1;
  }

  /** Hides a word, or shows it again. @param {number} word */
  function hide(word) {
    if (isTyped || shown.unwritten != null || shown.generating) return;
    const { words = [] } = shown;
    hidden = toggled(words, copy.count(), hidden, word);
    invite();
    refresh();
    host.send({ hidden: words.filter((each) => hidden.has(each)) }, "submit");
  }

  /** Shows first-time visitors what to try, until a word has been hidden. */
  function invite() {
    if (hidden.size) delete document.body.dataset.invite;
    invitation.textContent = host.t("invite");
    invitation.hidden = !("invite" in document.body.dataset) || !shown.arcs?.length;
  }

  /**
   * Makes each word a button for the keyboard: a single Tab stop, with arrow keys to move between words.
   * @param {boolean} isOld
   */
  function nameWords(isOld) {
    const { words = [] } = shown;
    box.setAttribute("aria-label", host.t("words"));
    entered = Math.min(entered, Math.max(0, words.length - 1));
    const pieces = copy.pieces();
    words.forEach((start, i) => {
      const node = copy.node(start);
      if (!node || start >= pieces.length) return;
      const word = pieces.slice(start, words[i + 1] ?? pieces.length).join("").trim();
      const attributes = { role: "button", tabindex: i === entered && !isOld ? "0" : "-1", "aria-pressed": String(hidden.has(start)) };
      setAll(node, { ...attributes, "aria-label": host.t(hidden.has(start) ? "show" : "hide", { word }) });
    });
  }

  /** Accepts the suggested next text. */
  function take() {
    area.setRangeText(ghost(), area.value.length, area.value.length, "end");
    type();
  }

  /** Selects the token before the caret. */
  function select(isWord = false) {
    refresh();
    clearTimeout(moving);
    moving = setTimeout(() => {
      if (isTyped || shown.unwritten != null || (area.selectionStart !== area.selectionEnd && !isWord)) return;
      const index = tokenAt(copy.pieces(), area.selectionEnd);
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
    take();
  });
  area.addEventListener("keyup", ({ key }) => MOVES.includes(key) && select());
  area.addEventListener("pointerdown", (event) => {
    const isFocused = document.activeElement === area;
    pressed = { caret: isFocused ? area.selectionStart : area.value.length, isTouch: event.pointerType === "touch" };
  });
  area.addEventListener("mousedown", (event) => {
    if (pressed?.isTouch && tokenUnder(event) >= 0) event.preventDefault(); // keeps the on-screen keyboard closed
  });
  area.addEventListener("click", (event) => {
    const token = tokenUnder(event);
    const isPlain = event.detail < 2 && area.selectionStart === area.selectionEnd;
    if (token < 0 || token > copy.count() || !isPlain) return select(event.detail > 1);
    const word = wordAt(shown.words ?? [], token);
    if (token === copy.count() && ghost()) return take();
    if (pressed && !pressed.isTouch) area.setSelectionRange(pressed.caret, pressed.caret);
    if (word >= 0 && token < copy.count()) hide(word);
  });
  area.addEventListener("pointermove", (event) => {
    const word = wordAt(shown.words ?? [], tokenUnder(event));
    area.style.cursor = word < 0 ? "" : "pointer";
  });
  box.addEventListener("keydown", (event) => {
    const { words = [] } = shown;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (modified(event)) return;
    if (event.key === "Enter" || event.key === " ") hide(entered);
    else if (step === undefined) return;
    else entered = Math.max(0, Math.min(words.length - 1, entered + step));
    event.preventDefault();
    refresh();
    copy.node(words[entered])?.focus();
  });
  area.addEventListener("focus", refresh);
  area.addEventListener("blur", () => {
    if (typing !== undefined) ask();
    refresh();
  });
  document.fonts.ready.then(host.redraw);
  return { draw };
}

defineWidget("composer", mount);
