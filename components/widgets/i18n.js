// The page's texts in the browser: one catalogue per language, which contains the keys that scripts name
// (`components/assets.py`). It is loaded when its language is first used.

/** @typedef {{ invisible: string, names: Record<string, string> }} Marks */
/** @typedef {{ language: string, texts: Record<string, string>, terms: import("./glossary.js").Term[], marks: Marks }} Catalogue */

/** @type {Map<string, Promise<Catalogue>>} */ const loaded = new Map();
/** @type {Catalogue} */ let spoken = { language: "", texts: {}, terms: [], marks: { invisible: "", names: {} } };
export const SPOKEN = "glassbox-spoken"; // event on the document: another language is used
/** @type {Promise<void> | null} */ let loading = null;

/** Returns a promise while a catalogue is being loaded, otherwise null. */
export const isLoading = () => loading;

export const language = () => spoken.language;

export const terms = () => spoken.terms;

/** The invisible characters as a class of a regular expression, and their short names. */
export const marks = () => spoken.marks;

/** Uses this catalogue. @param {Catalogue} catalogue */
export const setCatalogue = (catalogue) => void (spoken = catalogue);

/** Uses a language, unless its catalogue cannot be loaded or another has been chosen since. @param {string} chosen */
export function speak(chosen) {
  const found = loaded.get(chosen) ?? fetch(new URL(`${chosen}.json`, import.meta.url)).then((answer) => answer.json());
  loaded.set(chosen, found);
  const mine = found.then(
    (catalogue) => {
      if (loading !== mine) return;
      setCatalogue(catalogue);
      loading = null;
      document.documentElement.lang = chosen; // redraws everything
      document.dispatchEvent(new Event(SPOKEN));
    },
    (error) => {
      loaded.delete(chosen);
      console.error(error);
      if (loading === mine) loading = null;
    },
  );
  return (loading = mine);
}

const needsNoSpace = (/** @type {string | undefined} */ character) => character !== undefined && /[\u4e00-\u9fff“”]/.test(character);

/** Removes the space between a value that is Chinese or quoted at that end and the text around it, except beside a "·". @param {string} text @param {Record<string, any>} values */
function withoutSpaces(text, values) {
  for (const [name, value] of Object.entries(values)) {
    const characters = String(value);
    if (needsNoSpace(characters.at(0))) text = text.replace(new RegExp(`(?<!·) \\{${name}\\}`, "g"), `{${name}}`);
    if (needsNoSpace(characters.at(-1))) text = text.replace(new RegExp(`\\{${name}\\} (?!·)`, "g"), `{${name}}`);
  }
  return text;
}

/**
 * Returns the text for a key, with its values filled in, by the same rules as `t` in components/i18n: for a count of 1
 * (`tokens` or, if absent, `n`), the key with the suffix ".one" is used if it exists.
 * @param {string} key @param {Record<string, any>} [values]
 */
export function t(key, values) {
  const { texts } = spoken;
  const one = String(values?.tokens ?? values?.n) === "1" ? texts[`${key}.one`] : undefined;
  const text = one ?? texts[key] ?? "";
  if (!values) return text;
  return fill(texts["language.spacing"] === "cjk" ? withoutSpaces(text, values) : text, values);
}

/** Replaces each {name} in a text with its value. @param {string} text @param {Record<string, any>} values */
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
