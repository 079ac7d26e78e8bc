// Formatting of tokens and sentences.

const MARKS = /** @type {Record<string, string>} */ ({ " ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍", "\0": "␀" });

/** A token with its white space visible. @param {string} text */
export const visible = (text) => text.replace(/[ \n\t\r\0]/g, (character) => MARKS[character]);

/** A text with each {name} replaced by its value. @param {string} text @param {Record<string, any>} values */
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
