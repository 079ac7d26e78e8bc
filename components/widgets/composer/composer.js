/**
 * The box for writing. Under the textarea lies a copy of its text with an element for each token, followed by the
 * token that may come next.
 * @typedef {object} Composer
 * @property {string[]} [lines]  JSON: [text, probability if written by the model or else null, 1 for a control token]
 * @property {string | null} [unwritten]  the text in the box, if it differs from the text of the tokens
 * @property {boolean} [chat]  whether the text is the start of a conversation
 * @property {number} [selected]  the position before the prediction
 * @property {string} [ghost]  the text that may come after the last token
 * @property {number[]} [words]  the position at which each word begins
 * @property {number[]} [hidden]  positions of the hidden words
 * @property {[number, number][]} [arcs]  [position, weight in 0..1] for each word that the prediction depends on
 * @property {[number, number, number][]} [effects]  [position, probability, probability without the word] for each word
 * @property {boolean} [generating]  whether the text is being generated
 * @property {number} [coming]  number of tokens that the run may write; 0 if the text is not being generated
 * @property {string} [held]  white space after the last token, which belongs to the next one
 * @property {string | null} [typed]  the typed text from which this text was made, if they differ
 * @property {number} [n_after]  number of characters added after the typed text
 * @property {number} [edited]  time of the last key press that this data reflects, in ms
 * @property {number} [n]  number of the last click on a word that this data reflects
 * @property {string} [document]  identifies the text; a new value replaces what was typed
 */

import { find, modified, setAll, setText } from "../dom.js";
import { t } from "../i18n.js";
import { percent } from "../labels.js";
import { defineWidget } from "../runtime.js";
import { drawArcs } from "../arcs.js";
import { changed, createCopy, toggled, wordAt } from "./copy.js";

const TYPING_MS = 150; // delay from the last key press to the request for a prediction
const CARET_MS = 80; // delay from the last caret move to the selection
const DOUBLE_MS = 500; // two clicks on a word within this time are a double click, also on touch screens
const MAX_RUNS = 20; // runs of edits that wait for the server
const USUAL = " outside"; // room for the guess, so that the sentence keeps its size when the guess changes
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"];

