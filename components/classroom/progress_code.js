// Progress as a short code to hand in: the level of each item, and a checksum that detects typing errors. The code
// doesn't prove that the work was done.

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; // Crockford's base 32, without I, L, O, U
const LEVELS = 3; // levels of an item: untouched, seen, solved
const CHECK_DIGITS = 3;
const GROUP = 5; // digits between two hyphens

/** Computes a checksum over the digits and the item keys, so that codes from other versions are rejected. @param {string} digits @param {string[]} keys */
function checksum(digits, keys) {
  let hash = 0x811c9dc5; // FNV-1a
  for (const character of `${digits} ${keys.join()}`) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return written(BigInt(hash) % 32n ** BigInt(CHECK_DIGITS), CHECK_DIGITS);
}

/** @param {bigint} value @param {number} length */
function written(value, length) {
  let digits = "";
  for (let rest = value; digits.length < length; rest /= 32n) digits = DIGITS[Number(rest % 32n)] + digits;
  return digits;
}

/** Returns the number of digits for n items. @param {number} n */
const lengthFor = (n) => (BigInt(LEVELS) ** BigInt(n) - 1n).toString(32).length;

/** Encodes the levels of the items, 0 to 2 each. @param {number[]} levels @param {string[]} keys of the items */
export function encodeProgress(levels, keys) {
  const value = levels.reduceRight((sum, level) => sum * BigInt(LEVELS) + BigInt(level), 0n);
  const digits = written(value, lengthFor(keys.length));
  return `${digits}${checksum(digits, keys)}`.replace(new RegExp(`(.{${GROUP}})(?=.)`, "g"), "$1-");
}

/** Decodes the levels from a typed code. Returns null if the code is invalid. @param {string} code @param {string[]} keys of the items */
export function decodeProgress(code, keys) {
  const typed = code.toUpperCase().replace(/O/g, "0").replace(/[IL]/g, "1").replace(/[^0-9A-Z]/g, "");
  const digits = typed.slice(0, -CHECK_DIGITS);
  if (digits.length !== lengthFor(keys.length) || checksum(digits, keys) !== typed.slice(-CHECK_DIGITS)) return null;
  let value = [...digits].reduce((sum, digit) => sum * 32n + BigInt(DIGITS.indexOf(digit)), 0n);
  return keys.map(() => {
    const level = Number(value % BigInt(LEVELS));
    value /= BigInt(LEVELS);
    return level;
  });
}

/**
 * Parses submitted codes: one line per student, with an optional name before the code. levels: null if the code is invalid.
 * @param {string} text @param {string[]} keys of the items
 */
export function readCodes(text, keys) {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter(Boolean).map((line) => {
    const [, name, code] = /^(.*?)[\s,;:]*(\S+)$/.exec(line) ?? ["", "", line];
    return { name, levels: decodeProgress(code, keys) };
  });
}
