// A token read from its line, the strength of its tint, and its chip.

import { make } from "../dom.js";
import { t } from "../i18n.js";
import { marked, partsOf, percent, visible } from "../labels.js";

/**
 * @typedef {object} Token
 * @property {number | string} id
 * @property {string} text
 * @property {number | null} probability
 * @property {number | null} rank  1 = most likely
 * @property {"p" | "g" | "h"} kind  prompt, generated, or inserted by hand
 * @property {string} [bytes]  bytes of a token that is not a whole character
 * @property {number | null} entropy  bits
 * @property {[string, string][]} unseen  code points and names of its invisible characters
 */

const DEEPEST = 8; // bits
const WORST = 1000; // rank

/** Returns -log2 of a token's probability, in bits. @param {Token} token */
export const surprisal = ({ probability }) => -Math.log2(probability ?? NaN);

/** Formats a number of bits. @param {number} value */
export const inUnit = (value) => `${Number.isFinite(value) ? value.toFixed(1) : "∞"} ${t("strip.unit")}`;

/** @param {any} value @returns {value is number} */
const known = (value) => value !== null && value !== undefined;

/** Returns whether a token has entropy and surprisal. @param {Token | undefined} token */
export const measured = (token) => known(token?.entropy) && known(token?.probability);

/** @type {Record<string, (token: Token) => number | null>} */
const LEVELS = {
  probability: ({ kind, probability }) => (kind === "p" ? null : probability),
  rank: ({ rank }) => (known(rank) ? Math.max(0, 1 - Math.log(rank) / Math.log(WORST)) : null),
  entropy: ({ entropy }) => (known(entropy) ? Math.min(1, entropy / DEEPEST) : null),
  surprisal: (token) => (known(token.entropy) ? Math.min(1, surprisal(token) / DEEPEST) : null),
};

/** Returns a scale's name, or the default if it is unknown. @param {string | undefined} by */
export const scaleName = (by) => (by && LEVELS[by] ? by : "probability");

/** Returns the strength of the tint, in 0..1, or null for none. @param {string} by @param {Token} token */
export const tintLevel = (by, token) => LEVELS[by](token);

/** Returns the labels at both ends of a scale. @param {string} by @returns {[string, string]} */
export function tintEnds(by) {
  if (by === "probability") return [`${t("strip.probability")}: 0%`, percent(1)];
  if (by === "rank") return [`${t("strip.rank")} ≥ ${WORST}`, "1"];
  return [`${t(by === "surprisal" ? "strip.surprise" : "strip.entropy")} 0`, `≥ ${DEEPEST} ${t("strip.unit")}`];
}

/** Parses a line built by `token_line`. @param {string} line @returns {Token} */
export function readToken(line) {
  try {
    const [id, text, probability, rank, kind, bytes, entropy = null, unseen = []] = JSON.parse(line);
    return { id, text: String(text), probability, rank, kind, bytes, entropy, unseen };
  } catch {
    return { id: "", text: "", probability: null, rank: null, kind: "g", entropy: null, unseen: [] };
  }
}

/**
 * Makes a token's nodes: its chip and the line breaks after it.
 * @param {Token} token @param {number} index @param {{ids?: boolean, selectable?: boolean}} options
 * @param {string} word the word "token" in the page's language
 * @returns {[HTMLElement, ...string[]]}
 */
export function makeChip(token, index, { ids = false, selectable = true }, word) {
  const chip = make("span", "gb-chip", "", selectable ? { role: "option", "aria-selected": "false", tabindex: "-1" } : {});
  let breaks = "";
  const spaces = token.text.match(/^[ \t]+/);
  if (spaces) chip.dataset.spaces = visible(spaces[0]);
  if (!token.text.trim()) chip.setAttribute("aria-label", `${word} ${visible(token.text) || token.bytes || "∎"}`);
  if (token.text) {
    const [, inside, end] = /** @type {RegExpMatchArray} */ (token.text.match(/^([^]*?)(\n*)$/));
    const line = ids ? chip.appendChild(make("span")) : chip; // a column layout would drop a bare space
    partsOf(inside).forEach((part, i) => part && line.append(i % 2 ? make("i", "gb-bytes", marked(part)) : part));
    if (token.bytes) line.append(make("i", "gb-bytes", token.bytes)); // the first bytes of the next character
    if (end) chip.append(make("i", "gb-newline", "⏎".repeat(end.length)));
    breaks = end;
  } else {
    chip.append(make("i", "gb-bytes", token.bytes || "∎"));
  }
  if (token.kind === "h") chip.classList.add("gb-by-hand");
  if (ids) {
    chip.append(make("small", "", String(token.id)));
  }
  return breaks ? [chip, breaks] : [chip];
}

/**
 * Returns the chip nearest to `from` on the line above (step -1) or below (step 1).
 * @param {HTMLElement[]} chips @param {HTMLElement} from @param {number} step
 */
function onNextLine(chips, from, step) {
  const middle = (/** @type {HTMLElement} */ chip) => chip.offsetLeft + chip.offsetWidth / 2;
  const sameLine = (/** @type {HTMLElement} */ chip, /** @type {HTMLElement} */ other) => Math.abs(chip.offsetTop - other.offsetTop) < 4;
  let i = chips.indexOf(from) + step;
  while (chips[i] && sameLine(chips[i], from)) i += step;
  if (!chips[i]) return from;
  const first = chips[i];
  let best = first;
  for (; chips[i] && sameLine(chips[i], first); i += step) {
    if (Math.abs(middle(chips[i]) - middle(from)) < Math.abs(middle(best) - middle(from))) best = chips[i];
  }
  return best;
}

/**
 * Returns the chip that a key moves to, or undefined for other keys.
 * @param {string} key @param {HTMLElement[]} chips @param {HTMLElement} from
 */
export function chipByKey(key, chips, from) {
  const at = chips.indexOf(from);
  if (key === "ArrowRight") return chips[at + 1] ?? from;
  if (key === "ArrowLeft") return chips[at - 1] ?? from;
  if (key === "ArrowDown") return onNextLine(chips, from, 1);
  if (key === "ArrowUp") return onNextLine(chips, from, -1);
  if (key === "Home") return chips[0];
  return key === "End" ? chips[chips.length - 1] : undefined;
}
