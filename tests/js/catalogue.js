// Lets the scripts speak a language, with the page's whole catalogue.

import { readFileSync } from "node:fs";

import { setCatalogue } from "../../components/widgets/i18n.js";

export function speak(language, marks = { invisible: "\\0-\\x08\\x0b-\\x1f\\xad\\u200b", names: { "\0": "NUL", "\r": "CR" } }) {
  const texts = JSON.parse(readFileSync(new URL(`../../components/i18n/${language}.json`, import.meta.url), "utf-8"));
  setCatalogue({ language, texts, terms: [], marks });
}

speak("en");
