/**
 * Buttons whose responses from the server the browser copies to the clipboard or saves as files.
 * @typedef {string | string[]} Item  the name of a button, or of a submenu and its buttons
 *
 * @typedef {object} Answer
 * @property {number} n  unique
 * @property {"copy" | "save" | "tell"} how
 * @property {string} says
 * @property {string} [content]
 * @property {string} [manual]  the message if the browser does not allow copying
 * @property {boolean} [query]  the content becomes the query of the page's address
 * @property {string} [name]
 * @property {string} [mime]
 *
 * @typedef {object} Menu
 * @property {Answer | null} answer  response to the last pressed button
 *
 * options: items; largest: maximum size of an opened file, in bytes
 */

import { openClass } from "../../class_loader.js";
import { copyText, find, make, makeButton } from "../dom.js";
import { language, t } from "../i18n.js";
import { defineWidget } from "../runtime.js";

const OF_CLASS = ["class", "present"]; // open in the browser
const REVOKE_MS = 10_000;

/** @type {import("../runtime.js").Mount} */
function mount(root, host) {
  const [row, out, says, close] = [".gb-share-row", ".gb-share-out", ".gb-share-says", ".gb-share-close"].map((name) => find(root, name));
  const field = /** @type {HTMLTextAreaElement} */ (find(root, "textarea"));
  const picker = /** @type {HTMLInputElement} */ (find(root, "input[type=file]"));
  let labelled = ""; // language of the buttons
  let answered = 0; // number of the last handled response

  /** @param {Item} item @returns {HTMLElement} */
  function build(item) {
    if (typeof item !== "string") {
      const [name, ...items] = item;
      const folded = make("details");
      const list = make("div");
      list.append(...items.map(build));
      list.addEventListener("click", () => (folded.open = false));
      folded.append(make("summary", "", t(`share.${name}`)), list);
      return folded;
    }
    const button = makeButton("", t(`share.${item}`), { title: t(`share.${item}.title`), "data-what": item });
    button.addEventListener("click", () => {
      if (OF_CLASS.includes(item)) openClass(item);
      else if (item === "open") picker.click();
      else host.send({ what: item });
    });
    return button;
  }

  /** @param {string} sentence @param {string} [content] */
  function tell(sentence, content) {
    says.textContent = sentence;
    field.hidden = content === undefined;
    field.value = content ?? "";
    field.rows = Math.min(12, (content ?? "").split("\n").length + 1);
    out.hidden = !sentence;
  }

  /** @param {string} text */
  async function copy(text) {
    if (await copyText(text)) return true;
    field.select(); // there is no clipboard API on plain HTTP
    return document.execCommand("copy");
  }

  /** @param {Answer} answer */
  function save({ name = "", mime, content = "" }) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: `${mime};charset=utf-8` }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_MS);
  }

  /** @param {Answer} answer */
  async function act(answer) {
    if (answer.how === "save") save(answer);
    if (answer.how !== "copy") return tell(answer.says);
    const text = answer.query ? `${location.origin}${location.pathname}?${answer.content}` : answer.content ?? "";
    tell(answer.manual ?? "", text);
    if (await copy(text)) says.textContent = answer.says;
  }

  picker.addEventListener("change", async () => {
    const file = picker.files?.[0];
    picker.value = ""; // allows picking the same file again
    if (!file) return;
    const text = file.size > host.options.largest ? "" : await file.text();
    host.send({ what: "open", name: file.name, size: file.size, text });
  });
  /** @param {Event} event */
  function dismiss(event) {
    out.hidden = true;
    /** @type {HTMLElement | null} */ (row.querySelector("button, summary"))?.focus({ preventScroll: true });
    event.stopPropagation();
  }

  /** @param {Event} event */
  function clickedElsewhere({ target }) {
    if (!(target instanceof Node)) return;
    for (const folded of row.querySelectorAll("details")) folded.open = folded.open && folded.contains(target);
    if (!root.contains(target)) out.hidden = true;
  }

  close.addEventListener("click", dismiss);
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const folded of row.querySelectorAll("details")) folded.open = false;
    if (!out.hidden) dismiss(event);
  });
  document.addEventListener("click", clickedElsewhere);

  return {
    destroy: () => document.removeEventListener("click", clickedElsewhere),
    draw({ answer }) {
      if (labelled !== language()) {
        labelled = language();
        root.setAttribute("aria-label", t("share.name"));
        close.setAttribute("aria-label", t("share.close"));
        row.replaceChildren(...host.options.items.map(build));
      }
      if (answer && answer.n !== answered) {
        answered = answer.n;
        act(answer);
      }
    },
  };
}

defineWidget("menu", mount);
