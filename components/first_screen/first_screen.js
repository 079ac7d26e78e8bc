// Shows the plain first screen in the browser's language and theme until the page shows the same text, then passes on
// what was typed, the focus, the caret and the last click. On the first visit, the text writes itself until a key press or
// click. For returning visitors and links, the screen stays until their own text has loaded; before that, typing would
// change the example on the page, so what is typed is kept. Keys go to the text until the visitor clicks or focuses
// something on the page.

(() => {
  const LONGEST_MS = 10_000; // counted from the moment gradio has drawn the page
  const WORD_MS = 330; // reading pace
  const [SMALLEST, LARGEST] = matchMedia("(max-width: 900px)").matches ? [24, 24] : [36, 44]; // as in widgets/composer
  const USUAL = " outside"; // as in widgets/composer
  const [LOWEST, HIGHEST, RISING] = [40, 140, 0.17]; // as in widgets/arcs.js
  const screen = /** @type {HTMLElement} */ (document.getElementById("first-screen"));
  const query = new URLSearchParams(location.search);

  /** @param {"localStorage" | "sessionStorage"} kind @param {string} name */
  function read(kind, name) {
    try {
      return window[kind].getItem(name);
    } catch {
      return null; // storage is blocked by the browser
    }
  }

  const language = query.getAll("lang").at(-1) || read("localStorage", "glassbox-lang") || navigator.language.slice(0, 2);
  const templates = screen.querySelectorAll("template");
  const template = [...templates].find((each) => each.dataset.language === language) ?? templates[0];
  const theme = query.get("__theme") || read("localStorage", "glassbox-theme");
  screen.classList.toggle("dark", theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const isElsewhere = [...query.keys()].some((name) => name !== "lang" && !name.startsWith("__"));
  const isBack = read("sessionStorage", "glassbox-saved") !== null;
  const path = location.pathname.replace(/\/$/, "");
  const isMoved = new URL(window.gradio_config.root).pathname.replace(/\/$/, "") !== path;
  const isFrame = isElsewhere || isBack || isMoved; // shows another text or tab, or the page will not be drawn
  screen.classList.toggle("first-is-frame", isFrame);
  screen.lang = template.dataset.language ?? "";
  screen.append(template.content);
  const waiting = /** @type {HTMLElement} */ (screen.querySelector(".first-waiting"));
  if (isMoved) waiting.textContent = (waiting.dataset.moved ?? "").replaceAll("{path}", path);

  const words = /** @type {HTMLElement[]} */ ([...screen.querySelectorAll(isFrame ? "[data-same='#generate']" : "[data-same]")]);
  const box = isFrame ? null : screen.querySelector("textarea");
  const first = box?.value ?? "";
  const pageArea = () => /** @type {HTMLTextAreaElement | null} */ (document.querySelector("#prompt textarea"));
  let isComposing = false; // whether an input method is composing
  let isPressed = false; // whether a mouse button or finger is down
  let kept = ""; // what a returning visitor has typed so far
  /** @type {{ x: number, y: number } | null} */ let clicked = null; // the last click that the page's own element has to handle

  if (box) fitText(box);

  /** Chooses the size of the letters, as widgets/composer does. @param {HTMLTextAreaElement} area */
  function fitText(area) {
    const composer = /** @type {HTMLElement} */ (area.closest(".gb-composer"));
    const copy = /** @type {HTMLElement} */ (screen.querySelector(".gb-copy"));
    copy.style.width = "max-content";
    copy.style.whiteSpace = "pre";
    const ghost = /** @type {HTMLElement} */ (copy.querySelector(".gb-ghost"));
    const guess = ghost.textContent ?? "";
    if (guess.length < USUAL.length) ghost.textContent = USUAL;
    const px = Math.floor((parseFloat(getComputedStyle(copy).fontSize) * area.clientWidth) / copy.clientWidth);
    copy.removeAttribute("style");
    ghost.textContent = guess;
    if (px < SMALLEST || area.value.includes("\n")) composer.dataset.size = "two";
    else composer.style.setProperty("--gb-line-size", `${Math.min(px, LARGEST)}px`);
  }

  const isFirst = !isFrame && read("localStorage", "glassbox-seen") === null;
  document.body.toggleAttribute("data-hero", isFirst);
  let isWriting = isFirst && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  const finishWriting = isWriting && box ? write(box) : () => {};

  /** Writes the text word by word; returns a function that shows the rest at once. @param {HTMLTextAreaElement} area */
  function write(area) {
    /** @type {{ n: number, at: number, bars: [string, number][], arc: [number, number] | null }[]} */
    const steps = JSON.parse(/** @type {HTMLElement} */ (screen.querySelector(".first-page")).dataset.steps ?? "[]");
    const copy = /** @type {HTMLElement} */ (screen.querySelector(".gb-copy"));
    const svg = /** @type {SVGElement} */ (screen.querySelector(".gb-sheet svg"));
    const list = /** @type {HTMLElement} */ (screen.querySelector(".gb-bars"));
    const last = list.innerHTML;
    screen.classList.add("first-writing");
    let next = 0;
    let written = "";
    const timer = setInterval(step, WORD_MS);
    step();

    function step() {
      if (next >= steps.length) return finish();
      const { n, at, bars, arc } = steps[next];
      next += 1;
      area.value = written = first.slice(0, n);
      [...list.children].forEach((row, i) => {
        const [token, p] = bars[i] ?? ["", 0];
        /** @type {HTMLElement} */ (row.querySelector("code")).textContent = token;
        /** @type {HTMLElement} */ (row.querySelector("b")).textContent = p < 0.01 ? "" : `${Math.round(100 * p)}%`;
        for (const name of ["--before", "--after"]) /** @type {HTMLElement} */ (row).style.setProperty(name, String(p));
      });
      svg.replaceChildren(...(arc ? [arcTo(arc[0], at, arc[1])] : []));
    }

    /** @param {number} position @param {number} at @param {number} share */
    function arcTo(position, at, share) {
      const around = svg.getBoundingClientRect();
      const [to, from, start] = [position, at, 0].map((i) => copy.children[i].getBoundingClientRect());
      const [x0, x1] = [from, to].map((place) => place.left + place.width / 2 - around.left);
      const [y0, y1] = [from, to].map((place) => place.top - around.top);
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      const y = y0 - (4 / 3) * Math.min(y0 - 4, HIGHEST, Math.max(LOWEST, RISING * Math.abs(x1 - x0)));
      const isFree = from.top === to.top && from.top === start.top; // an arch over another line would cross words
      path.setAttribute("d", isFree ? `M${x0} ${y0}C${x0} ${y} ${x1} ${y} ${x1} ${y1}` : "");
      path.setAttribute("stroke-width", String(1 + 5 * share));
      return path;
    }

    function finish() {
      if (!isWriting) return;
      isWriting = false;
      clearInterval(timer);
      screen.classList.remove("first-writing");
      if (area.value === written) area.value = first; // otherwise a script has filled it
      list.innerHTML = last;
      svg.replaceChildren();
    }
    return finish;
  }

  /** Returns whether a key writes or pastes something. @param {KeyboardEvent} event */
  const writes = ({ key, ctrlKey, metaKey, altKey }) => key.length === 1 && !altKey && (!(ctrlKey || metaKey) || key.toLowerCase() === "v");

  /** Keeps a key until the visitor's own text has loaded. @param {KeyboardEvent} event */
  function keepKey(event) {
    event.stopImmediatePropagation();
    if (event.key === "Backspace") kept = kept.slice(0, -1);
    else if (writes(event) && !event.ctrlKey && !event.metaKey) kept += event.key;
    else return;
    event.preventDefault(); // Space would scroll
  }

  /** Sends a key to the text if nothing has the focus and the text is in view. @param {KeyboardEvent} event */
  function takeKey(event) {
    if (isFrame && screen.isConnected) return keepKey(event);
    finishWriting();
    const area = screen.isConnected ? box : pageArea();
    const isFree = [null, document.body].includes(/** @type {HTMLElement | null} */ (document.activeElement));
    if (!area?.checkVisibility() || !isFree || !writes(event) || "presenting" in document.body.dataset) return;
    const { top, bottom } = area.getBoundingClientRect();
    if (bottom < 0 || top > innerHeight) return;
    area.focus({ preventScroll: true });
    area.setSelectionRange(area.value.length, area.value.length);
  }

  /** Returns whether a position is on the letters of a word. @param {number} x in px @param {number} y in px */
  function isOnWord(x, y) {
    const text = document.elementsFromPoint(x, y).find((node) => node.parentElement?.matches(".gb-copy"))?.firstChild;
    const range = document.createRange();
    if (text) range.setStart(text, (text.textContent ?? "").search(/\S|$/));
    if (text) range.setEnd(text, (text.textContent ?? "").length);
    return [...range.getClientRects()].some(({ left, right }) => x >= left && x <= right);
  }

  /** Keeps a click for the page's element at that point. In the text, only words are buttons. @param {MouseEvent} event */
  function takeClick({ target, clientX, clientY }) {
    const isText = target === box;
    const isWord = isText && isOnWord(clientX, clientY);
    clicked = isText && !isWord ? null : { x: clientX, y: clientY };
    if (isWord) box?.setSelectionRange(box.value.length, box.value.length);
  }

  box?.addEventListener("input", () => screen.classList.add("first-typed"));
  for (const type of ["focus", "beforeinput", "input"]) box?.addEventListener(type, finishWriting);
  box?.addEventListener("compositionstart", () => (isComposing = true));
  box?.addEventListener("compositionend", () => (isComposing = false));
  screen.addEventListener("pointerdown", ({ button }) => {
    isPressed = button === 0; // after any other, the browser's menu may keep the release
    finishWriting();
  });
  for (const type of ["pointerup", "pointercancel"]) addEventListener(type, () => setTimeout(() => (isPressed = false)), true);
  screen.addEventListener("click", takeClick);
  addEventListener("keydown", takeKey, true);
  for (const type of ["pointerdown", "focusin"]) addEventListener(type, () => screen.isConnected || removeEventListener("keydown", takeKey, true), true);

  /** Passes everything on to the page. Returns false if the page cannot take it yet. @param {boolean} isLate */
  function end(isLate) {
    const area = pageArea();
    const hasFocus = document.activeElement === box;
    if (area?.checkVisibility() && !area.checkVisibility({ visibilityProperty: true }) && !isLate) return false; // gradio is drawing it
    if (area && hasFocus) {
      area.focus({ preventScroll: true });
      if (document.activeElement !== area && !isLate) return false;
    }
    if (isFirst) {
      try {
        localStorage.setItem("glassbox-seen", "1");
      } catch {} // storage is blocked by the browser
    }
    screen.remove();
    if (area && box && (hasFocus || box.value !== first)) {
      area.value = box.value;
      area.setSelectionRange(box.selectionStart, box.selectionEnd);
      if (box.value !== first) area.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
    if (kept && area?.checkVisibility()) {
      area.focus({ preventScroll: true });
      area.setRangeText(kept, area.value.length, area.value.length, "end");
      area.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
    if (!clicked || !box) return true;
    const { x: clientX, y: clientY } = clicked;
    const target = document.elementFromPoint(clientX, clientY);
    for (const type of ["pointerdown", "pointerup", "click"]) {
      target?.dispatchEvent(new PointerEvent(type, { bubbles: true, cancelable: true, clientX, clientY, detail: 1 }));
    }
    return true;
  }

  let drawn = Infinity;
  let isOver = false; // whether the page is visible under the screen
  function look() {
    const page = words.map((word) => document.querySelector(word.dataset.same ?? ""));
    if (drawn === Infinity && page.every(Boolean)) drawn = performance.now();
    const isDrawn = !box || pageArea()?.value === first; // from then on, the page accepts keys
    const isSame = isDrawn && page.every((node, i) => node?.textContent?.trim() === words[i].textContent);
    const isLate = performance.now() > drawn + LONGEST_MS;
    const isBusy = isComposing || isWriting || isPressed;
    const isShown = isFrame ? window.glassbox.isBack?.() : isSame; // another tab's frame doesn't draw these words
    isOver ||= !isBusy && (isShown || isLate);
    screen.classList.toggle("first-over", isOver);
    if (!isOver || isBusy || !end(isLate)) requestAnimationFrame(look);
  }
  look();
})();
