// Shows the plain first screen in the browser's language and theme until the page shows the same text, then passes on
// what was typed. On the first visit, the text writes itself until a key press or click. For returning visitors, the
// screen stays until their own text has loaded; before that, typing would change the example on the page.

(() => {
  const LONGEST_MS = 10_000; // counted from the moment gradio has drawn the page
  const WORD_MS = 330; // reading pace
  const FOCUS_FRAMES = 60;
  const RISE = 30; // height of the arc above the line in px, as in widgets/composer/arcs.js
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
  const isBack = read("sessionStorage", "glassbox-session") !== null;
  const path = location.pathname.replace(/\/$/, "");
  const isMoved = new URL(window.gradio_config.root).pathname.replace(/\/$/, "") !== path;
  const isFrame = isElsewhere || isBack || isMoved; // shows another text or tab, or the page will not be drawn
  screen.classList.toggle("first-is-frame", isFrame);
  screen.lang = template.dataset.language ?? "";
  screen.append(template.content);
  const waiting = /** @type {HTMLElement} */ (screen.querySelector(".first-waiting"));
  if (isMoved) waiting.textContent = (waiting.dataset.moved ?? "").replaceAll("{path}", path);

  const words = /** @type {HTMLElement[]} */ ([...screen.querySelectorAll(isFrame ? "[data-same='#generate']" : "[data-same]")]);
  /** @param {Event} event */
  const hold = (event) => event.stopImmediatePropagation();
  if (isBack) addEventListener("keydown", hold, true);
  const box = screen.querySelector("textarea");
  const first = box?.value ?? "";
  let isComposing = false; // whether an input method is composing
  box?.addEventListener("input", () => screen.classList.add("first-typed"));
  box?.addEventListener("compositionstart", () => (isComposing = true));
  box?.addEventListener("compositionend", () => (isComposing = false));

  const isFirst = !isFrame && read("localStorage", "glassbox-seen") === null;
  if (isFirst) document.body.dataset.invite = ""; // the page then shows that words can be clicked
  const finishWriting = isFirst && box && !matchMedia("(prefers-reduced-motion: reduce)").matches ? write(box) : () => {};
  let isWriting = screen.classList.contains("first-writing");

  /** Writes the text word by word; returns a function that shows the rest at once. @param {HTMLTextAreaElement} area */
  function write(area) {
    /** @type {{ n: number, at: number, bars: [string, number][], arc: [number, number] | null }[]} */
    const steps = JSON.parse(/** @type {HTMLElement} */ (screen.querySelector(".first-page")).dataset.steps ?? "[]");
    if (!steps.length) return () => {};
    const copy = /** @type {HTMLElement} */ (screen.querySelector(".gb-copy"));
    const svg = /** @type {SVGElement} */ (screen.querySelector("svg"));
    const list = /** @type {HTMLElement} */ (screen.querySelector(".gb-bars"));
    const last = list.innerHTML;
    screen.classList.add("first-writing");
    let next = 0;
    const timer = setInterval(step, WORD_MS);
    step();

    function step() {
      if (next === steps.length) return finish();
      const { n, at, bars, arc } = steps[next];
      next += 1;
      area.value = first.slice(0, n);
      [...list.children].forEach((row, i) => {
        const [label, track, number] = row.children;
        const [token, p] = bars[i] ?? ["", 0];
        label.textContent = token;
        for (const bar of track.children) /** @type {HTMLElement} */ (bar).style.width = `${100 * p}%`;
        number.textContent = p < 0.01 ? "" : `${Math.round(100 * p)}%`;
      });
      svg.replaceChildren(...(arc ? [arcTo(arc[0], at, arc[1])] : []));
    }

    /** @param {number} position @param {number} at @param {number} share */
    function arcTo(position, at, share) {
      const around = svg.getBoundingClientRect();
      const [to, from] = [position, at].map((i) => copy.children[i].getBoundingClientRect());
      const [x0, x1] = [from, to].map((place) => place.left + place.width / 2 - around.left);
      const [y0, y1] = [from, to].map((place) => place.top - around.top);
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M${x0} ${y0}C${x0} ${y0 - RISE} ${x1} ${y1 - RISE} ${x1} ${y1}`);
      path.setAttribute("stroke-width", String(1 + 4 * share));
      return path;
    }

    function finish() {
      if (!screen.classList.contains("first-writing")) return;
      clearInterval(timer);
      screen.classList.remove("first-writing");
      isWriting = false;
      area.value = first;
      list.innerHTML = last;
      svg.replaceChildren();
    }
    return finish;
  }

  /** Sends a key to the text, whichever element has the focus. @param {KeyboardEvent} event */
  function takeKey(event) {
    finishWriting();
    if (event.key.length > 1 || event.ctrlKey || event.metaKey || event.altKey || !box || document.activeElement === box) return;
    box.focus();
    box.setSelectionRange(first.length, first.length);
  }

  /** Passes a click on to the page's element at that point once the page is drawn. @param {PointerEvent} event */
  function takeClick({ clientX, clientY }) {
    if (!isWriting) return;
    finishWriting();
    addEventListener("click", (event) => {
      if (screen.isConnected) return;
      const target = document.elementFromPoint(clientX, clientY);
      event.stopImmediatePropagation();
      target?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, clientX, clientY, detail: 1 }));
    }, { capture: true, once: true });
    look();
  }

  if (isWriting) {
    addEventListener("keydown", takeKey, true);
    addEventListener("pointerdown", takeClick, true);
  }

  const pageArea = () => /** @type {HTMLTextAreaElement | null} */ (document.querySelector("#prompt textarea"));

  const end = () => {
    removeEventListener("keydown", hold, true);
    removeEventListener("keydown", takeKey, true);
    removeEventListener("pointerdown", takeClick, true);
    if (isFirst) {
      try {
        localStorage.setItem("glassbox-seen", "1");
      } catch {} // storage is blocked by the browser
    }
    const hasFocus = document.activeElement === box;
    screen.remove();
    const area = pageArea();
    if (!box || !area || isFrame) return;
    if (hasFocus) focus(area, FOCUS_FRAMES);
    if (box.value === first) return;
    area.value = box.value;
    area.setSelectionRange(box.selectionStart, box.selectionEnd);
    area.dispatchEvent(new InputEvent("input", { bubbles: true }));
  };
  /** Focuses an element once it is visible. @param {HTMLElement} area @param {number} frames number of frames to try */
  function focus(area, frames) {
    area.focus();
    if (frames && document.activeElement !== area) requestAnimationFrame(() => focus(area, frames - 1));
  }

  let drawn = Infinity;
  function look() {
    if (!screen.isConnected) return;
    const page = words.map((word) => document.querySelector(word.dataset.same ?? ""));
    if (drawn === Infinity && page.every(Boolean)) drawn = performance.now();
    const isDrawn = isFrame || !box || pageArea()?.value === first; // from then on, the page accepts keys
    const isSame = isDrawn && page.every((node, i) => node?.textContent?.trim() === words[i].textContent);
    const isShown = isBack ? isSame && window.glassbox.isBack?.() : isSame || performance.now() > drawn + LONGEST_MS;
    if (isShown && !isComposing && !isWriting) return end();
    requestAnimationFrame(look);
  }
  look();
})();