defineWidget("composer", (root, host) => {
  const area = find(root, "textarea", HTMLTextAreaElement);
  const svg = find(root, "svg", SVGSVGElement);
  const box = find(root, ".gb-copy");
  const phone = matchMedia("(max-width: 900px)");
  const measure = ruler(getComputedStyle(area).fontFamily);
  const copy = createCopy(box);
  const tip = find(root, ".gb-effect");
  /** @type {Composer} */ let shown = {};
  let text = ""; // text from the server
  let isTyped = false; // whether typed text has not reached the server yet
  let isComposing = false; // whether an input method is composing
  let edited = 0; // time of the last key press
  let run = 0; // time of the first edit that a single undo takes back together with the last one
  let last = { text: "", caret: -1, kind: "" }; // after the last edit
  let joins = false; // whether the next edit continues the run
  /** @type {[text: string, edited: number, run: number][]} */ let before = []; // ends of runs that the server has not handled
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let typing;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ let moving;
  let reserved = ""; // see longest
  let room = { text: "", guess: USUAL }; // the longest guess after the present text
  let hidden = /** @type {Set<number>} */ (new Set());
  let entered = 0; // the word that receives the keyboard focus first
  let pressed = { caret: 0, isTouch: false }; // caret and kind of pointer before the pointer went down
  let clicked = { word: -1, caret: 0, time: -Infinity }; // the last click, if it was on a word, and where in the text
  let n = 0; // number of the last click on a word
  let pointed = -1; // the word under the pointer
  let isAtBottom = true; // whether the end of a long text is in sight
  let width = 0; // of the textarea in px; kept, because measuring it after a change would lay out the page

  const isAtEnd = () => area.selectionStart === area.value.length;
  const isEndInSight = () => root.scrollTop + root.clientHeight >= root.scrollHeight - 8;

  /** Returns the suggested next text, or "" if it cannot be accepted now. */
  function ghost() {
    const { ghost: next = "", generating, selected = -1 } = shown;
    const isLast = selected === copy.count() - 1;
    const isElsewhere = document.activeElement === area && !isAtEnd();
    return isTyped || generating || shown.unwritten != null || !isLast || isElsewhere || !area.value ? "" : next;
  }

  /** Returns the text that must fit. While a run writes, it is as long as the text may become, so that nothing jumps. */
  function longest() {
    const { coming = 0 } = shown;
    if (!coming) reserved = "";
    else if (!reserved) {
      const { value } = area;
      reserved = value.padEnd(value.length * (1 + coming / Math.max(1, copy.count())), ` ${value || "word"}`);
    }
    if (reserved.length > area.value.length) return reserved;
    if (room.text !== area.value) room = { text: area.value, guess: USUAL };
    if (measure(ghost()) > measure(room.guess)) room.guess = ghost();
    return area.value + room.guess;
  }

  function refresh() {
    const isOld = isTyped || shown.unwritten != null;
    const { name, px } = fit(longest(), (width ||= area.clientWidth), phone.matches, measure);
    root.dataset.size = name;
    root.style.setProperty("--gb-line-size", `${px}px`);
    copy.draw(area.value, ghost(), isOld ? -1 : (shown.selected ?? -1), isOld ? new Set() : hidden);
    isAtBottom ||= isEndInSight(); // a text that has become short is not scrolled
    if (isAtBottom) root.scrollTop = root.scrollHeight;
    const arcs = (shown.arcs ?? []).filter(([position]) => !hidden.has(position));
    const lastOf = (/** @type {number} */ start) => (shown.words?.find((word) => word > start) ?? copy.count()) - 1;
    drawArcs(svg, copy, isOld ? [] : arcs, shown.selected ?? -1, !shown.generating, lastOf);
    nameWords(isOld);
    point(canHide() ? pointed : -1);
    if (!host.options.leads) return;
    document.body.classList.toggle("gb-stale", isOld);
    for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".gb-live"))) node.inert = isOld;
  }

  /** @param {Composer} data */
  function draw(data) {
    if ((data.document ?? "") !== (shown.document ?? "") || (data.edited ?? 0) >= edited) isTyped = false;
    before = before.filter(([, at]) => at > (data.edited ?? 0));
    if ((data.n ?? 0) >= n) hidden = new Set(data.hidden);
    shown = data;
    area.placeholder = t(data.chat ? "chat.placeholder" : "prompt.placeholder");
    area.setAttribute("aria-label", t(host.options.answers ? "challenges.text" : "prompt.text"));
    copy.read(data.lines ?? []);
    text = data.unwritten ?? copy.text() + (data.held ?? "");
    settle();
    refresh();
  }

  /** Puts the server's text into the box unless a person is typing, because this would end an input method's composition. */
  function settle() {
    if (isTyped || isComposing || area.value === text) return;
    if (area.value === shown.typed) rewrite(shown.n_after ?? 0);
    else write();
  }

  /** Puts the server's text into the box. A caret in the changed part moves to its end; any other stays in place. */
  function write() {
    const { value, selectionStart, selectionEnd } = area;
    const [start, rest] = changed(value, text);
    const end = value.length - rest;
    const isInside = selectionStart >= start && selectionEnd <= end;
    area.setRangeText(text.slice(start, text.length - rest), start, end, isInside ? "end" : "preserve");
  }

  /** Replaces the typed text with the text it became, keeping the caret's distance from the end. @param {number} after */
  function rewrite(after) {
    const fromEnd = area.value.length - area.selectionStart;
    area.value = text;
    const caret = Math.max(0, text.length - after - fromEnd);
    area.setSelectionRange(caret, caret);
  }

  function type() {
    if (!joins && isTyped) before = [...before, /** @type {typeof before[0]} */ ([last.text, edited, run])].slice(-MAX_RUNS);
    [isTyped, edited] = [true, Math.max(edited + 1, Date.now())];
    if (!joins) run = edited;
    joins = false;
    last = { ...last, text: area.value, caret: area.selectionStart };
    isAtBottom &&= isAtEnd(); // what follows a caret in the text moves down
    refresh();
    clearTimeout(moving);
    clearTimeout(typing);
    typing = setTimeout(ask, TYPING_MS);
  }

  /** Sends what has just been typed before anything else is done with the text. */
  const askNow = () => typing !== undefined && ask();

  function ask() {
    clearTimeout(typing);
    typing = undefined;
    host.send({ text: area.value, edited, run, before, document: shown.document ?? "" }, "input");
  }

  /**
   * Decides whether an edit continues the run. As in browsers, a run ends when the caret moves, before a deletion that
   * follows typed characters, and with anything but these. @param {InputEvent} event
   */
  function begin(event) {
    const { inputType } = event;
    if (host.options.leads && inputType.startsWith("history")) {
      event.preventDefault();
      return retrace(inputType === "historyRedo");
    }
    const kind = ["insertText", "insertCompositionText"].includes(inputType) ? "insert" : inputType.startsWith("deleteContent") ? "delete" : "";
    const isAtCaret = [area.selectionStart, area.selectionEnd].every((at) => at === last.caret);
    joins = kind !== "" && (isComposing ? last.kind === "compose" : isAtCaret && (kind === last.kind || last.kind === "delete"));
    last.kind = isComposing ? "compose" : kind;
  }

  /** Undoes or redoes an action of the page, of which typing is one. @param {boolean} redo */
  function retrace(redo) {
    askNow();
    host.send({ redo }, "undo");
  }

  /** Makes the browser's keys for undo and redo those of the page, except in other text fields. @param {KeyboardEvent} event */
  function onKey(event) {
    const { key, target, shiftKey, altKey, isComposing: composes } = event;
    const name = key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || altKey || composes || !["z", "y"].includes(name)) return;
    if (target !== area && target instanceof Element && target.closest("input, textarea, select, dialog")) return;
    if (!area.checkVisibility() || (name === "y" && shiftKey)) return;
    event.preventDefault();
    retrace(name === "y" || shiftKey);
  }

  /** Returns the token under the pointer, or -1 for none. @param {MouseEvent} event */
  function tokenUnder({ clientX, clientY }) {
    const node = document.elementsFromPoint(clientX, clientY).find((each) => each.parentElement === box);
    return node ? copy.tokenOf(node) : -1;
  }

  /**
   * Returns the word whose letters are under the pointer, or -1 where a click sets the caret: between words, and while
   * words can't be hidden. @param {MouseEvent} event
   */
  function wordUnder(event) {
    const { words = [] } = shown;
    const token = tokenUnder(event);
    const word = canHide() && token < copy.count() ? wordAt(words, token) : -1;
    return word >= 0 && copy.isOnLetters(token, event.clientX, words.includes(token), words.includes(token + 1)) ? word : -1;
  }

  /** Returns what hiding a word does, such as "without it: 91% → 9%"; "" if that isn't known. @param {number} start */
  function effectOf(start) {
    const effect = hidden.has(start) ? undefined : shown.effects?.find(([position]) => position === start);
    return effect ? t("prompt.effect", { before: percent(effect[1]), after: percent(effect[2]) }) : "";
  }

  /** Shows what hiding the word under the pointer would do. @param {number} word -1 for none */
  function point(word) {
    area.style.cursor = word < 0 ? "" : "pointer";
    pointed = word;
    const start = shown.words?.[word] ?? -1;
    const [text, node] = [effectOf(start), copy.node(start)];
    setText(tip, text);
    if (!text || !node) return;
    tip.style.left = `${node.offsetLeft + node.offsetWidth / 2}px`;
    tip.style.top = `${node.offsetTop}px`;
  }

  const canHide = () => !isTyped && shown.unwritten == null && !shown.generating;

  /** Hides a word, or shows it again. @param {number} word */
  function hide(word) {
    if (!canHide()) return;
    const { words = [] } = shown;
    hidden = toggled(words, copy.count(), hidden, word);
    n = Math.max(n, shown.n ?? 0) + 1;
    refresh();
    host.send({ hidden: words.filter((each) => hidden.has(each)), edited: shown.edited ?? 0, n }, "submit");
  }

  /** Makes the words buttons for the keyboard: one Tab stop, with arrow keys to move between them. @param {boolean} isOld */
  function nameWords(isOld) {
    const { words = [] } = shown;
    box.setAttribute("aria-label", t("prompt.words"));
    entered = Math.min(entered, Math.max(0, words.length - 1));
    words.forEach((start, i) => {
      const node = copy.node(start);
      if (!node || start >= copy.count()) return;
      const word = copy.text(start, words[i + 1]).trim();
      const attributes = { role: "button", tabindex: i === entered && !isOld ? "0" : "-1", "aria-pressed": String(hidden.has(start)) };
      const name = t(hidden.has(start) ? "prompt.show" : "prompt.hide", { word });
      setAll(node, { ...attributes, "aria-label": [name, effectOf(start)].filter(Boolean).join(", ") });
    });
  }

  /** Returns whether this ends a double click that began on a word; it may be a little beside it. @param {MouseEvent} event */
  function isSecond(event) {
    const isQuick = event.timeStamp - clicked.time < DOUBLE_MS;
    return clicked.word >= 0 && (event.detail === 2 || (isQuick && wordUnder(event) === clicked.word));
  }

  /** Shows the word again that the first click of a double click has hidden, and puts the caret there. */
  function edit() {
    hide(clicked.word);
    area.setSelectionRange(clicked.caret, clicked.caret); // the second click has selected the word
    clicked.word = -1;
    select();
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
      const index = copy.tokenAt(area.selectionEnd);
      if (index >= 0 && index !== shown.selected) host.send({ index });
    }, CARET_MS);
  }

  area.addEventListener("beforeinput", begin);
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
    const keepsClosed = pressed.isTouch && document.activeElement !== area; // the on-screen keyboard
    if (keepsClosed && wordUnder(event) >= 0 && !isSecond(event)) event.preventDefault();
  });
  area.addEventListener("click", (event) => {
    if (isSecond(event)) return edit();
    const isPlain = event.detail < 2 && area.selectionStart === area.selectionEnd;
    const word = isPlain ? wordUnder(event) : -1;
    const token = tokenUnder(event);
    // A tap on a word leaves the caret where it was.
    const caret = word >= 0 && pressed.isTouch ? copy.text(0, token + 1).length : area.selectionStart;
    clicked = { word, caret, time: event.timeStamp };
    if (token === copy.count() && ghost()) return take();
    if (word < 0) return select(event.detail > 1);
    if (document.activeElement === area) area.setSelectionRange(pressed.caret, pressed.caret);
    hide(word);
  });
  area.addEventListener("pointermove", (event) => point(wordUnder(event)));
  area.addEventListener("pointerleave", () => point(-1));
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
  box.addEventListener("focusin", ({ target }) => {
    const start = copy.tokenOf(/** @type {Element} */ (target));
    const end = shown.words?.find((word) => word > start) ?? copy.count();
    for (let i = 0; i < copy.count(); i += 1) {
      copy.node(i)?.classList.toggle("gb-continued", start <= i && i < end - 1);
      copy.node(i)?.classList.toggle("gb-continues", start < i && i < end);
    }
  });
  root.addEventListener("scroll", () => (isAtBottom = isEndInSight()));
  area.addEventListener("focus", refresh);
  area.addEventListener("blur", () => {
    askNow();
    refresh();
  });
  document.addEventListener("click", askNow, { capture: true, signal: host.gone });
  if (host.options.leads) document.addEventListener("keydown", onKey, { signal: host.gone });
  document.fonts.ready.then(host.redraw);
  new ResizeObserver(() => {
    if (area.clientWidth === width) return;
    width = area.clientWidth;
    host.redraw();
  }).observe(area);
  return { draw };
});

