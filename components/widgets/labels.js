// Tokens and numbers as texts, as in components/labels.py; numbers are decoded from base64.

import { marks, t } from "./i18n.js";

/** @param {string} text */
export const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** @param {string} text */
export const floats = (text) => new Float32Array(bytes(text).buffer);

let exact = false;

/** Returns whether numbers show all digits, and tokens their ids. */
export const isExact = () => exact;

/** @param {boolean} on */
export const setExact = (on) => void (exact = on);

/** Formats 0.5 as "50%". With all digits shown, values near 0 and 1 get more digits. @param {number} probability */
export function percent(probability) {
  const value = 100 * probability;
  if (!exact) {
    if (value > 0 && value < 1) return t("number.under", { p: "1%" });
    return value > 99 && value < 99.9999 ? t("number.over", { p: "99%" }) : `${Math.round(value)}%`;
  }
  if (value > 0 && value < 0.01) return "< 0.01%";
  if (value >= 99.995 && value < 99.9999) return "> 99.99%";
  return `${value.toFixed(percentDigits(value))}%`;
}

/** Formats a change as "91% → 9%", or as one percentage if both look the same. @param {number} before @param {number} after */
export function change(before, after) {
  if (percent(before) === percent(after)) return percent(after);
  const short = (/** @type {number} */ p) => (exact || p === 0 || (p >= 0.01 && p <= 0.99) || p > 0.999999 ? percent(p) : p < 0.5 ? "<1%" : ">99%");
  return `${short(before)} → ${short(after)}`;
}

/** @param {number} value */
function percentDigits(value) {
  if (value === 0 || value >= 99.995) return 0;
  if (value < 0.95 || value >= 99.95) return 2;
  return value < 9.95 || value >= 99.5 ? 1 : 0;
}

/** Formats a number with the given decimals and a real minus sign; zero has no sign. @param {number} value */
export function decimal(value, digits = 2) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** Formats a number with the given decimals, or in scientific notation if they would all be zeros. @param {number} value */
export function small(value, digits = 2) {
  if (value === 0 || Math.abs(value) >= 0.5 * 10 ** -digits) return decimal(value, digits);
  const [lead, exponent] = value.toExponential(1).split("e");
  const raised = [...String(Number(exponent))].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("");
  return `${lead.replace("-", "−")} × 10${raised}`;
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** @type {Record<string, { repeated: RegExp, unseen: RegExp }>} */ const patterns = {}; // none is known before the first catalogue

function patternsOfUnseen() {
  const { invisible } = marks();
  return (patterns[invisible] ??= { repeated: new RegExp(`([${invisible}])\\1*`, "gu"), unseen: new RegExp(`([${invisible}]+|^\\p{M}+)`, "u") });
}

/** @param {string} run  one or more copies of the same invisible character @param {string} character */
function code(run, character) {
  const [point, n] = [/** @type {number} */ (character.codePointAt(0)), run.length / character.length];
  const name = marks().names[character] ?? `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
  return `[${name}${n > 1 ? `×${n}` : ""}]`;
}

/**
 * Marks each invisible character in a text except the space. A combining character at the start is placed on a
 * dotted circle; right-to-left letters are isolated so that the surrounding text keeps its order. @param {string} text
 */
export function marked(text) {
  const shown = text.replace(patternsOfUnseen().repeated, code).replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/^\p{M}/u, "◌$&");
  return RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown;
}

/** Marks each invisible character in a text, including the space. @param {string} text */
export const visible = (text) => marked(text).replaceAll(" ", "·");

/** Splits a text into parts that alternately need no mark (also space, tab and newline) and need one. @param {string} text */
export const partsOf = (text) => text.split(patternsOfUnseen().unseen);
