// A new visitor's page shows one sentence, its prediction and three things to do (body[data-hero], set by first_screen.js).
// The first action opens the workbench.

const ACTIONS = "button, a, input, select, textarea, [role=option], [role=tab]";

export function startHero() {
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