// px: of a text in a single line; sizes: of texts in several lines
const ON_WIDE_PAGES = { px: 44, smallest: 36, sizes: [{ name: "two", px: 44, lines: 2 }, { name: "medium", px: 32, lines: 3 }] };
const ON_PHONES = { px: 24, smallest: 24, sizes: [{ name: "two", px: 24, lines: 3 }, { name: "medium", px: 22, lines: 4 }] };
const WRAPPED = 1.08; // lines end before the box does
const LONGEST = 600; // characters that are measured

/**
 * Returns the name of the size, as in composer.css, and the size of a single line in px.
 * @param {string} text @param {number} width the box's inner width in px @param {boolean} isPhone
 * @param {(line: string) => number} measure returns a line's width in units of the size of its letters
 */
export function fit(text, width, isPhone, measure) {
  const { px, smallest, sizes } = isPhone ? ON_PHONES : ON_WIDE_PAGES;
  if (text.length > LONGEST) return { name: "small", px };
  const lengths = text.split("\n").map(measure);
  const fitting = Math.min(px, Math.floor(width / Math.max(1, lengths[0])));
  if (lengths.length === 1 && fitting >= smallest) return { name: "line", px: fitting };
  const count = (size = 0) => lengths.reduce((sum, ems) => sum + Math.max(1, Math.ceil((WRAPPED * ems * size) / width)), 0);
  return { name: sizes.find((size) => count(size.px) <= size.lines)?.name ?? "small", px };
}

/** Returns a function that measures a line in units of the size of its letters. @param {string} family */
export function ruler(family) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  context.fontKerning = "none";
  context.font = `100px ${family}`;
  return (/** @type {string} */ line) => context.measureText(line).width / 100;
}
