// The copy of a text under its textarea: an element for each token, the characters that do not belong to a token yet,
// and the text that may come next.

import { make, setText } from "../dom.js";
import { marked } from "../labels.js";

/** Returns a token's word, or -1 for none. @param {number[]} words each word's first token @param {number} token */
export const wordAt = (words, token) => words.findLastIndex((start) => start <= token && token >= 0);

/**
 * Returns the hidden tokens after a click on a word; at least one word stays visible.
 * @param {number[]} words @param {number} count number of tokens @param {Set<number>} hidden @param {number} word
 */
export function toggled(words, count, hidden, word) {
  const after = new Set(hidden);
  for (let token = words[word]; token < (words[word + 1] ?? count); token += 1) {
    if (hidden.has(words[word])) after.delete(token);
    else after.add(token);
  }
  return words.every((start) => after.has(start)) ? hidden : after;
}

/** @typedef {{text: string, written: number | null, control: boolean}} Piece  see `box_line` */

const EDGE = 2; // px at both ends of a word that count as next to it

/** Returns the lengths of the beginning and of the rest that two texts share. @param {string} a @param {string} b */
export function changed(a, b) {
  const shorter = Math.min(a.length, b.length);
  let [start, rest] = [0, 0];
  while (start < shorter && a[start] === b[start]) start += 1;
  while (rest < shorter - start && a[a.length - 1 - rest] === b[b.length - 1 - rest]) rest += 1;
  return [start, rest];
}

/** @param {HTMLElement} box */
export function createCopy(box) {
  /** @type {string[]} */ let lines = [];
  /** @type {Piece[]} */ let tokens = [];
  /** @type {string[]} */ let drawn = []; // the lines that the elements show
  const rest = make("span");
  const next = make("span", "gb-ghost");
  const end = make("span");
  box.append(rest, next, end);
  const nodes = /** @type {HTMLCollectionOf<HTMLElement>} */ (box.children);

  /** @param {Piece} token */
  function makeToken({ text, written, control }) {
    const node = make("span", control ? (text === "\n" ? "gb-end" : "gb-control") : "", text);
    node.classList.toggle("gb-written", written !== null);
    if (written !== null) node.style.setProperty("--p", String(written));
    return node;
  }

  return {
    text: (start = 0, end = tokens.length) => tokens.slice(start, end).map((token) => token.text).join(""),

    count: () => tokens.length,

    /** Returns the first token whose characters end at or after the caret, or -1 if there are no tokens. @param {number} caret */
    tokenAt(caret) {
      let end = 0;
      const found = tokens.findIndex(({ text }) => (end += text.length) >= caret && text);
      return found < 0 ? tokens.length - 1 : found;
    },

    /** Returns its element, or the one after the last; null if it is not in the text. @param {number} i @returns {HTMLElement | null} */
    node: (i) => (i < 0 || i > drawn.length ? null : i < drawn.length ? nodes[i] : next.textContent ? next : end),

    /** Returns an element's token: the number of tokens for the text that may come next; -1 for none. @param {Element} node */
    tokenOf: (node) => (node === next ? drawn.length : drawn.findIndex((_, i) => nodes[i] === node)),

    /**
     * Returns whether a position is on a token's characters rather than on white space or next to another word.
     * @param {number} i @param {number} x in px @param {boolean} begins whether the token begins a word @param {boolean} ends
     */
    isOnLetters(i, x, begins, ends) {
      const text = nodes[i].firstChild;
      const [, white, letters] = /^(\s*)(.*?)\s*$/s.exec(text?.textContent ?? "") ?? [];
      if (!text || !letters) return false;
      const range = document.createRange();
      range.setStart(text, white.length);
      range.setEnd(text, white.length + letters.length);
      return [...range.getClientRects()].some(({ left, right }) => x >= left + (begins ? EDGE : 0) && x <= right - (ends ? EDGE : 0));
    },

    /** @param {string[]} fresh */
    read(fresh) {
      let kept = 0;
      while (kept < lines.length && lines[kept] === fresh[kept]) kept += 1;
      tokens = [...tokens.slice(0, kept), ...fresh.slice(kept).map(readPiece)];
      lines = fresh;
    },

    /**
     * @param {string} text the box's text @param {string} ghost
     * @param {number} selected marked unless it is the last; -1 for none @param {Set<number>} hidden positions
     */
    draw(text, ghost, selected, hidden) {
      let [count, length] = [0, 0]; // of the tokens that the text begins with
      while (count < tokens.length && text.startsWith(tokens[count].text, length)) {
        length += tokens[count].text.length;
        count += 1;
      }
      let kept = 0;
      while (kept < drawn.length && kept < count && drawn[kept] === lines[kept]) kept += 1;
      drawn.splice(kept).forEach(() => nodes[kept].remove());
      for (; kept < count; kept += 1) {
        rest.before(makeToken(tokens[kept]));
        drawn.push(lines[kept]);
      }
      setText(rest, text.slice(length));
      setText(next, marked(ghost));
      end.textContent = "\u200b"; // makes a final line break start a new line; a new node has not moved yet
      drawn.forEach((_, i) => {
        nodes[i].classList.toggle("gb-at", i === selected && i < drawn.length - 1);
        nodes[i].classList.toggle("gb-hidden", hidden.has(i));
      });
    },
  };
}

/** @param {string} line @returns {Piece} */
function readPiece(line) {
  const [text, written, control] = JSON.parse(line);
  return { text, written, control: Boolean(control) };
}
