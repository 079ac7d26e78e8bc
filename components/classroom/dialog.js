// The dialog for a class: links and their codes, a sequence's stops, and following pages.

import { read, write } from "../storage.js";
import { copyFrom, make, makeButton, makeShape, setText } from "../widgets/dom.js";
import { SPOKEN, t } from "../widgets/i18n.js";
import { askClass } from "../widgets/runtime.js";

/** @typedef {{ url: string, qr: { size: number, path: string }, query?: string, code?: string }} Link */
/** @typedef {{ n: number, open: boolean, problem: string, page?: Link, stops?: Link, room?: Link, sequences: string[] }} Answer */

const COUNT_MS = 2000; // interval for counting the following pages
const STOPS = "glassbox-stops"; // storage key for the lines of a sequence

export function createDialog() {
  /** @type {[HTMLElement, string][]} */ const words = []; // the catalogue key of each element's text
  const root = make("dialog", "", "", { id: "class-dialog", "aria-labelledby": "class-title" });
  const large = make("dialog", "gb-class-large"); // a code large enough for the whole class to scan
  document.body.append(root, large);
  const close = makeButton("gb-class-close", "×", {}, () => root.close());
  const problem = make("p", "", "", { role: "status" });
  const [page, stops, room] = [makeLink(), makeLink(), makeLink()];
  const lines = make("textarea", "", "", { rows: "9", spellcheck: "false", wrap: "off" });
  lines.value = read("localStorage", STOPS) ?? "";
  const [add, start, makeIt] = ["add", "start", "link"].map((name) => say(makeButton(""), `class.stops.${name}`));
  const follow = makeButton("", "", {}, () => ask({ do: "room", on: !answer?.room }));
  const followers = make("p");
  const sections = {
    page: section("page", page.element),
    stops: section("stops", lines, row(start, add, makeIt), stops.element),
    room: section("room", row(follow), room.element, followers),
  };
  root.append(close, say(make("h2", "", "", { id: "class-title" }), "share.class"), problem, ...Object.values(sections));
  sections.page.open = true;

  /** @type {Answer | null} */ let answer = null;
  let asks = false; // whether the response opens the dialog
  let handled = 0; // number of the last response
  /** @type {ReturnType<typeof setInterval> | undefined} */ let counting;

  /** @param {...HTMLElement} content */
  function row(...content) {
    return make("div", "gb-class-row", content);
  }

  /** @template {HTMLElement} E @param {E} node @param {string} key */
  function say(node, key) {
    words.push([node, key]);
    return node;
  }

  /** @param {string} name @param {...HTMLElement} content */
  function section(name, ...content) {
    const texts = [say(make("summary"), `class.${name}`), say(make("p"), `class.${name}.says`)];
    return make("details", "", [...texts, ...content], { name: "class" });
  }

  /** Builds a link to read and copy, with its code. */
  function makeLink() {
    const field = make("input", "", "", { readonly: "" });
    const copy = say(makeButton("", "", {}, () => copyFrom(copy, field.value)), "class.copy");
    const code = makeButton("gb-class-qr", "", {}, () => {
      large.replaceChildren(...[...code.children].map((each) => each.cloneNode(true)), make("b", "", field.value));
      large.ariaLabel = field.value;
      large.showModal();
    });
    const element = make("div", "gb-class-link", [row(field, copy), code]);
    return {
      element,
      /** @param {Link | undefined} link */
      set(link) {
        element.hidden = !link;
        if (!link) return;
        field.value = link.url;
        field.ariaLabel = t("share.class");
        code.ariaLabel = code.title = t("class.qr");
        const look = { viewBox: `0 0 ${link.qr.size} ${link.qr.size}`, "shape-rendering": "crispEdges" };
        code.replaceChildren(makeShape("svg", look, [makeShape("path", { d: link.qr.path })]));
      },
    };
  }

  const base = () => `${location.origin}${location.pathname.replace(/\/?$/, "/")}`;

  /** Requests links, including the sequence if one has been typed. @param {Record<string, any>} more */
  function ask(more = {}) {
    const text = lines.value.trim() ? { text: lines.value } : {};
    askClass({ do: "links", base: base(), ...text, ...more });
  }

  async function count() {
    const code = answer?.room?.code;
    if (!root.open || !code) return;
    const n = await (await fetch(`glassbox/class/${code}/pages`)).json();
    setText(followers, t("class.room.pages", { n }));
  }

  function drawWords() {
    for (const [node, key] of words) setText(node, t(key));
    setText(follow, t(answer?.room ? "class.room.close" : "class.room.open"));
    close.ariaLabel = t("share.close");
    lines.ariaLabel = t("class.stops");
  }

  document.addEventListener(SPOKEN, drawWords);
  root.addEventListener("close", () => clearInterval(counting));
  root.addEventListener("click", ({ target }) => target === root && root.close()); // a click outside the dialog
  large.addEventListener("click", () => large.close());
  lines.addEventListener("input", () => write("localStorage", STOPS, lines.value));
  add.addEventListener("click", () => {
    lines.value = `${lines.value.trimEnd()}\n${answer?.page?.query ?? ""} | ${document.querySelector("[role=tab][aria-selected=true]")?.textContent?.trim()}`.trimStart();
    write("localStorage", STOPS, lines.value);
  });
  start.addEventListener("click", () => {
    askClass({ do: "start", text: lines.value });
    root.close();
  });
  makeIt.addEventListener("click", () => ask());

  return {
    open() {
      asks = true;
      ask();
    },

    /** @param {Answer} newest */
    draw(newest) {
      answer = newest;
      if (!lines.value) lines.value = answer.sequences[0] ?? "";
      drawWords();
      if (answer.n === handled) return;
      handled = answer.n;
      setText(problem, answer.problem);
      page.set(answer.page);
      stops.set(answer.stops);
      room.set(answer.room);
      setText(followers, "");
      sections.room.hidden = !answer.open;
      if (!asks) return;
      asks = false;
      root.showModal();
      clearInterval(counting);
      counting = setInterval(count, COUNT_MS);
    },
  };
}
