// Finds, creates and changes elements. Text is inserted as text, never as HTML.

import { t } from "./i18n.js";

/**
 * @typedef {{
 *   (root: ParentNode, selector: string): HTMLElement,
 *   <E extends Element>(root: ParentNode, selector: string, kind: new () => E): E,
 * }} Find
 */

/** Returns the first matching element. Throws if there is none. */
export const find = /** @type {Find} */ (
  (/** @type {ParentNode} */ root, /** @type {string} */ selector, /** @type {any} */ kind = HTMLElement) => {
    const found = root.querySelector(selector);
    if (!(found instanceof kind)) throw new Error(`no ${kind.name} ${selector} in the template`);
    return found;
  }
);

/** @typedef {string | (Node | string)[]} Content  of an element: a text, or a list of elements and texts */

/**
 * @template {keyof HTMLElementTagNameMap} Tag @param {Tag} tag @param {string} name the classes
 * @param {Content} [content] @param {Record<string, string | number>} [attributes] @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, name = "", content = "", attributes = {}) {
  return filled(document.createElement(tag), content, name ? { class: name, ...attributes } : attributes);
}

/** @param {string} name the classes @param {Content} [content] @param {Record<string, string>} [attributes] @param {(event: MouseEvent) => void} [act] */
export function makeButton(name, content = "", attributes = {}, act = () => {}) {
  const made = make("button", name, content, { type: "button", ...attributes });
  made.addEventListener("click", act);
  return made;
}

/**
 * @template {keyof SVGElementTagNameMap} Tag @param {Tag} tag
 * @param {Record<string, string | number>} attributes @param {Content} [content] @returns {SVGElementTagNameMap[Tag]}
 */
export function makeShape(tag, attributes, content = "") {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), content, attributes);
}

/** @template {Element} E @param {E} made @param {Content} content @param {Record<string, string | number>} attributes */
function filled(made, content, attributes) {
  made.append(...[content].flat().filter(Boolean));
  setAll(made, attributes);
  return made;
}

/** Makes a text in an SVG. @param {string} text @param {number} x @param {number} y @param {string} css @param {string} [anchor] */
export function makeText(text, x, y, css, anchor = "middle") {
  return makeShape("text", { x, y, class: css, "text-anchor": anchor }, text);
}

/** @param {Element} node @param {Record<string, string | number>} attributes */
export function setAll(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
}

/** Sets the text only if it differs, because screen readers announce changes. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets a hint, followed by mouse and keyboard instructions that are hidden on touch screens. @param {Element} node @param {string} hint @param {string} keys */
export function setHint(node, hint, keys) {
  if (node.textContent !== hint + keys) node.replaceChildren(hint, make("span", "gb-keys", keys));
}

/** Adds or removes children so that an element has `count`. @param {Element} parent @param {number} count @param {() => Element} create */
export function setCount(parent, count, create) {
  while (parent.children.length > count) parent.lastElementChild?.remove();
  while (parent.children.length < count) parent.append(create());
}

const COPIED_MS = 2000; // how long "copied" is shown

/** Copies a text to the clipboard; returns whether the browser allowed it. @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    const field = make("textarea");
    field.value = text;
    (focused.closest("dialog") ?? document.body).append(field);
    field.select(); // there is no clipboard API on plain HTTP
    const isCopied = document.execCommand("copy");
    field.remove();
    focused.focus();
    return isCopied;
  }
}

/** Copies a text, and says so on the button for a while. @param {HTMLElement} button @param {string} text */
export async function copyFrom(button, text) {
  const [label, copied] = [button.textContent ?? "", t("page.copied")];
  if (label === copied || !(await copyText(text))) return;
  setText(button, copied);
  setTimeout(() => setText(button, label), COPIED_MS);
}

/** Makes the browser save a file. @param {string} href @param {string} name */
export function saveFile(href, name) {
  make("a", "", "", { href, download: name }).click();
}

/** Returns whether a modifier key is pressed. @param {KeyboardEvent | MouseEvent} event */
export const modified = (event) => event.ctrlKey || event.metaKey || event.altKey;

/** Numbers of rows and columns by which an arrow key moves. @type {Record<string, [number, number]>} */
export const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Makes a list in which a click, Enter or Space chooses an item.
 * @param {HTMLElement} list @param {HTMLCollectionOf<HTMLElement>} items @param {(index: number) => void} choose
 * @returns {(to?: number) => void} makes Tab enter the item `to`; by default, the same item as before
 */
export function roving(list, items, choose) {
  let current = 0;
  const indexOf = (/** @type {EventTarget | null} */ target) =>
    target instanceof Node ? [...items].findIndex((item) => item.contains(target)) : -1;

  function turn(to = current) {
    current = Math.max(0, Math.min(items.length - 1, to));
    [...items].forEach((item, i) => item.setAttribute("tabindex", i === current ? "0" : "-1"));
  }

  list.addEventListener("click", ({ target }) => indexOf(target) >= 0 && choose(indexOf(target)));
  list.addEventListener("focusin", ({ target }) => turn(indexOf(target)));
  list.addEventListener("keydown", (event) => {
    const [before, after] = [current - 1, current + 1];
    const to = { ArrowUp: before, ArrowLeft: before, ArrowDown: after, ArrowRight: after, Home: 0, End: items.length - 1 }[event.key];
    if (modified(event) || indexOf(event.target) < 0) return;
    if (event.key === "Enter" || event.key === " ") choose(current);
    else if (to === undefined) return;
    else {
      turn(to);
      items[current].focus();
    }
    event.preventDefault();
  });
  return turn;
}
