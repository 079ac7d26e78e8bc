// Shows the plain first screen in the browser's language and theme until the page shows the same; what was typed until
// then is typed there. A visitor who is back waits behind it for the own text: until then the page has the example, which
// would answer a key.

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
  const box = screen.querySelector("textarea");
  const first = box?.value;
  let isComposing = false; // by an input method
  box?.addEventListener("input", () => screen.classList.add("first-typed"));
  box?.addEventListener("compositionstart", () => (isComposing = true));
  box?.addEventListener("compositionend", () => (isComposing = false));

  const end = () => {
    removeEventListener("keydown", hold, true);
    const hasFocus = document.activeElement === box;
    screen.remove();
    const area = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("#prompt textarea"));
    if (!box || !area || isFrame) return;
    if (hasFocus) requestAnimationFrame(() => area.focus()); // once it is visible
    if (box.value === first) return;
    area.value = box.value;
    area.setSelectionRange(box.selectionStart, box.selectionEnd);
    area.dispatchEvent(new InputEvent("input", { bubbles: true }));
  };
  let drawn = Infinity;
  const look = () => {
    const page = words.map((word) => document.querySelector(word.dataset.same ?? ""));
    if (drawn === Infinity && page.every(Boolean)) drawn = performance.now();
    const isSame = page.every((node, i) => node?.textContent?.trim() === words[i].textContent);
    const isShown = isBack ? isSame && window.glassbox.isBack?.() : isSame || performance.now() > drawn + LONGEST_MS;
    if (isShown && !isComposing) return end();
    requestAnimationFrame(look);
  };
  look();
})();
