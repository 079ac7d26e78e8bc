// A token read from its line, the strength of its tint, and its chip.

import { make } from "../dom.js";
import { t } from "../i18n.js";
import { marked, partsOf, percent, visible } from "../labels.js";

/**
 * A token as in `token_line`; a probability, a rank or an entropy may be unknown.
 * @typedef {{id: number, text: string, bytes: string, kind: "p" | "g" | "h", unseen: [string, string][],
 *   probability: number | null, rank: number | null, entropy: number | null}} Token
 */

const DEEPEST = 8; // bits
const WORST = 1000; // rank

/** Returns -log2 of a token's probability, in bits. @param {Token} token */
export const surprisal = ({ probability }) => -Math.log2(probability ?? NaN);

/** Formats a number of bits. @param {number} value */
export const inUnit = (value) => `${Number.isFinite(value) ? value.toFixed(1) : "∞"} ${t("strip.unit")}`;

/** @param {Token} token */
export const nameOf = ({ text, bytes }) => visible(text) + bytes || "∎";

/** @type {Record<string, (token: Token) => number | null>} */ const LEVELS = {
  rank: ({ rank }) => rank && Math.max(0, 1 - Math.log(rank) / Math.log(WORST)),
  entropy: ({ entropy }) => (entropy === null ? null : Math.min(1, entropy / DEEPEST)),
  surprisal: (token) => (token.entropy === null ? null : Math.min(1, surprisal(token) / DEEPEST)),
};

/** Returns the strength in 0..1, or null for none. @param {string} by a quantity; by default, the probability @param {Token} token */
export const tintLevel = (by, token) => (LEVELS[by] ? LEVELS[by](token) : token.kind === "p" ? null : token.probability);

/** Returns the labels at both ends of a scale. @param {string} by @returns {[string, string]} */
export function tintEnds(by) {
  if (!LEVELS[by]) return [`${t("strip.probability")}: 0%`, percent(1)];
  if (by === "rank") return [`${t("strip.shading.rank")} ≥ ${WORST}`, "1"];
  return [`${t(by === "surprisal" ? "strip.shading.surprisal" : "strip.shading.entropy")} 0`, `≥ ${DEEPEST} ${t("strip.unit")}`];
}

/** @param {string} line @returns {Token} */
export function readToken(line) {
  const [id, text, probability, rank, kind, bytes = "", entropy = null, unseen = []] = JSON.parse(line);
  return { id, text, probability, rank, kind, bytes, entropy, unseen };
}

/** @param {Token} token @param {Record<string, any>} options of the strip @returns {[HTMLElement, ...string[]]} chip, line breaks */
export function makeChip(token, { ids, selectable }) {
  const chip = make("span", "gb-chip", "", selectable ? { role: "option", "aria-selected": "false", tabindex: "-1" } : {});
  const [, spaces, inside, end] = /** @type {RegExpMatchArray} */ (/^(?=([ \t]*))([^]*?)(\n*)$/.exec(token.text));
  if (spaces) chip.dataset.spaces = visible(spaces);
  if (!token.text.trim()) chip.setAttribute("aria-label", `${t("strip.token")} ${nameOf(token)}`);
  const line = ids ? chip.appendChild(make("span")) : chip; // a column layout would drop a bare space
  partsOf(inside).forEach((part, i) => part && line.append(i % 2 ? make("i", "gb-bytes", marked(part)) : part));
  if (token.bytes || !token.text) line.append(make("i", "gb-bytes", token.bytes || "∎"));
  if (end) chip.append(make("i", "gb-newline", "⏎".repeat(end.length)));
  if (ids) chip.append(make("small", "", String(token.id)));
  chip.classList.toggle("gb-by-hand", token.kind === "h");
  return end ? [chip, end] : [chip];
}

/** Returns the chip nearest to `from` on the next line of `ahead`. @param {HTMLElement[]} ahead @param {HTMLElement} from */
function onNextLine(ahead, from) {
  const isBeside = (/** @type {HTMLElement} */ a, /** @type {HTMLElement} */ b) => Math.abs(a.offsetTop - b.offsetTop) < 4;
  const distance = (/** @type {HTMLElement} */ chip) => Math.abs(chip.offsetLeft + chip.offsetWidth / 2 - from.offsetLeft - from.offsetWidth / 2);
  const first = ahead.find((chip) => !isBeside(chip, from));
  if (!first) return from;
  return ahead.filter((chip) => isBeside(chip, first)).reduce((best, chip) => (distance(chip) < distance(best) ? chip : best));
}

/** Returns undefined for keys that do not move. @param {string} key @param {HTMLElement[]} chips @param {HTMLElement} from */
export function chipByKey(key, chips, from) {
  const at = chips.indexOf(from);
  if (key === "ArrowRight") return chips[at + 1] ?? from;
  if (key === "ArrowLeft") return chips[at - 1] ?? from;
  if (key === "ArrowDown") return onNextLine(chips.slice(at + 1), from);
  if (key === "ArrowUp") return onNextLine(chips.slice(0, at).reverse(), from);
  if (key === "Home") return chips[0];
  return key === "End" ? chips.at(-1) : undefined;
}
