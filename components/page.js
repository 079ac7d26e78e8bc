// Page behaviour outside the widgets: theme and keyboard.

import { followHistory } from "./address.js";
import { arrive, isBack, linkQuery, rememberLink, session } from "./arrival.js";
import { card } from "./cards/card.js";
import "./gradio_workarounds.js";
import { films, read, write } from "./storage.js";
import { saveFile } from "./widgets/dom.js";
import { explainWords } from "./widgets/glossary.js";
import { clickOn, navigate, properties, start, store } from "./widgets/runtime.js";

/** Runs after gradio has drawn the page, since gradio sets a theme first. */
function opened() {
  const asked = new URLSearchParams(location.search).get("__theme");
  const kept = read("localStorage", "glassbox-theme");
  if (!asked && kept) document.body.classList.toggle("dark", kept === "dark");
  document.body.toggleAttribute("data-mcp", window.gradio_config.mcp_server);
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

/** Closes the unfolded menus, except those around an element. @param {EventTarget | null} [target] */
function closeMenus(target = null) {
  for (const menu of document.querySelectorAll("details.gb-drop[open]")) {
    if (!(target instanceof Node && menu.contains(target))) menu.removeAttribute("open");
  }
}

document.addEventListener("pointerdown", ({ target }) => closeMenus(target));
document.addEventListener("focusin", ({ target }) => {
  if (target instanceof Element && target.closest("dialog")) closeMenus(target); // only for a dialog: a redraw also moves the focus
});
document.addEventListener("keydown", ({ key, target }) => {
  const menu = key === "Escape" && target instanceof Element ? target.closest("details.gb-drop[open]") : null;
  if (!menu) return;
  menu.removeAttribute("open");
  /** @type {HTMLElement | null} */ (menu.querySelector("summary"))?.focus();
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

store.on("download", ({ file }) => file && saveFile(file.url, file.name));
startHero();
explainWords();
followHistory(store, navigate, rememberLink);

start(opened, { arrive, card, clickOn, isBack, properties, session, query: linkQuery });
