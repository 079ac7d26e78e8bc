// Shows the plain first screen in the browser's language and theme until the page shows the same. A visitor who is back
// waits behind it for the own text: until then the page has the example, which would answer a click or a key.

(() => {
  const LONGEST_MS = 10_000; // from the moment when gradio has drawn the page
  const screen = /** @type {HTMLElement} */ (document.getElementById("first-screen"));
  const query = new URLSearchParams(location.search);

  /** @param {"localStorage" | "sessionStorage"} kind @param {string} name */
  function read(kind, name) {
    try {
      return window[kind].getItem(name);
    } catch {
      return null; // the browser blocks it
    }
  }

  const language = query.getAll("lang").at(-1) || read("localStorage", "glassbox-lang") || navigator.language.slice(0, 2);
  const templates = screen.querySelectorAll("template");
  const template = [...templates].find((each) => each.dataset.language === language) ?? templates[0];
  const theme = query.get("__theme") || read("localStorage", "glassbox-theme");
  screen.classList.toggle("dark", theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const isElsewhere = [...query.keys()].some((name) => name !== "lang" && !name.startsWith("__"));
  const isBack = read("sessionStorage", "glassbox-session") !== null;
  const isFrame = isElsewhere || isBack; // another text, or another tab
  screen.classList.toggle("first-is-frame", isFrame);
  screen.lang = template.dataset.language ?? "";
  screen.append(template.content);

  const words = /** @type {HTMLElement[]} */ ([...screen.querySelectorAll(isFrame ? "[data-same='#generate']" : "[data-same]")]);
  /** @param {Event} event */
  const hold = (event) => event.stopImmediatePropagation();
  if (isBack) addEventListener("keydown", hold, true);
  const setInert = (/** @type {boolean} */ inert) => {
    for (const each of document.body.children) if (each !== screen && each instanceof HTMLElement) each.inert = inert;
  };
  const end = () => {
    removeEventListener("keydown", hold, true);
    setInert(false);
    screen.remove();
  };
  let drawn = Infinity;
  const look = () => {
    const page = words.map((word) => document.querySelector(word.dataset.same ?? ""));
    if (drawn === Infinity && page.every(Boolean)) drawn = performance.now();
    const isSame = page.every((node, i) => node?.textContent?.trim() === words[i].textContent);
    const isShown = isBack ? isSame && window.glassbox.isBack?.() : isSame || performance.now() > drawn + LONGEST_MS;
    if (isShown) return end();
    if (isBack) setInert(true);
    requestAnimationFrame(look);
  };
  look();
})();
