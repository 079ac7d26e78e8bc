// Buttons whose responses from the server the browser copies to the clipboard or saves as files. options: see `_menu` in handlers.py

import { copyText, find, make, makeButton, saveFile } from "../dom.js";
import { language, t } from "../i18n.js";
import { present } from "../presenting.js";
import { defineWidget, loadMore } from "../runtime.js";

export const OPENS_CLASS = "glassbox-class"; // event on the document: the dialog for a class opens
const REVOKE_MS = 10_000;

defineWidget("menu", (root, host) => {
  const [row, out, says, close] = [".gb-share-row", ".gb-share-out", ".gb-share-says", ".gb-share-close"].map((name) => find(root, name));
  const field = /** @type {HTMLTextAreaElement} */ (find(root, "textarea"));
  const picker = /** @type {HTMLInputElement} */ (find(root, "input[type=file]"));
  let labelled = ""; // language of the buttons
  let answered = 0; // number of the last handled response

  /** @param {any} item @returns {HTMLElement} */
  function build(item) {
    if (typeof item !== "string") {
      const [name, ...items] = item;
      const list = make("div", "", items.map(build));
      const folded = make("details", "gb-drop", [make("summary", "", t(`share.${name}`)), list]);
      list.addEventListener("click", () => (folded.open = false));
      return folded;
    }
    return makeButton("", t(`share.${item}`), { title: t(`share.${item}.title`), "data-what": item }, () => {
      if (item === "present") present();
      else if (item === "class") loadMore().then(() => document.dispatchEvent(new Event(OPENS_CLASS)));
      else if (item === "open") picker.click();
      else host.send({ what: item });
    });
  }

  /** @param {string} sentence @param {string} [content] */
  function tell(sentence, content) {
    says.textContent = sentence;
    field.hidden = content === undefined;
    field.value = content ?? "";
    field.rows = Math.min(12, (content ?? "").split("\n").length + 1);
    out.hidden = !sentence;
  }

  /** @param {Record<string, any>} answer see `copied`, `message` and `File` in handlers.py */
  async function act({ how, says: sentence, content, manual, query, name, mime }) {
    if (how === "save") {
      const url = URL.createObjectURL(new Blob([content], { type: `${mime};charset=utf-8` }));
      saveFile(url, name);
      setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
    }
    if (how !== "copy") return tell(sentence);
    const text = query ? `${location.origin}${location.pathname}?${content}` : content;
    tell((await copyText(text)) ? sentence : manual, text);
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

  close.addEventListener("click", dismiss);
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !out.hidden) dismiss(event);
  });
  document.addEventListener("click", ({ target }) => {
    if (target instanceof Node && !root.contains(target)) out.hidden = true;
  }, { signal: host.gone });

  return {
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
});
