// Tokens and numbers as texts, as in components/labels.py; numbers are decoded from base64.

import { t } from "./i18n.js";

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

// The same rule as in components/labels.py, which names the characters; tests/test_scripts.py checks that they agree.
const CONTROLS =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EOM SUB ESC FS GS RS US";
const SHORT_NAMES = /** @type {Record<number, string>} */ ({
  ...CONTROLS.split(" "),
  0x7f: "DEL", 0x85: "NEL", 0xa0: "NBSP", 0xad: "SHY", 0x34f: "CGJ", 0x61c: "ALM", 0x180e: "MVS",
  0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM",
  0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x202f: "NNBSP",
  0x205f: "MMSP", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
});
const INVISIBLE =
  "\\x00-\\x08\\x0b-\\x1f\\x7f-\\xa0\\xad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f" +
  "\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ud800-\\udfff\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}" +
  "\\u{1bca0}-\\u{1bca3}\\u{1d159}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}";
const REPEATED = new RegExp(`([${INVISIBLE}])\\1*`, "gu");
const UNSEEN = new RegExp(`([${INVISIBLE}]+|^\\p{M}+)`, "u");
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** @param {string} run  one or more copies of the same invisible character @param {string} character */
function code(run, character) {
  const [point, n] = [/** @type {number} */ (character.codePointAt(0)), run.length / character.length];
  const selector = point >= 0xfe00 && point <= 0xfe0f ? `VS${point - 0xfe00 + 1}` : undefined;
  const name = SHORT_NAMES[point] ?? selector ?? `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
  return `[${name}${n > 1 ? `×${n}` : ""}]`;
}

/**
 * Marks each invisible character in a text except the space. A combining character at the start is placed on a
 * dotted circle; right-to-left letters are isolated so that the surrounding text keeps its order.
 * @param {string} text
 */
export function marked(text) {
  const shown = text.replace(REPEATED, code).replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/^\p{M}/u, "◌$&");
  return RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown;
}

/** Marks each invisible character in a text, including the space. @param {string} text */
export const visible = (text) => marked(text).replaceAll(" ", "·");

/**
 * Splits a text into alternating parts: characters that need no mark (including space, tab and newline) and characters
 * that need one. @param {string} text
 */
export const partsOf = (text) => text.split(UNSEEN);
