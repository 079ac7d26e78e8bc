// Page behaviour outside the widgets: theme and keyboard.

import { followHistory } from "./address.js";
import { arrive, isBack, linkQuery, rememberLink, session } from "./arrival.js";
import { card } from "./cards/card.js";
import { startClass } from "./class_loader.js";
import "./gradio_workarounds.js";
import { films, read, write } from "./storage.js";
import { explainWords } from "./widgets/glossary.js";
import { clickOn, navigate, properties, start, store } from "./widgets/runtime.js";

/** Runs after gradio has drawn the page, since gradio sets a theme first. */
function opened() {
  const asked = new URLSearchParams(location.search).get("__theme");
  const kept = read("localStorage", "glassbox-theme");
  if (!asked && kept) document.body.classList.toggle("dark", kept === "dark");
  document.body.toggleAttribute("data-film-seen", "token" in films.read().done); // the film's button is coloured until the film has been seen
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  const buttons = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("button:is(.primary, .gb-primary)"));
  [...buttons].find((button) => button.offsetParent)?.click();
});

/** Keeps a choice for later visits. @param {string} name @param {string} value */
const keep = (name, value) => write("localStorage", `glassbox-${name}`, value);

document.addEventListener("click", ({ target }) => {
  if (!(target instanceof Element)) return;
  if (target.closest("#api")) open("?view=api"); // gradio's page about its API
  if (!target.closest("#theme")) return;
  keep("theme", document.body.classList.toggle("dark") ? "dark" : "light"); // gradio marks the dark theme like this
});
document.addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLInputElement)) return;
  if (target.closest("#language")) keep("lang", target.value);
  if (target.closest("#numbers")) keep("numbers", target.checked ? "on" : "");
});

/** Closes the page's menu. @param {Event} event */
function closeMenu({ target }) {
  const menu = document.querySelector("#more");
  if (!(target instanceof Node && menu?.contains(target))) menu?.removeAttribute("open");
}

document.addEventListener("pointerdown", closeMenu);
document.addEventListener("focusin", (event) => {
  if (event.target instanceof Element && event.target.closest("dialog")) closeMenu(event); // only for a dialog: a redraw also moves the focus
});

// On a page with a base address, following the link would leave the page.
document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || !event.target.closest(".gb-skip a")) return;
  event.preventDefault();
  const panels = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#tabs > [role=tabpanel]"));
  const open = [...panels].find((panel) => panel.getClientRects().length);
  if (!open) return;
  open.tabIndex = -1;
  open.focus();
});

/** Makes the browser save a file from the server. @param {{ url: string, name: string } | null} file */
function save(file) {
  if (!file) return;
  const link = document.createElement("a");
  [link.href, link.download] = [file.url, file.name];
  link.click();
}

const ACTIONS = "button, a, input, select, textarea, [role=option], [role=tab]";

/**
 * A new visitor's page shows one sentence, its prediction and three things to do (body[data-hero], set by
 * first_screen.js). The first action opens the workbench.
 */
function startHero() {
  if (!("hero" in document.body.dataset)) return;

  /** @param {Event} event */
  function open({ target, type }) {
    if (!(target instanceof Element) || target.closest("#card-learning")) return;
    if (type === "click" && !target.closest(ACTIONS)) return;
    const writes = target.closest("#write-own");
    delete document.body.dataset.hero;
    scrollTo(0, 0); // the text, which answers
    for (const name of ["click", "input"]) removeEventListener(name, open, true);
    if (!writes) return;
    const area = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("#prompt textarea"));
    area?.focus();
    area?.select();
  }

  for (const name of ["click", "input"]) addEventListener(name, open, true);
}

store.on("download", save);
startHero();
explainWords();
followHistory(store, navigate, rememberLink);
startClass();

start(opened, { arrive, card, clickOn, isBack, properties, session, query: linkQuery });
