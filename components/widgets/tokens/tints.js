// Computes the strength of a token's tint for each quantity, and the labels at both ends of the scale.

import { t } from "../i18n.js";
import { percent } from "../numbers.js";

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
