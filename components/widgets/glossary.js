// Technical terms in sentences: each is explained on hover, focus and tap. The terms are part of the page.

import { make } from "./dom.js";
import { language, terms } from "./i18n.js";

/** @typedef {{ word: string, forms: string[], says: string }} Term */

/** @type {Map<string, { pattern: RegExp, terms: Map<string, Term> } | null>} */ const known = new Map();

/** @param {string} language @param {boolean} isHeader */
function wordsOf(language, isHeader) {
  const key = `${language} ${isHeader}`;
  if (!known.has(key)) known.set(key, terms().length ? finder(terms(), isHeader) : null);
  return known.get(key) ?? null;
}

/** In a header, words too frequent in sentences are included; alphabetic forms match whole words. @param {Term[]} terms */
export function finder(terms, isHeader = false) {
  const formsOf = (/** @type {Term} */ { word, forms }) => (isHeader ? [word, ...forms] : forms);
  const byForm = new Map(terms.flatMap((term) => formsOf(term).map((form) => /** @type {[string, Term]} */ ([form.toLowerCase(), term]))));
  const forms = [...byForm.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<![\\w“-])(${forms.join("|")})(?![\\w-])`, "giu");
  return { pattern: forms.length ? pattern : /$^/g, terms: byForm };
}

/**
 * Splits a sentence into text and terms; each term is explained only at its first occurrence.
 * @param {string} text @param {ReturnType<typeof finder>} words @returns {(string | [string, Term])[]}
 */
export function explained(text, { pattern, terms }) {
  /** @type {(string | [string, Term])[]} */ const parts = [];
  const seen = new Set();
  let end = 0;
  for (const found of text.matchAll(pattern)) {
    const term = terms.get(found[0].toLowerCase());
    if (!term || seen.has(term)) continue;
    seen.add(term);
    parts.push(text.slice(end, found.index), [found[0], term]);
    end = found.index + found[0].length;
  }
  return [...parts, text.slice(end)].filter((part) => part !== "");
}

/** Sets a sentence or table header, if it differs, and explains its terms. @param {HTMLElement} node @param {string} text */
export function setWords(node, text, isHeader = false) {
  if (node.textContent === text && node.dataset.words === language()) return;
  node.dataset.words = language();
  const words = text && wordsOf(language(), isHeader);
  if (!words) return void (node.textContent = text);
  const parts = explained(text, words).map((part) => {
    if (typeof part === "string") return part;
    return make("dfn", "gb-term", part[0], { tabindex: "0", "aria-description": part[1].says });
  });
  node.replaceChildren(...parts);
}

export function explainWords() {
  const tip = make("p", "gb-definition", "", { role: "tooltip" });
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => void (tip.hidden = true);
  /** @param {Event} event */
  function show({ target }) {
    const word = target instanceof Element ? target.closest(".gb-term") : null;
    if (!word) return hide();
    tip.textContent = word.getAttribute("aria-description");
    tip.hidden = false;
    const at = word.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
    const below = at.bottom + 6;
    tip.style.top = `${below + tip.offsetHeight > innerHeight ? at.top - tip.offsetHeight - 6 : below}px`;
  }
  for (const name of ["pointerover", "focusin", "click"]) document.addEventListener(name, show);
  document.addEventListener("scroll", hide, true);
  document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
}
