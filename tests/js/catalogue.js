// Lets the scripts speak a language, with the page's whole catalogue.

import { readFileSync } from "node:fs";

import { setCatalogue } from "../../components/widgets/i18n.js";

export function speak(language) {
  const texts = JSON.parse(readFileSync(new URL(`../../components/i18n/${language}.json`, import.meta.url), "utf-8"));
  setCatalogue({ language, texts, terms: [] });
}

speak("en");
